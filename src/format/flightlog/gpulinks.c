/* SPDX-License-Identifier: Apache-2.0 */
#include "format/flightlog/gpulinks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NODE_SLOTS 65536u
#define BETWEEN_MAX 64u /* NCCL calls searched for PyTorch's enclosing collective */

struct interval {
	int64_t start_ns, end_ns;
};

static bool overlaps(const struct interval *part, const struct ring_record *record)
{
	return record->time_ns < part->end_ns && record->time_ns + record->value > part->start_ns;
}

/* --- records --- */

static bool is_gpu(const struct ring_record *record)
{
	return record->kind >= FLIGHT_GPU_KERNEL && record->kind <= FLIGHT_GPU_OVERHEAD;
}

static int by_time(const void *a, const void *b)
{
	const struct ring_record *x = *(const struct ring_record *const *)a,
				 *y = *(const struct ring_record *const *)b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return (x->seq > y->seq) - (x->seq < y->seq);
}

static int find_records(struct gpulinks *links, const struct interval *part)
{
	vec_foreach(lane, &links->log->lanes) {
		vec_foreach(record, &lane->window) {
			if (is_gpu(record) && overlaps(part, record) &&
			    vec_push(&links->records, record) < 0)
				return -ENOMEM;
		}
	}
	if (links->records.cnt > 0)
		qsort(links->records.data, links->records.cnt, sizeof(*links->records.data),
		      by_time);
	return 0;
}

/* --- calls --- */

static int by_correlation(const void *a, const void *b)
{
	const struct gpulinks_call *x = a, *y = b;

	if (x->correlation != y->correlation)
		return x->correlation < y->correlation ? -1 : 1;
	return (x->record_idx > y->record_idx) - (x->record_idx < y->record_idx);
}

static int find_calls(struct gpulinks *links)
{
	const struct flightlog *log = links->log;

	for (size_t i = 0; i < links->records.cnt; i++) {
		const struct ring_record *record = links->records.data[i];
		const char *name = log->strings.data[flight_gpu_string(record->extra)];
		struct gpulinks_call call = { flight_gpu_correlation(record->extra),
					      gpulinks_lane(log, record)->id, record->time_ns, i };

		if (record->kind != FLIGHT_GPU_API)
			continue;
		if (vec_push(&links->calls, call) < 0)
			return -ENOMEM;
		if (strstr(name, "GraphLaunch") != NULL && vec_push(&links->launches, call) < 0)
			return -ENOMEM;
	}
	if (links->calls.cnt > 0)
		qsort(links->calls.data, links->calls.cnt, sizeof(*links->calls.data),
		      by_correlation);
	return 0;
}

/*
 * Correlation numbers of an earlier window may repeat: selects the last call that began before the
 * record.
 */
static const struct gpulinks_call *call_of(const struct gpulinks *links,
					   const struct ring_record *record)
{
	uint32_t correlation = flight_gpu_correlation(record->extra);
	size_t low = 0, high = links->calls.cnt, first;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (links->calls.data[middle].correlation < correlation)
			low = middle + 1;
		else
			high = middle;
	}
	first = low;
	if (correlation == 0 || first == links->calls.cnt ||
	    links->calls.data[first].correlation != correlation)
		return NULL;
	while (low + 1 < links->calls.cnt &&
	       links->calls.data[low + 1].correlation == correlation &&
	       links->calls.data[low + 1].start_ns <= record->time_ns)
		low++;
	return &links->calls.data[low];
}

/*
 * The current launch of a graph, if it precedes the kernel. A node seen again begins the next
 * launch.
 */
static const struct gpulinks_call *launch_of(struct gpulinks *links,
					     const struct ring_record *kernel)
{
	uint32_t *seen = &links->seen[flight_gpu_correlation(kernel->extra) % NODE_SLOTS];

	if (links->run == 0 || *seen == links->run) {
		links->launch_idx += links->run > 0;
		links->run++;
	}
	*seen = links->run;
	if (links->launch_idx >= links->launches.cnt ||
	    links->launches.data[links->launch_idx].start_ns > kernel->time_ns)
		return NULL;
	return &links->launches.data[links->launch_idx];
}

bool gpulinks_caller(struct gpulinks *links, const struct ring_record *record, size_t *ret)
{
	const struct gpulinks_call *call = NULL;

	if (record->kind == FLIGHT_GPU_KERNEL && (record->detail & FLIGHT_GPU_NODE) != 0)
		call = launch_of(links, record);
	else if (record->kind == FLIGHT_GPU_KERNEL || record->kind == FLIGHT_GPU_MEMOP)
		call = call_of(links, record);
	if (call != NULL)
		*ret = call->record_idx;
	return call != NULL;
}

/* --- collectives --- */

