/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What GPUs did, from the records of the thread that collected it: kernels and copies on
 * lanes of their queues, each with the call that launched it, as Kineto's reader
 * gives them.
 */
#include "base/demangle.h"
#include "format/flightlog/gpulinks.h"
#include "model/elements.h"
#include "read/flight/flight_parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct gpu_pass {
	struct flight_pass *pass;
	struct gpulinks links;
	uint32_t *args;	 /* of collectives, in the links' order: as in struct event; 0: none yet */
	uint32_t *names; /* of kernels: string id in the trace by string of the log; 0: none yet */
};

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
	struct event_args args = { .bytes = -1, .elements = -1, .seq = -1, .group_size = -1 };

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
	const struct flight_gpu_lane *at = gpulinks_lane(g->pass->log, record);
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

/* Of collectives that are one kernel: the first, with the bytes of all if they are alike. */
static int sum_args(struct gpu_pass *g, const struct gpulinks_comm *comms, size_t cnt,
		    uint32_t *ret)
{
	struct event_args sum = { 0 };

	for (size_t i = 0; i < cnt; i++) {
		const struct event_args *args;

		if (flight_collective_args(g->pass, comms[i].records, comms[i].cnt, ret) < 0)
			return -ENOMEM;
		args = &g->pass->trace->args[*ret - 1];
		if (i == 0)
			sum = *args;
		else if (sum.bytes < 0 || args->bytes < 0 || args->collective != sum.collective ||
			 __builtin_add_overflow(sum.bytes, args->bytes, &sum.bytes))
			sum.bytes = -1;
	}
	return cnt > 1 ? build_args(g->pass->build, &sum, ret) : 0;
}

/* What its launching thread or NCCL knew of the collective, which its kernels share. 0: nothing. */
static int comm_args(struct gpu_pass *g, const struct ring_record *call, uint32_t *ret)
{
	const struct gpulinks_comm *nccl, *comm = gpulinks_comm(&g->links, call, &nccl);
	uint32_t *args = comm != NULL ? &g->args[comm - g->links.comms.data] : NULL;
	size_t cnt = comm == nccl && comm != NULL ? gpulinks_nccl_cnt(&g->links, call, comm) : 1;

	if (args == NULL)
		return 0;
	if (*args == 0 && sum_args(g, comm, cnt, args) < 0)
		return -ENOMEM;
	*ret = *args;
	return 0;
}

/* A kernel or copy: its arguments and who launched it. */
static int fill_execution(struct gpu_pass *g, const struct ring_record *record, struct event *event,
			  struct link *link)
{
	const struct ring_record *call;
	size_t idx;
	int ret = 0;

	g->pass->trace->meta.has_device = true;
	if (gpulinks_caller(&g->links, record, &idx)) {
		call = g->links.records.data[idx];
		if (flight_gpu_correlation(call->extra) != 0)
			ret = build_code(g->pass->build, flight_gpu_correlation(call->extra),
					 &link->parent);
		if (ret == 0 && event->kind == KIND_KERNEL &&
		    strcasestr(event_name(g->pass->trace, event), "nccl") != NULL)
			ret = comm_args(g, call, &event->args);
	}
	return ret < 0 || event->args != 0 ? ret : size_args(g, record, &event->args);
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
	g->args = calloc(g->links.comms.cnt + 1, sizeof(*g->args));
	if (g->names == NULL || g->args == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < g->links.records.cnt && ret == 0; i++)
		ret = add_record(g, g->links.records.data[i]);
	return ret;
}

int flight_gpu(struct flight_pass *pass)
{
	struct gpu_pass g = { .pass = pass };
	int ret = gpulinks_init(&g.links, pass->log, pass->start_ns, pass->end_ns);

	if (ret == 0 && g.links.records.cnt > 0)
		ret = add_records(&g);
	gpulinks_done(&g.links);
	free(g.args);
	free(g.names);
	return ret;
}

/* --- threads in calls --- */

static bool is_inside(const struct flight_pass *pass, const struct ring_record *record)
{
	return record->time_ns < pass->end_ns && record->time_ns + record->value > pass->start_ns;
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
