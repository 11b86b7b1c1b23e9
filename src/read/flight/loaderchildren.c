/* SPDX-License-Identifier: Apache-2.0 */
#include "read/flight/loaderchildren.h"

#include "base/str.h"
#include "base/text/pythoncode.h"
#include "read/flight/labels.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define CALL_CNT 4096u	/* numbers of system calls in a record */
#define PATH_MAX_CNT 4u /* functions of a path that are shown */
#define PATH_ENDS 2u	/* of them at its end, in a longer one: then one at its beginning */

/* By node of the trie of stacks: where it is in the loader's loop. */
enum part_of_loop {
	OUTSIDE,
	LOOP,	/* the function that makes batches */
	WAITS,	/* for the number of the next batch */
	BATCHES /* below the loop: makes one */
};

struct tally {
	const struct flightlog *log;
	struct flight_names names;
	struct strtab strings;
	uint8_t *part;	 /* by node: enum part_of_loop */
	uint32_t *cnt;	 /* by node: samples there and below */
	uint32_t *heir;	 /* by node: its child with most samples; 0: none */
	uint32_t *calls; /* by number of a system call: samples of the place */
	size_t node_cnt;
};

static int tally_init(struct tally *t, const struct flightlog *log)
{
	int ret;

	*t = (struct tally){ .log = log, .node_cnt = log->nodes.cnt };
	t->part = calloc(t->node_cnt + 1, sizeof(*t->part));
	t->cnt = calloc(t->node_cnt + 1, sizeof(*t->cnt));
	t->heir = calloc(t->node_cnt + 1, sizeof(*t->heir));
	t->calls = calloc(CALL_CNT, sizeof(*t->calls));
	ret = strtab_init(&t->strings);
	if (ret == 0)
		ret = flight_names_init(&t->names, log, &t->strings);
	return t->part == NULL || t->cnt == NULL || t->heir == NULL || t->calls == NULL ? -ENOMEM
											: ret;
}

static void tally_done(struct tally *t)
{
	flight_names_done(&t->names);
	strtab_done(&t->strings);
	free(t->part);
	free(t->cnt);
	free(t->heir);
	free(t->calls);
}

static const char *function_of(const struct tally *t, uint32_t node)
{
	const struct flight_frame *frame = &t->log->frames.data[t->log->nodes.data[node].frame];

	return t->log->strings.data[frame->name];
}

static bool is_of_file(const struct tally *t, uint32_t node, const char *end)
{
	const struct flight_frame *frame = &t->log->frames.data[t->log->nodes.data[node].frame];
	const char *file = t->log->strings.data[frame->file];
	size_t len = strlen(file), end_len = strlen(end);

	return len >= end_len && strcmp(file + len - end_len, end) == 0;
}

static bool ends_with_word(const char *name, const char *word)
{
	const char *dot = strrchr(name, '.');

	return strcmp(dot != NULL ? dot + 1 : name, word) == 0;
}

static enum part_of_loop part_of(const struct tally *t, uint32_t node)
{
	enum part_of_loop above = (enum part_of_loop)t->part[t->log->nodes.data[node].parent];

	if (above == WAITS || above == BATCHES)
		return above;
	if (above == LOOP)
		return is_of_file(t, node, "multiprocessing/queues.py") &&
				       ends_with_word(function_of(t, node), "get")
			       ? WAITS
			       : BATCHES;
	return ends_with_word(function_of(t, node), "_worker_loop") ? LOOP : OUTSIDE;
}

/* Parents have smaller numbers than their children. */
static void find_parts(struct tally *t)
{
	for (uint32_t i = 1; i < t->node_cnt; i++)
		t->part[i] = (uint8_t)part_of(t, i);
}

static bool is_counted(const struct tally *t, const struct ring_record *record, int64_t start_ns,
		       int64_t end_ns)
{
	uint8_t part = t->part[(uint32_t)record->extra];

	return record->kind == FLIGHT_CHILD && record->time_ns >= start_ns &&
	       record->time_ns <= end_ns && (part == LOOP || part == BATCHES);
}

static void count_samples(struct tally *t, int64_t start_ns, int64_t end_ns)
{
	vec_foreach(record, &t->log->samples) {
		if (record->kind == FLIGHT_CHILD && is_counted(t, record, start_ns, end_ns))
			t->cnt[(uint32_t)record->extra]++;
	}
	for (size_t i = t->node_cnt; i-- > 1;)
		t->cnt[t->log->nodes.data[i].parent] += t->cnt[i];
	for (uint32_t i = 1; i < t->node_cnt; i++) {
		uint32_t *heir = &t->heir[t->log->nodes.data[i].parent];

		if (t->cnt[i] > t->cnt[*heir] || (*heir == 0 && t->cnt[i] > 0))
			*heir = i;
	}
}

