/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that threads made: of CUDA, of the system's libraries, and what profiling cost. */
#include "read/nsys/nsys_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { COL_START, COL_END, COL_THREAD, COL_NAME, COL_CORRELATION };

static const struct nsys_column call_columns[] = {
	{ "start", false }, { "end", false },	       { "globalTid", false },
	{ "nameId", true }, { "correlationId", true },
};

/* One call on a thread. */
struct thread_call {
	int64_t start_ns, end_ns;
	uint32_t name;
	uint16_t lane;
};

typedef VEC(struct thread_call) call_vec;

/* Reads a row. Returns 1, 0 if it is not an event (counted), -errno. *ret_lane: nsys_thread(). */
static int read_call(struct nsys_pass *pass, struct nsys_query *query, struct thread_call *ret,
		     int *ret_lane)
{
	struct nsys_name name;
	int64_t thread, id = -1;
	int r;

	if (!nsys_query_int(query, COL_START, &ret->start_ns) ||
	    !nsys_query_int(query, COL_END, &ret->end_ns) ||
	    !nsys_query_int(query, COL_THREAD, &thread)) {
		pass->trace->drops.bad_event++;
		return 0;
	}
	(void)nsys_query_int(query, COL_NAME, &id);
	*ret_lane = nsys_thread(pass, thread);
	ret->lane = (uint16_t)MAX(*ret_lane, 0);
	r = nsys_string(pass, id, NSYS_CALL, &name);
	ret->name = name.id;
	return r < 0 ? r : 1;
}

/* --- CUDA, and overhead --- */

static int add_runtime(struct nsys_pass *pass, struct nsys_query *query)
{
	struct event event = { .kind = KIND_RUNTIME };
	struct link link = { CODE_NONE, CODE_NONE };
	struct thread_call call;
	int64_t correlation = 0;
	int lane, ret = read_call(pass, query, &call, &lane);

	if (ret <= 0)
		return ret;
	event.name = call.name;
	(void)nsys_query_int(query, COL_CORRELATION, &correlation);
	ret = correlation > 0 ? build_code(&pass->build, (uint64_t)correlation, &link.id) : 0;
	return ret == 0 ? nsys_add(pass, event, lane, call.start_ns, call.end_ns, &link) : ret;
}

static int add_overhead(struct nsys_pass *pass, struct nsys_query *query)
{
	struct event event = { .kind = KIND_OVERHEAD };
	struct thread_call call;
	int lane, ret = read_call(pass, query, &call, &lane);

	if (ret <= 0)
		return ret;
	event.name = call.name;
	return nsys_add(pass, event, lane, call.start_ns, call.end_ns, NULL);
}

static int read_calls(struct nsys_pass *pass, const char *table,
		      int (*add)(struct nsys_pass *pass, struct nsys_query *query))
{
	struct nsys_query query;
	int ret = nsys_rows(pass, &query, table, call_columns, ARRAY_SIZE(call_columns),
			    NSYS_ROWS_OF_TID);

	while (ret > 0 && (ret = nsys_query_next(&query)) > 0) {
		ret = add(pass, &query);
		if (ret < 0)
			break;
		ret = 1;
	}
	nsys_query_close(&query);
	return ret;
}

/* --- the system's libraries --- */

static int by_place(const void *a, const void *b)
{
	const struct thread_call *x = a, *y = b;

	if (x->lane != y->lane)
		return x->lane < y->lane ? -1 : 1;
	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return (x->end_ns < y->end_ns) - (x->end_ns > y->end_ns);
}

static int collect_os(struct nsys_pass *pass, call_vec *calls)
{
	struct nsys_query query;
	int ret = nsys_rows(pass, &query, "OSRT_API", call_columns, 4, NSYS_ROWS_OF_TID);

	while (ret > 0 && (ret = nsys_query_next(&query)) > 0) {
		struct thread_call call;
		int lane;

		ret = read_call(pass, &query, &call, &lane);
		if (ret > 0 && lane == -ENOSPC)
			pass->trace->drops.unsupported_overlap++;
		else if (ret > 0)
			ret = lane < 0 ? lane : vec_push(calls, call);
		if (ret < 0)
			break;
		ret = 1;
	}
	nsys_query_close(&query);
	return ret;
}

