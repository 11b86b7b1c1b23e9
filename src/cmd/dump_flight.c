/* SPDX-License-Identifier: Apache-2.0 */
/* `perftracker dump FILE.flight`: what a worker recorded about itself. */
#include "base/str.h"
#include "base/text/clean.h"
#include "cmd/cmd.h"
#include "format/flightlog/flightlog.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#define LAST_CNT 20

static const char *const source_names[FLIGHT_SOURCE_CNT] = {
	[FLIGHT_SOURCE_STACKS] = "stacks",	     [FLIGHT_SOURCE_OPERATORS] = "operators",
	[FLIGHT_SOURCE_COLLECTIVES] = "collectives", [FLIGHT_SOURCE_GIL] = "gil",
	[FLIGHT_SOURCE_SYSCALLS] = "system calls",   [FLIGHT_SOURCE_GC] = "collections",
	[FLIGHT_SOURCE_EXACT] = "exact calls",	     [FLIGHT_SOURCE_GPU] = "gpu",
};

static const char *const state_names[] = { "not tried", "works", "absent" };

static const char *const drop_names[] = {
#define X(field, what) what,
	FLIGHTLOG_DROP_LIST(X)
#undef X
};

/* The counters in the order of drop_names. */
static void list_drops(const struct flightlog_drops *drops,
		       uint64_t ret[static ARRAY_SIZE(drop_names)])
{
	size_t i = 0;

#define X(field, what) ret[i++] = drops->field;
	FLIGHTLOG_DROP_LIST(X)
#undef X
}

static const char *kind_name(uint16_t kind)
{
	static const char *const marks[] = { "",
					     "mark dataloader",
					     "mark dataloader end",
					     "mark optimizer",
					     "mark iteration",
					     "mark gc",
					     "mark optimizer begin" };
	static const char *const kinds[] = { "sample",
					     "cpu",
					     "faults",
					     "switches",
					     "gil",
					     "operator",
					     "annotation",
					     "collective",
					     "collective args",
					     "collective group",
					     "python",
					     "c call",
					     "gpu kernel",
					     "gpu copy",
					     "gpu wait",
					     "gpu call",
					     "gpu overhead",
					     "collective how",
					     "network",
					     "network send",
					     "network recv",
					     "gpu timed",
					     "gpu timed shape",
					     "gpu calls",
					     "collective done",
					     "gpu timed groups",
					     "loader child" };

	if (kind < ARRAY_SIZE(marks))
		return marks[kind];
	return kind >= FLIGHT_SAMPLE && kind < FLIGHT_KIND_END ? kinds[kind - FLIGHT_SAMPLE] : "?";
}

/* The function or text that a record is about; "" for others. */
static const char *record_name(const struct flightlog *log, const struct ring_record *record)
{
	uint32_t frame = 0;

	switch (record->kind) {
	case FLIGHT_SAMPLE:
	case FLIGHT_CHILD:
		frame = log->nodes.data[(uint32_t)record->extra].frame;
		break;
	case FLIGHT_PYTHON:
		frame = (uint32_t)record->extra;
		break;
	case FLIGHT_OPERATOR:
	case FLIGHT_ANNOTATION:
	case FLIGHT_COLLECTIVE:
	case FLIGHT_C_CALL:
	case FLIGHT_NETWORK:
	case FLIGHT_TIMED:
	case FLIGHT_COLLECTIVE_DONE:
		return log->strings.data[record->extra];
	case FLIGHT_GPU_KERNEL:
	case FLIGHT_GPU_MEMOP:
	case FLIGHT_GPU_SYNC:
	case FLIGHT_GPU_API:
	case FLIGHT_GPU_OVERHEAD:
		return log->strings.data[flight_gpu_string(record->extra)];
	default:
		break;
	}
	return log->strings.data[log->frames.data[frame].name];
}

/* One of the newest records, and the thread of its ring: 0 for marks. */
struct last {
	const struct ring_record *record;
	uint32_t tid;
};

/* Keeps list[cnt] sorted by time, newest first. */
static void add_last(struct last *list, size_t *cnt, const struct ring_record *record, uint32_t tid)
{
	size_t at = *cnt;

	while (at > 0 && list[at - 1].record->time_ns < record->time_ns)
		at--;
	if (at == LAST_CNT)
		return;
	*cnt += *cnt < LAST_CNT;
	memmove(&list[at + 1], &list[at], (*cnt - 1 - at) * sizeof(*list));
	list[at] = (struct last){ record, tid };
}

static size_t find_last(const struct flightlog *log, struct last list[static LAST_CNT])
{
	size_t cnt = 0;

	vec_foreach(record, &log->marks)
		add_last(list, &cnt, record, log->training_tid);
	vec_foreach(record, &log->samples)
		add_last(list, &cnt, record,
			 record->kind == FLIGHT_SAMPLE || record->kind == FLIGHT_CHILD
				 ? (uint32_t)(record->extra >> 32)
				 : 0);
	vec_foreach(lane, &log->lanes) {
		vec_foreach(record, &lane->records)
			add_last(list, &cnt, record, lane->tid);
		vec_foreach(record, &lane->window)
			add_last(list, &cnt, record, lane->tid);
	}
	return cnt;
}

/* --- text --- */

/* Names come from user code: control characters are replaced. */
static void print_clean(const char *before, const char *name)
{
	struct str clean = { 0 };

	clean_append(&clean, name);
	printf("%s%s", before, str_borrow(&clean));
	str_done(&clean);
}