static int by_thread(const void *a, const void *b)
{
	const struct gpulinks_comm *x = a, *y = b;

	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

static int add_comms(struct gpulinks *links, const struct interval *part, uint32_t tid,
		     const record_vec *records)
{
	for (size_t i = 0; i < records->cnt; i++) {
		const struct ring_record *record = &records->data[i];
		struct gpulinks_comm comm = { .tid = tid,
					      .nccl = flight_is_nccl(record, records->cnt - i),
					      .start_ns = record->time_ns,
					      .end_ns = record->time_ns + record->value,
					      .records = record,
					      .cnt = records->cnt - i };

		if (record->kind == FLIGHT_COLLECTIVE && overlaps(part, record) &&
		    vec_push(&links->comms, comm) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int find_comms(struct gpulinks *links, const struct interval *part)
{
	int ret = 0;

	vec_foreach(lane, &links->log->lanes) {
		if (ret == 0)
			ret = add_comms(links, part, lane->tid, &lane->records);
		if (ret == 0)
			ret = add_comms(links, part, lane->tid, &lane->window);
	}
	if (links->comms.cnt > 0)
		qsort(links->comms.data, links->comms.cnt, sizeof(*links->comms.data), by_thread);
	return ret;
}

static bool holds(const struct gpulinks_comm *comm, uint32_t tid, int64_t time_ns)
{
	return comm->tid == tid && comm->end_ns >= time_ns;
}

/* Number of collectives that sort before: of lower tids, or of tid with start <= time_ns. */
static size_t count_before(const struct gpulinks *links, uint32_t tid, int64_t time_ns)
{
	size_t low = 0, high = links->comms.cnt;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct gpulinks_comm *comm = &links->comms.data[middle];

		if (comm->tid < tid || (comm->tid == tid && comm->start_ns <= time_ns))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int by_launch(const void *a, const void *b)
{
	const struct gpulinks_call *x = a, *y = b;

	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

static int find_nccl(struct gpulinks *links)
{
	vec_foreach(at, &links->records) {
		const struct ring_record *record = *at;
		const struct gpulinks_call *call;

		if (record->kind != FLIGHT_GPU_KERNEL || (record->detail & FLIGHT_GPU_NODE) != 0 ||
		    strstr(links->log->strings.data[flight_gpu_string(record->extra)], "nccl") ==
			    NULL)
			continue;
		call = call_of(links, record);
		if (call != NULL && vec_push(&links->nccl, *call) < 0)
			return -ENOMEM;
	}
	if (links->nccl.cnt > 0)
		qsort(links->nccl.data, links->nccl.cnt, sizeof(*links->nccl.data), by_launch);
	return 0;
}

/* The time at which a thread launches NCCL's next kernel after time_ns. */
static int64_t next_launch_ns(const struct gpulinks *links, uint32_t tid, int64_t time_ns)
{
	struct gpulinks_call key = { .tid = tid, .start_ns = time_ns };
	size_t low = 0, high = links->nccl.cnt;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (by_launch(&links->nccl.data[middle], &key) <= 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low < links->nccl.cnt && links->nccl.data[low].tid == tid
		       ? links->nccl.data[low].start_ns
		       : INT64_MAX;
}

/* Whether comm is NCCL's record for the launch: same thread, begun before end_ns. */
static bool is_of_launch(const struct gpulinks *links, const struct gpulinks_comm *comm,
			 uint32_t tid, int64_t end_ns)
{
	return comm < links->comms.data + links->comms.cnt && comm->nccl && comm->tid == tid &&
	       comm->start_ns < end_ns;
}

size_t gpulinks_nccl_cnt(const struct gpulinks *links, const struct ring_record *call,
			 const struct gpulinks_comm *first)
{
	int64_t end_ns = next_launch_ns(links, first->tid, call->time_ns);
	size_t cnt = 0;

	while (is_of_launch(links, first + cnt, first->tid, end_ns))
		cnt++;
	return cnt;
}

/*
 * PyTorch's collective of tid that encloses time_ns; NCCL records may lie in between. cnt: of
 * count_before().
 */
static const struct gpulinks_comm *around(const struct gpulinks *links, size_t cnt, uint32_t tid,
					  int64_t time_ns)
{
	const struct gpulinks_comm *comm;

	for (size_t i = 0; i < BETWEEN_MAX && cnt > 0 && links->comms.data[cnt - 1].nccl; i++)
		cnt--;
	if (cnt == 0)
		return NULL;
	comm = &links->comms.data[cnt - 1];
	return !comm->nccl && holds(comm, tid, time_ns) ? comm : NULL;
}

const struct gpulinks_comm *gpulinks_comm(const struct gpulinks *links,
					  const struct ring_record *call,
					  const struct gpulinks_comm **ret_nccl)
{
	uint32_t tid = gpulinks_lane(links->log, call)->id;
	size_t cnt = count_before(links, tid, call->time_ns);
	const struct gpulinks_comm *comm, *next;

	*ret_nccl = NULL;
	if (links->comms.cnt == 0)
		return NULL;
	comm = around(links, cnt, tid, call->time_ns);
	next = links->comms.data + cnt;
	*ret_nccl = is_of_launch(links, next, tid, next_launch_ns(links, tid, call->time_ns))
			    ? next
			    : NULL;
	return comm != NULL ? comm : *ret_nccl;
}

/* --- all --- */

int gpulinks_init(struct gpulinks *links, const struct flightlog *log, int64_t start_ns,
		  int64_t end_ns)
{
	const struct interval part = { start_ns, end_ns };
	int ret;

	*links = (struct gpulinks){ .log = log };
	ret = find_records(links, &part);
	if (ret < 0 || links->records.cnt == 0)
		return ret;
	links->seen = calloc(NODE_SLOTS, sizeof(*links->seen));
	if (links->seen == NULL)
		return -ENOMEM;
	ret = find_calls(links);
	if (ret == 0)
		ret = find_comms(links, &part);
	return ret == 0 && links->comms.cnt > 0 ? find_nccl(links) : ret;
}

void gpulinks_done(struct gpulinks *links)
{
	vec_done(&links->records);
	vec_done(&links->comms);
	vec_done(&links->calls);
	vec_done(&links->launches);
	vec_done(&links->nccl);
	free(links->seen);
	links->seen = NULL;
}
