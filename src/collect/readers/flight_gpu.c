/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What GPUs did, from the records of the thread that collected it: kernels and copies on
 * lanes of their queues, each with the call that launched it, as Kineto's reader
 * gives them.
 */
#include "base/demangle.h"
#include "collect/readers/flight_parts.h"
#include "format/elements.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A call of the runtime or driver that may have launched something. */
struct call {
	uint32_t correlation, tid;
	int64_t start_ns;
};

/* A collective on the thread that launched it. */
struct comm {
	uint32_t tid, args;
	int64_t start_ns, end_ns;
	bool nccl; /* as NCCL told it */
};

typedef VEC(struct call) call_vec;
typedef VEC(struct comm) comm_vec;
typedef VEC(const struct ring_record *) pointer_vec;

struct gpu_pass {
	struct flight_pass *pass;
	pointer_vec records; /* of the window, by time */
	call_vec calls;	     /* by correlation */
	call_vec launches;   /* of graphs, by time */
	comm_vec comms;	     /* by thread, then time */
	uint32_t *names; /* of kernels: string id in the trace by string of the log; 0: none yet */

	/* Of kernels of graphs that don't know their launch: the nodes since the last one. */
	uint32_t *seen; /* by node number's low bits: the run in which it was seen */
	uint32_t run;
	size_t launch_idx;
};

#define NODE_SLOTS 65536u

/* --- gathering --- */

static bool is_gpu(const struct ring_record *record)
{
	return record->kind >= FLIGHT_GPU_KERNEL && record->kind <= FLIGHT_GPU_OVERHEAD;
}

static bool is_inside(const struct flight_pass *pass, const struct ring_record *record)
{
	return record->time_ns < pass->end_ns && record->time_ns + record->value > pass->start_ns;
}

static int by_time(const void *a, const void *b)
{
	const struct ring_record *x = *(const struct ring_record *const *)a,
				 *y = *(const struct ring_record *const *)b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return (x->seq > y->seq) - (x->seq < y->seq);
}

static int find_records(struct gpu_pass *g)
{
	vec_foreach(lane, &g->pass->log->lanes) {
		vec_foreach(record, &lane->window) {
			if (is_gpu(record) && is_inside(g->pass, record) &&
			    vec_push(&g->records, record) < 0)
				return -ENOMEM;
		}
	}
	if (g->records.cnt > 0)
		qsort(g->records.data, g->records.cnt, sizeof(*g->records.data), by_time);
	return 0;
}

static int by_correlation(const void *a, const void *b)
{
	const struct call *x = a, *y = b;

	return (x->correlation > y->correlation) - (x->correlation < y->correlation);
}

static int find_calls(struct gpu_pass *g)
{
	const struct flightlog *log = g->pass->log;

	vec_foreach(at, &g->records) {
		const struct ring_record *record = *at;
		const char *name = log->strings.data[flight_gpu_string(record->extra)];
		struct call call = { flight_gpu_correlation(record->extra),
				     log->gpu_lanes.data[record->detail & ~FLIGHT_GPU_NODE].id,
				     record->time_ns };

		if (record->kind != FLIGHT_GPU_API)
			continue;
		if (vec_push(&g->calls, call) < 0)
			return -ENOMEM;
		if (strstr(name, "GraphLaunch") != NULL && vec_push(&g->launches, call) < 0)
			return -ENOMEM;
	}
	if (g->calls.cnt > 0)
		qsort(g->calls.data, g->calls.cnt, sizeof(*g->calls.data), by_correlation);
	return 0;
}