static void print_sources(const struct flightlog *log)
{
	for (size_t i = 0; i < FLIGHT_SOURCE_CNT; i++) {
		printf("source %s: %s", source_names[i], state_names[log->sources[i].state]);
		if (log->sources[i].why[0] != '\0')
			print_clean(", ", log->sources[i].why);
		putchar('\n');
	}
}

static void print_drops(const struct flightlog *log)
{
	uint64_t drops[ARRAY_SIZE(drop_names)];

	list_drops(&log->drops, drops);
	for (size_t i = 0; i < ARRAY_SIZE(drops); i++) {
		if (drops[i] > 0)
			printf("lost: %" PRIu64 " %s\n", drops[i], drop_names[i]);
	}
}

static void print_last(const struct flightlog *log)
{
	struct last list[LAST_CNT];
	size_t cnt = find_last(log, list);

	if (cnt > 0)
		printf("\n%16s %10s %8s  %s\n", "time s", "ms", "thread", "record");
	for (size_t i = cnt; i-- > 0;) {
		const struct ring_record *r = list[i].record;
		bool lasts = r->kind >= FLIGHT_OPERATOR && !flight_kind_is_detail(r->kind);

		printf("%16.6f ", (double)r->time_ns / 1e9);
		if (lasts)
			printf("%10.3f", (double)r->value / 1e6);
		else
			printf("%10s", "");
		printf(" %8u  %s", list[i].tid, kind_name(r->kind));
		if (record_name(log, r)[0] != '\0')
			print_clean(" ", record_name(log, r));
		putchar('\n');
	}
}

static void print_text(const struct flightlog *log)
{
	printf("flight log of rank %d of %d, pid %u, training thread %u", log->rank,
	       log->world_size, log->pid, log->training_tid);
	print_clean(", host ", log->host[0] != '\0' ? log->host : "unknown");
	printf("\n%zu name%s, %zu function%s, %zu stack%s, %zu mark%s, %zu sample%s\n",
	       log->strings.cnt, plural(log->strings.cnt), log->frames.cnt, plural(log->frames.cnt),
	       log->nodes.cnt, plural(log->nodes.cnt), log->marks.cnt, plural(log->marks.cnt),
	       log->samples.cnt, plural(log->samples.cnt));
	vec_foreach(lane, &log->lanes) {
		printf("thread %u", lane->tid);
		print_clean(" (", lane->name);
		printf("): %zu record%s, %zu of windows\n", lane->records.cnt,
		       plural(lane->records.cnt), lane->window.cnt);
	}
	print_sources(log);
	print_drops(log);
	print_last(log);
}

/* --- JSON --- */

static json_t *lanes_json(const struct flightlog *log)
{
	json_t *list = json_array();

	vec_foreach(lane, &log->lanes)
		(void)json_array_append_new(
			list,
			json_pack("{s:I, s:s, s:I, s:I}", "tid", (json_int_t)lane->tid, "name",
				  lane->name, "records", (json_int_t)lane->records.cnt,
				  "window_records", (json_int_t)lane->window.cnt));
	return list;
}

static json_t *sources_json(const struct flightlog *log)
{
	json_t *list = json_object();

	for (size_t i = 0; i < FLIGHT_SOURCE_CNT; i++)
		(void)json_object_set_new(list, source_names[i],
					  json_pack("{s:s, s:s}", "state",
						    state_names[log->sources[i].state], "why",
						    log->sources[i].why));
	return list;
}

static json_t *drops_json(const struct flightlog *log)
{
	json_t *list = json_object();

#define X(field, what) \
	(void)json_object_set_new(list, #field, json_integer((json_int_t)log->drops.field));
	FLIGHTLOG_DROP_LIST(X)
#undef X
	return list;
}

static json_t *last_json(const struct flightlog *log)
{
	struct last list[LAST_CNT];
	json_t *array = json_array();

	for (size_t i = find_last(log, list); i-- > 0;) {
		const struct ring_record *r = list[i].record;

		(void)json_array_append_new(
			array,
			json_pack("{s:I, s:I, s:I, s:s, s:s}", "time_ns", (json_int_t)r->time_ns,
				  "value", (json_int_t)r->value, "tid", (json_int_t)list[i].tid,
				  "kind", kind_name(r->kind), "name", record_name(log, r)));
	}
	return array;
}

static int print_json(const struct flightlog *log)
{
	json_t *root = json_pack(
		"{s:s, s:i, s:i, s:I, s:I, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o, "
		"s:o}",
		"schema", "perftracker.flight.v1", "rank", log->rank, "world_size", log->world_size,
		"pid", (json_int_t)log->pid, "training_tid", (json_int_t)log->training_tid, "host",
		log->host, "mono_ns", (json_int_t)log->mono_ns, "wall_ns", (json_int_t)log->wall_ns,
		"strings", (json_int_t)log->strings.cnt, "frames", (json_int_t)log->frames.cnt,
		"nodes", (json_int_t)log->nodes.cnt, "marks", (json_int_t)log->marks.cnt, "samples",
		(json_int_t)log->samples.cnt, "threads", lanes_json(log), "sources",
		sources_json(log), "drops", drops_json(log), "last", last_json(log));
	int failed = root == NULL || json_dumpf(root, stdout, JSON_INDENT(1)) < 0;

	json_decref(root);
	if (failed)
		return cmd_fail("cannot print: out of memory, or a name that is not UTF-8");
	putchar('\n');
	return EXIT_DONE;
}

int dump_flight(const char *path, bool json)
{
	struct flightlog log;
	struct err err = { "" };
	int status = EXIT_DONE;

	if (flightlog_read(path, &log, &err) < 0)
		return cmd_fail("%s", err.text);
	if (json)
		status = print_json(&log);
	else
		print_text(&log);
	flightlog_done(&log);
	return status;
}
