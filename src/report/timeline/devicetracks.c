/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What GPUs did in windows, and the calls that made them: one track for each queue or thread, and
 * an arrow from a call to what it launched. A record has no room for a kernel's grid, blocks,
 * shared memory and registers.
 */
#include "model/collective.h"
#include "model/elements.h"
#include "report/timeline/timeline_parts.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define BYTES_PER_NS_TO_MB_PER_S 1000.0

/* --- gathering --- */

int timeline_collect_gpu(struct rank_view *view)
{
	struct gpu_view *gpu = &view->gpu;
	int ret = gpulinks_init(&gpu->links, view->log, INT64_MIN, INT64_MAX);
	size_t idx;

	if (ret < 0)
		return ret;
	gpu->callers = calloc(gpu->links.records.cnt + 1, sizeof(*gpu->callers));
	gpu->tids = calloc(gpu->links.records.cnt + 1, sizeof(*gpu->tids));
	if (gpu->callers == NULL || gpu->tids == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < gpu->links.records.cnt; i++) {
		if (gpulinks_caller(&gpu->links, gpu->links.records.data[i], &idx))
			gpu->callers[i] = idx + 1;
	}
	return 0;
}

void timeline_gpu_done(struct rank_view *view)
{
	gpulinks_done(&view->gpu.links);
	free(view->gpu.callers);
	free(view->gpu.tids);
	view->gpu = (struct gpu_view){ 0 };
}

/* Waits and the tracer's own work lie over what they wait for or disturb: left out. */
static bool is_drawn(const struct ring_record *record, uint32_t gpu_lane)
{
	return (record->kind == FLIGHT_GPU_KERNEL || record->kind == FLIGHT_GPU_MEMOP ||
		record->kind == FLIGHT_GPU_API) &&
	       (record->detail & ~FLIGHT_GPU_NODE) == gpu_lane;
}

int timeline_gpu(const struct rank_view *view, uint32_t gpu_lane, slice_vec *ret)
{
	for (size_t i = 0; i < view->gpu.links.records.cnt; i++) {
		const struct ring_record *record = view->gpu.links.records.data[i];
		struct slice slice = { .start_ns = record->time_ns,
				       .end_ns = record->time_ns + record->value,
				       .number = (int64_t)i,
				       .cpu_ns = -1,
				       .what = flight_gpu_string(record->extra),
				       .kind = SLICE_GPU };

		if (is_drawn(record, gpu_lane) && vec_push(ret, slice) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* --- arguments --- */

static void put_rate(struct writer *w, const char *key, double bytes, int64_t ns, bool *first)
{
	if (bytes > 0 && ns > 0)
		writer_number(w, first, key,
			      (int64_t)(bytes / (double)ns * BYTES_PER_NS_TO_MB_PER_S));
}

/* Bytes of collectives that ran as one kernel; -1: unknown, or they are of different kinds. */
static int64_t bytes_of_all(const struct gpulinks_comm *comms, size_t cnt)
{
	struct comm first = timeline_read_comm(comms->records, comms->cnt);
	int64_t sum = first.bytes;

	for (size_t i = 1; i < cnt && sum >= 0; i++) {
		struct comm comm = timeline_read_comm(comms[i].records, comms[i].cnt);

		if (comm.bytes < 0 || comm.what != first.what ||
		    __builtin_add_overflow(sum, comm.bytes, &sum))
			sum = -1;
	}
	return sum;
}

/* Prints the collective of a kernel, as recorded by the launching thread or by NCCL. */
static void put_collective(struct place *to, const struct slice *slice,
			   const struct ring_record *call, bool *first)
{
	const struct gpulinks *links = &to->view->gpu.links;
	const char *const *strings = to->view->log->strings.data;
	const struct gpulinks_comm *nccl, *known = gpulinks_comm(links, call, &nccl);
	struct collective_words words;
	struct nccl_slice how;
	struct comm comm;

	if (known == NULL)
		return;
	comm = timeline_read_comm(known->records, known->cnt);
	if (nccl != NULL) {
		how = timeline_read_nccl(nccl->records, nccl->cnt);
		how.merged_cnt = (uint32_t)gpulinks_nccl_cnt(links, call, nccl);
		if (known == nccl)
			comm.bytes = bytes_of_all(nccl, how.merged_cnt);
	}
	timeline_put_comm(to, &comm, first);
	if (nccl != NULL)
		timeline_put_nccl(to, &how, first);
	collective_words(strings[comm.name], strings[comm.what], "", &words);
	put_rate(to->writer, "bus_mb_per_s",
		 (double)comm.bytes * collective_bus_factor(words.operation, comm.group_size),
		 slice->end_ns - slice->start_ns, first);
}

static void put_launch(struct place *to, const struct slice *slice, bool *first)
{
	const struct gpu_view *gpu = &to->view->gpu;
	size_t caller = gpu->callers[slice->number];

	if (caller != 0 && strcasestr(to->view->log->strings.data[slice->what], "nccl") != NULL)
		put_collective(to, slice, gpu->links.records.data[caller - 1], first);
}

void timeline_put_gpu(struct place *to, const struct slice *slice, bool *first)
{
	const struct ring_record *record = to->view->gpu.links.records.data[slice->number];
	int64_t size = elements_decode(flight_gpu_size(record->extra));
	uint32_t number = flight_gpu_correlation(record->extra);
	struct writer *w = to->writer;

	if (record->kind == FLIGHT_GPU_KERNEL && size >= 0)
		writer_number(w, first, "threads", size);
	if (record->kind == FLIGHT_GPU_MEMOP && size >= 0) {
		writer_number(w, first, "bytes", size);
		put_rate(w, "mb_per_s", (double)size, record->value, first);
	}
	if ((record->detail & FLIGHT_GPU_NODE) != 0)
		writer_number(w, first, "graph_node", number);
	else if (number != 0)
		writer_number(w, first, "correlation", number);
	if (record->kind == FLIGHT_GPU_KERNEL)
		put_launch(to, slice, first);
}

/* --- arrows --- */

/* A slice without length has no inside that an arrow could end in. */
static bool can_have_end(const struct gpu_view *gpu, size_t idx)
{
	return gpu->tids[idx] != 0 && gpu->links.records.data[idx]->value > 0;
}

static int64_t drawn_from(const struct place *to, size_t idx)
{
	return MAX(to->view->gpu.links.records.data[idx]->time_ns, to->view->from_ns);
}

/* A rank has less than 2^32 calls, a picture less than 2^20 ranks: JavaScript keeps the id whole. */
static void put_end(struct place *to, char phase, size_t idx, size_t call)
{
	writer_begin(to, phase, to->view->gpu.tids[idx], drawn_from(to, idx));
	(void)fprintf(to->writer->out,
		      ",\"cat\":\"launch\",\"name\":\"launch\",\"id\":%" PRIu64 "%s}",
		      (uint64_t)to->pid << 32 | call, phase == 'f' ? ",\"bp\":\"e\"" : "");
}

void timeline_gpu_arrows(struct place *to)
{
	struct gpu_view *gpu = &to->view->gpu;

	for (size_t i = 0; i < gpu->links.records.cnt; i++) {
		size_t call = gpu->callers[i] - 1;

		if (gpu->callers[i] == 0 || !can_have_end(gpu, i) || !can_have_end(gpu, call) ||
		    drawn_from(to, i) < drawn_from(to, call))
			continue;
		put_end(to, 's', call, call);
		put_end(to, 'f', i, call);
		gpu->tids[call] = 0; /* of a graph's launch the first kernel is enough */
	}
}