static int by_thread(const void *a, const void *b)
{
	const struct comm *x = a, *y = b;

	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

static int add_comms(struct gpu_pass *g, uint32_t tid, const record_vec *records)
{
	for (size_t i = 0; i < records->cnt; i++) {
		const struct ring_record *record = &records->data[i];
		struct comm comm = { .tid = tid,
				     .start_ns = record->time_ns,
				     .end_ns = record->time_ns + record->value,
				     .nccl = flight_is_nccl(record, records->cnt - i) };

		if (record->kind != FLIGHT_COLLECTIVE || !is_inside(g->pass, record))
			continue;
		if (flight_collective_args(g->pass, record, records->cnt - i, &comm.args) < 0 ||
		    vec_push(&g->comms, comm) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int find_comms(struct gpu_pass *g)
{
	int ret = 0;

	vec_foreach(lane, &g->pass->log->lanes) {
		if (ret == 0)
			ret = add_comms(g, lane->tid, &lane->records);
		if (ret == 0)
			ret = add_comms(g, lane->tid, &lane->window);
	}
	if (g->comms.cnt > 0)
		qsort(g->comms.data, g->comms.cnt, sizeof(*g->comms.data), by_thread);
	return ret;
}

/* --- links --- */

static const struct call *call_of(const struct gpu_pass *g, uint32_t correlation)
{
	struct call key = { .correlation = correlation };

	if (correlation == 0 || g->calls.cnt == 0)
		return NULL;
	return bsearch(&key, g->calls.data, g->calls.cnt, sizeof(key), by_correlation);
}

/*
 * Kernels of a graph that don't know their launch: those of one launch are different
 * nodes, and launches run in their order. A node that comes again begins the next one,
 * the first that was not taken if it lies before it.
 */
static const struct call *launch_of(struct gpu_pass *g, const struct ring_record *kernel)
{
	uint32_t *seen = &g->seen[flight_gpu_correlation(kernel->extra) % NODE_SLOTS];

	if (g->run == 0 || *seen == g->run) {
		g->launch_idx += g->run > 0;
		g->run++;
	}
	*seen = g->run;
	if (g->launch_idx >= g->launches.cnt ||
	    g->launches.data[g->launch_idx].start_ns > kernel->time_ns)
		return NULL;
	return &g->launches.data[g->launch_idx];
}

static const struct call *caller_of(struct gpu_pass *g, const struct ring_record *record)
{
	if (record->kind == FLIGHT_GPU_KERNEL && (record->detail & FLIGHT_GPU_NODE) != 0)
		return launch_of(g, record);
	return call_of(g, flight_gpu_correlation(record->extra));
}

static bool comm_holds(const struct comm *comm, const struct call *call)
{
	return comm->tid == call->tid && comm->end_ns >= call->start_ns;
}

/* Args of the collective within which a thread made a call; 0: none. */
static uint32_t comm_args(const struct gpu_pass *g, const struct call *call)
{
	size_t low = 0, high = g->comms.cnt;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct comm *comm = &g->comms.data[middle];

		if (comm->tid < call->tid ||
		    (comm->tid == call->tid && comm->start_ns <= call->start_ns))
			low = middle + 1;
		else
			high = middle;
	}
	if (low > 1 && g->comms.data[low - 1].nccl && comm_holds(&g->comms.data[low - 2], call))
		low--; /* PyTorch told more of the same one */
	return low > 0 && comm_holds(&g->comms.data[low - 1], call) ? g->comms.data[low - 1].args
								    : 0;
}

/* --- events --- */

static const char *text_of(const struct gpu_pass *g, const struct ring_record *record)
{
	return g->pass->log->strings.data[flight_gpu_string(record->extra)];
}

/* Each name is demangled once. STRTAB_NONE: out of memory. */
static uint32_t kernel_name(struct gpu_pass *g, const struct ring_record *record)
{
	uint32_t *name = &g->names[flight_gpu_string(record->extra)];
	struct str text = { 0 };

	if (*name != 0)
		return *name;
	demangle(text_of(g, record), &text);
	if (text.len == 0)
		str_append(&text, "<unnamed>");
	*name = str_error(&text) < 0
			? STRTAB_NONE
			: strtab_intern(&g->pass->trace->strings, str_borrow(&text), text.len);
	str_done(&text);
	return *name;
}

static int size_args(struct gpu_pass *g, const struct ring_record *record, uint32_t *ret)
{
	int64_t size = elements_decode(flight_gpu_size(record->extra));
	struct event_args args = {
		.bytes = -1, .elements = -1, .seq = -1, .group_size = -1, .external_id = -1
	};

	if (size < 0)
		return 0;
	if (record->kind == FLIGHT_GPU_KERNEL)
		args.elements = size;
	else
		args.bytes = size;
	return build_args(g->pass->build, &args, ret);
}

/* Index of the lane, -ENOMEM, or -ENOSPC. */
static int lane_of(struct gpu_pass *g, const struct ring_record *record)
{
	const struct flight_gpu_lane *at =
		&g->pass->log->gpu_lanes.data[record->detail & ~FLIGHT_GPU_NODE];
	struct trace *trace = g->pass->trace;
	struct ident id = { .num = at->id };
	char text[32];
	int lane;

	if (at->device == FLIGHT_GPU_THREAD)
		return build_lane(g->pass->build, (struct ident){ .num = g->pass->log->pid }, id,
				  LANE_THREAD);
	lane = build_lane(g->pass->build, (struct ident){ .num = at->device }, id, LANE_STREAM);
	if (lane < 0 || trace->lanes[lane].name != 0)
		return lane;
	(void)snprintf(text, sizeof(text), "stream %u", at->id);
	trace->lanes[lane].name = flight_intern(trace, text);
	return trace->lanes[lane].name != STRTAB_NONE ? lane : -ENOMEM;
}

/* A kernel or copy: its arguments and who launched it. */
static int fill_execution(struct gpu_pass *g, const struct ring_record *record, struct event *event,
			  struct link *link)
{
	const struct call *caller = caller_of(g, record);

	g->pass->trace->meta.has_device = true;
	if (caller != NULL && caller->correlation != 0 &&
	    build_code(g->pass->build, caller->correlation, &link->parent) < 0)
		return -ENOMEM;
	if (caller != NULL && event->kind == KIND_KERNEL &&
	    strcasestr(event_name(g->pass->trace, event), "nccl") != NULL)
		event->args = comm_args(g, caller);
	return event->args != 0 ? 0 : size_args(g, record, &event->args);
}

static int fill_event(struct gpu_pass *g, const struct ring_record *record, struct event *event,
		      struct link *link)
{
	static const uint8_t kinds[] = { KIND_KERNEL, KIND_GPU_MEMOP, KIND_SYNC, KIND_RUNTIME,
					 KIND_OVERHEAD };
	uint32_t correlation = flight_gpu_correlation(record->extra);

	event->kind = kinds[record->kind - FLIGHT_GPU_KERNEL];
	event->name = event->kind == KIND_KERNEL
			      ? kernel_name(g, record)
			      : flight_intern(g->pass->trace, text_of(g, record));
	if (event->name == STRTAB_NONE)
		return -ENOMEM;
	if (event->kind == KIND_KERNEL || event->kind == KIND_GPU_MEMOP)
		return fill_execution(g, record, event, link);
	if (event->kind == KIND_RUNTIME && correlation != 0)
		return build_code(g->pass->build, correlation, &link->id);
	return 0;
}

static int add_record(struct gpu_pass *g, const struct ring_record *record)
{
	struct link link = { CODE_NONE, CODE_NONE };
	struct event event = { 0 };
	int ret = lane_of(g, record);

	if (ret == -ENOSPC) {
		g->pass->trace->drops.unsupported_overlap++;
		return 0;
	}
	if (ret < 0)
		return ret;
	event.lane = (uint16_t)ret;
	ret = fill_event(g, record, &event, &link);
	if (ret < 0)
		return ret;
	return flight_add(g->pass, event, record->time_ns, record->time_ns + record->value, &link);
}

static int set_device_name(struct flight_pass *pass)
{
	const char *name = pass->log->strings.data[pass->log->gpu_name];

	if (name[0] == '\0' || pass->trace->meta.device_name != NULL)
		return 0;
	pass->trace->meta.device_name = strdup(name);
	return pass->trace->meta.device_name != NULL ? 0 : -ENOMEM;
}

static int add_records(struct gpu_pass *g)
{
	int ret = set_device_name(g->pass);

	g->names = calloc(g->pass->log->strings.cnt + 1, sizeof(*g->names));
	g->seen = calloc(NODE_SLOTS, sizeof(*g->seen));
	if (g->names == NULL || g->seen == NULL)
		return -ENOMEM;
	if (ret == 0)
		ret = find_calls(g);
	if (ret == 0)
		ret = find_comms(g);
	for (size_t i = 0; i < g->records.cnt && ret == 0; i++)
		ret = add_record(g, g->records.data[i]);
	return ret;
}

static int by_thread_and_time(const void *a, const void *b)
{
	const struct flight_gpu_call *x = a, *y = b;

	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

int flight_gpu_calls(struct flight_pass *pass)
{
	vec_foreach(lane, &pass->log->lanes) {
		vec_foreach(record, &lane->window) {
			struct flight_gpu_call call = { .start_ns = record->time_ns,
							.end_ns = record->time_ns + record->value };

			if (record->kind != FLIGHT_GPU_API || !is_inside(pass, record))
				continue;
			call.tid = pass->log->gpu_lanes.data[record->detail & ~FLIGHT_GPU_NODE].id;
			if (vec_push(&pass->gpu_calls, call) < 0)
				return -ENOMEM;
		}
	}
	if (pass->gpu_calls.cnt > 0)
		qsort(pass->gpu_calls.data, pass->gpu_calls.cnt, sizeof(*pass->gpu_calls.data),
		      by_thread_and_time);
	return 0;
}

/* The first call of a thread that begins at or after a time. */
static size_t first_call(const struct flight_pass *pass, uint32_t tid, int64_t time_ns)
{
	struct flight_gpu_call key = { .tid = tid, .start_ns = time_ns };
	size_t low = 0, high = pass->gpu_calls.cnt;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (by_thread_and_time(&pass->gpu_calls.data[middle], &key) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

bool flight_in_gpu_call(const struct flight_pass *pass, uint32_t tid, int64_t start_ns,
			int64_t end_ns)
{
	size_t i = first_call(pass, tid, start_ns);
	int64_t inside_ns = 0;

	i -= i > 0; /* the one before may reach into it */
	for (; i < pass->gpu_calls.cnt; i++) {
		const struct flight_gpu_call *call = &pass->gpu_calls.data[i];

		if (call->tid > tid || (call->tid == tid && call->start_ns >= end_ns))
			break;
		if (call->tid == tid && call->end_ns > start_ns)
			inside_ns += MIN(call->end_ns, end_ns) - MAX(call->start_ns, start_ns);
	}
	return inside_ns > 0 && inside_ns >= (end_ns - start_ns) / 2;
}

int flight_gpu(struct flight_pass *pass)
{
	struct gpu_pass g = { .pass = pass };
	int ret = find_records(&g);

	if (ret == 0 && g.records.cnt > 0)
		ret = add_records(&g);
	vec_done(&g.records);
	vec_done(&g.calls);
	vec_done(&g.launches);
	vec_done(&g.comms);
	free(g.names);
	free(g.seen);
	return ret;
}