static bool is_users(const struct tally *t, uint32_t node)
{
	return t->part[node] == BATCHES &&
	       t->names.frames[t->log->nodes.data[node].frame].part != PART_LOADER;
}

/*
 * The node of the place: down to the user's first function always by the larger part, from there on
 * while at least half of all samples are below.
 */
static uint32_t find_place(const struct tally *t)
{
	uint32_t node = 0;

	while (t->heir[node] != 0 && (!is_users(t, node) || 2 * t->cnt[t->heir[node]] >= t->cnt[0]))
		node = t->heir[node];
	return node;
}

/* Its callers up to the user's first function, the outermost first; itself where there is none. */
static size_t find_path(const struct tally *t, uint32_t place, uint32_t *path, size_t cap)
{
	uint32_t first = place;
	size_t cnt = 0, at;

	for (uint32_t i = place; i != 0; i = t->log->nodes.data[i].parent) {
		if (is_users(t, i))
			first = i;
	}
	for (uint32_t i = place; i != t->log->nodes.data[first].parent && cnt < cap;
	     i = t->log->nodes.data[i].parent)
		cnt++;
	at = cnt;
	for (uint32_t i = place; at > 0; i = t->log->nodes.data[i].parent)
		path[--at] = i;
	return cnt;
}

/* The system call in which at least half of the place's samples were; NULL: none. */
static const char *find_call(struct tally *t, uint32_t place, int64_t start_ns, int64_t end_ns)
{
	uint32_t best = 0, id;

	vec_foreach(record, &t->log->samples) {
		if (record->kind == FLIGHT_CHILD && (uint32_t)record->extra == place &&
		    (record->detail & FLIGHT_SAMPLE_SYSCALL) != 0 &&
		    is_counted(t, record, start_ns, end_ns))
			t->calls[record->detail >> 4]++;
	}
	for (uint32_t i = 0; i < CALL_CNT; i++)
		best = t->calls[i] > t->calls[best] ? i : best;
	if (t->calls[best] == 0 || 2 * t->calls[best] < t->cnt[place])
		return NULL;
	id = flight_names_syscall(&t->names, best);
	return id != STRTAB_NONE ? strtab_text(&t->strings, id) : NULL;
}

static const char *text_of(const struct tally *t, uint32_t node)
{
	uint32_t frame = t->log->nodes.data[node].frame;

	return strtab_text(&t->strings, t->names.frames[frame].text);
}

/* A long path keeps its ends, and the user's innermost function, the one to look at. */
static void append_path(const struct tally *t, const uint32_t *path, size_t cnt, struct str *to)
{
	size_t users = 0;
	bool gap = false;

	for (size_t i = 0; i < cnt; i++)
		users = pythoncode_is_users(text_of(t, path[i])) ? i : users;
	for (size_t i = 0; i < cnt; i++) {
		bool shown = cnt <= PATH_MAX_CNT || i == 0 || i == users || i + PATH_ENDS >= cnt;

		if (!shown && !gap)
			str_append(to, " > ...");
		gap = !shown;
		if (shown)
			str_printf(to, "%s%s", i > 0 ? " > " : "", text_of(t, path[i]));
	}
}

/* Cut at a character where it is too long. */
static void copy_place(char ret[static FLIGHT_PLACE_MAX], const struct str *text)
{
	size_t len = MIN(text->len, (size_t)FLIGHT_PLACE_MAX - 1);

	while (len < text->len && len > 0 && ((unsigned char)text->data[len] & 0xc0) == 0x80)
		len--;
	memcpy(ret, str_borrow(text), len);
	ret[len] = '\0';
}

static int describe(struct tally *t, int64_t start_ns, int64_t end_ns, struct flight_children *ret)
{
	uint32_t path[256], place = find_place(t);
	size_t cnt = find_path(t, place, path, ARRAY_SIZE(path));
	const char *call = find_call(t, place, start_ns, end_ns);
	struct str text = { 0 };
	int error;

	append_path(t, path, cnt, &text);
	if (call != NULL)
		str_printf(&text, " > %s", call);
	error = str_error(&text);
	if (error == 0) {
		ret->frac = (double)t->cnt[place] / t->cnt[0];
		ret->sample_cnt = t->cnt[0];
		copy_place(ret->place, &text);
	}
	str_done(&text);
	return error;
}

int flight_children(const struct flightlog *log, int64_t start_ns, int64_t end_ns,
		    struct flight_children *ret)
{
	struct flight_children found = { 0 };
	struct tally tally;
	int error = tally_init(&tally, log);

	if (error == 0 && tally.node_cnt > 0) {
		find_parts(&tally);
		count_samples(&tally, start_ns, end_ns);
		if (tally.cnt[0] > 0)
			error = describe(&tally, start_ns, end_ns, &found);
	}
	tally_done(&tally);
	if (error == 0)
		*ret = found;
	return error;
}