static int collect_runtime(struct nsys_pass *pass, call_vec *calls)
{
	const struct trace *trace = pass->trace;

	for (size_t i = 0; i < trace->event_cnt; i++) {
		const struct event *event = &trace->events[i];
		struct thread_call call = { event->start_ns, event->start_ns, 0, event->lane };

		if (event->kind != KIND_RUNTIME ||
		    __builtin_add_overflow(event->start_ns, event->dur_ns, &call.end_ns))
			continue;
		if (vec_push(calls, call) < 0)
			return -ENOMEM;
	}
	return 0;
}

/*
 * Adds the calls that are not inside a CUDA call, whose name is more useful. Both are sorted.
 */
static int add_outer(struct nsys_pass *pass, const call_vec *calls, const call_vec *runtime)
{
	int64_t busy_until_ns = INT64_MIN;
	int lane = -1, ret = 0;
	size_t next = 0;

	for (size_t i = 0; i < calls->cnt && ret == 0; i++) {
		const struct thread_call *call = &calls->data[i];
		struct event event = { .name = call->name, .kind = KIND_RUNTIME };

		if (call->lane != lane)
			busy_until_ns = INT64_MIN;
		lane = call->lane;
		while (next < runtime->cnt && by_place(&runtime->data[next], call) <= 0) {
			if (runtime->data[next].lane == call->lane)
				busy_until_ns = MAX(busy_until_ns, runtime->data[next].end_ns);
			next++;
		}
		if (call->end_ns > busy_until_ns)
			ret = nsys_add(pass, event, lane, call->start_ns, call->end_ns, NULL);
	}
	return ret;
}

static int read_os(struct nsys_pass *pass)
{
	call_vec calls = { 0 }, runtime = { 0 };
	int ret = collect_os(pass, &calls);

	if (ret == 0 && calls.cnt > 0)
		ret = collect_runtime(pass, &runtime);
	if (ret == 0 && calls.cnt > 0) {
		qsort(calls.data, calls.cnt, sizeof(*calls.data), by_place);
		if (runtime.cnt > 0)
			qsort(runtime.data, runtime.cnt, sizeof(*runtime.data), by_place);
		ret = add_outer(pass, &calls, &runtime);
	}
	vec_done(&calls);
	vec_done(&runtime);
	return ret;
}

/* --- names --- */

static int read_thread_names(struct nsys_pass *pass)
{
	static const struct nsys_column columns[] = { { "nameId", true }, { "globalTid", true } };
	struct nsys_query query;
	int ret = nsys_rows(pass, &query, "ThreadNames", columns, ARRAY_SIZE(columns),
			    NSYS_ROWS_OF_TID);

	while (ret > 0 && (ret = nsys_query_next(&query)) > 0) {
		int64_t id, thread;
		struct nsys_name name;
		struct lane_label label;

		if (!nsys_query_int(&query, 0, &id) || !nsys_query_int(&query, 1, &thread))
			continue;
		ret = nsys_string(pass, id, NSYS_TEXT, &name);
		label = (struct lane_label){ .pid = { .num = thread >> 24 & 0xffffff },
					     .tid = { .num = thread & 0xffffff },
					     .name = name.id };
		if (ret < 0 || vec_push(&pass->build.labels, label) < 0) {
			ret = ret < 0 ? ret : -ENOMEM;
			break;
		}
		ret = 1;
	}
	nsys_query_close(&query);
	return ret;
}

int nsys_read_threads(struct nsys_pass *pass)
{
	int ret = read_calls(pass, "CUPTI_ACTIVITY_KIND_RUNTIME", add_runtime);

	if (ret == 0)
		ret = read_os(pass);
	if (ret == 0)
		ret = read_calls(pass, "CUPTI_ACTIVITY_KIND_OVERHEAD", add_overhead);
	if (ret == 0)
		ret = read_calls(pass, "PROFILER_OVERHEAD", add_overhead);
	return ret == 0 ? read_thread_names(pass) : ret;
}
