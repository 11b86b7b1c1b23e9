/* SPDX-License-Identifier: Apache-2.0 */
/* Turns the records of one worker into values of its series. */
#include "live/metrics/metrics_parts.h"
#include "model/elements.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *const phase_names[METRICS_PHASE_CNT] = {
	[PHASE_LEARNING] = "learning", [PHASE_STEADY] = "steady",	[PHASE_SLOW] = "slow",
	[PHASE_BLOCKED] = "blocked",   [PHASE_PROFILING] = "profiling", [PHASE_GONE] = "gone",
	[PHASE_SILENT] = "disabled",
};

static const char *const mark_names[METRICS_MARK_CNT] = {
	[MARK_DATALOADER] = "dataloader", [MARK_DATALOADER_END] = "dataloader_end",
	[MARK_OPTIMIZER] = "optimizer",	  [MARK_ITERATION] = "iteration",
	[MARK_GC] = "garbage_collection", [MARK_OPTIMIZER_BEGIN] = "optimizer_begin",
	[MARK_BACKWARD] = "backward",
};

static const char *const drop_reasons[] = {
#define X(field, what) #field,
	FLIGHTLOG_DROP_LIST(X)
#undef X
};

uint32_t metrics_worker_series(struct metrics_worker *worker, enum metric metric, const char *third)
{
	return metrics_series(worker->host->metrics, metric,
			      METRIC_VALUES(worker->rank, worker->local_rank, third));
}

/* --- life --- */

static void make_series(struct metrics_worker *worker)
{
	worker->iteration = metrics_worker_series(worker, METRIC_ITERATION, NULL);
	worker->loader = metrics_worker_series(worker, METRIC_LOADER, NULL);
	worker->run_delay = metrics_worker_series(worker, METRIC_RUN_DELAY, NULL);
	worker->cpu = metrics_worker_series(worker, METRIC_THREAD_CPU, NULL);
	worker->last_mark = metrics_worker_series(worker, METRIC_LAST_MARK, NULL);
	worker->recent = metrics_worker_series(worker, METRIC_ITERATION_RECENT, NULL);
	worker->baseline = metrics_worker_series(worker, METRIC_ITERATION_BASELINE, NULL);
	worker->best = metrics_worker_series(worker, METRIC_ITERATION_BEST, NULL);
	worker->slow_since = metrics_worker_series(worker, METRIC_SLOW_SINCE, NULL);
	worker->world_size = metrics_series(worker->host->metrics, METRIC_WORLD_SIZE, NULL);
	for (size_t i = 0; i < METRICS_PHASE_CNT; i++)
		worker->state[i] =
			metrics_worker_series(worker, METRIC_WORKER_STATE, phase_names[i]);
	for (size_t i = MARK_DATALOADER; i < METRICS_MARK_CNT; i++)
		worker->marks[i] = metrics_worker_series(worker, METRIC_MARKS, mark_names[i]);
	for (size_t i = 0; i < METRICS_GENERATION_CNT; i++)
		worker->gc[i] = metrics_worker_series(worker, METRIC_GC,
						      ((const char[]){ (char)('0' + i), 0 }));
	for (size_t i = 0; i < ARRAY_SIZE(drop_reasons); i++)
		(void)metrics_worker_series(worker, METRIC_LOST,
					    drop_reasons[i]); /* shows 0 before the first */
	metrics_add(worker->host->metrics,
		    metrics_worker_series(worker, METRIC_WORKER_STARTS, NULL), 1);
}

static void write_rank(char ret[static 12], int32_t rank)
{
	if (rank >= 0)
		(void)snprintf(ret, 12, "%" PRId32, rank);
}

struct metrics_worker *metrics_worker_new(struct metrics_host *host, int32_t rank,
					  int32_t local_rank)
{
	struct metrics_worker *worker = calloc(1, sizeof(*worker));

	if (worker == NULL || vec_push(&host->workers, worker) < 0) {
		free(worker);
		return NULL;
	}
	worker->host = host;
	worker->cpu_ns = worker->delay_ns = -1;
	write_rank(worker->rank, rank);
	write_rank(worker->local_rank, local_rank);
	flightlog_init(&worker->log);
	make_series(worker);
	return worker;
}

struct metrics_worker *metrics_worker_free(struct metrics_worker *worker)
{
	struct metrics_host *host;

	if (worker == NULL)
		return NULL;
	host = worker->host;
	for (size_t i = 0; i < host->workers.cnt; i++) {
		if (host->workers.data[i] == worker)
			host->workers.data[i] = host->workers.data[--host->workers.cnt];
	}
	stream_forget(&host->stream, worker);
	flightlog_done(&worker->log);
	vec_done(&worker->operations);
	vec_done(&worker->texts);
	free(worker);
	return NULL;
}

/* --- marks --- */

void metrics_worker_mark(struct metrics_worker *worker, const struct ring_record *mark)
{
	struct metrics *metrics;

	if (worker == NULL || mark->kind >= METRICS_MARK_CNT)
		return;
	metrics = worker->host->metrics;
	metrics_add(metrics, worker->marks[mark->kind], 1);
	if (mark->kind == MARK_DATALOADER_END) {
		metrics_observe(metrics, worker->loader, mark->value);
		worker->loader_cnt++;
	} else if (mark->kind == MARK_GC) {
		metrics_observe(metrics, worker->gc[MIN(mark->detail, METRICS_GENERATION_CNT - 1)],
				mark->value);
		worker->gc_cnt++;
	}
}

void metrics_worker_iteration(struct metrics_worker *worker, int64_t time_ns)
{
	if (worker != NULL && time_ns > 0)
		metrics_observe(worker->host->metrics, worker->iteration, time_ns);
}

/* --- CPU accounts --- */

static void take_account(struct metrics_worker *worker, const struct ring_record *record)
{
	int64_t cpu_ns = record->value, delay_ns = (int64_t)record->extra;
	bool forward =
		worker->cpu_ns >= 0 && cpu_ns >= worker->cpu_ns && delay_ns >= worker->delay_ns;

	if (forward) { /* else the first record, or the training thread changed */
		metrics_add(worker->host->metrics, worker->cpu,
			    (uint64_t)(cpu_ns - worker->cpu_ns));
		metrics_observe(worker->host->metrics, worker->run_delay,
				delay_ns - worker->delay_ns);
	}
	worker->cpu_ns = cpu_ns;
	worker->delay_ns = delay_ns;
}

/* --- GPUs --- */

static struct metrics_text *text_of(struct metrics_worker *worker, uint32_t string)
{
	struct metrics_text none = { 0 };

	while (worker->texts.cnt <= string) {
		if (vec_push(&worker->texts, none) < 0)
			return NULL;
	}
	return &worker->texts.data[string];
}

static void take_kernel(struct metrics_worker *worker, const struct ring_record *record)
{
	uint32_t string = flight_gpu_string(record->extra);
	const char *kind = kernel_kind(worker->log.strings.data[string]);
	struct metrics_text *text = text_of(worker, string);

	if (text == NULL)
		return;
	if (text->kernel == 0)
		text->kernel = metrics_worker_series(worker, METRIC_KERNEL, kind) + 1;
	metrics_observe(worker->host->metrics, text->kernel - 1, record->value);
	if (worker->host->xpu != NULL)
		metrics_xpu_kernel(worker->host->xpu, worker, kind, record->value);
}

static void take_memop(struct metrics_worker *worker, const struct ring_record *record)
{
	uint32_t string = flight_gpu_string(record->extra);
	struct metrics_text *text = text_of(worker, string);
	int64_t bytes = elements_decode(flight_gpu_size(record->extra));

	if (text == NULL)
		return;
	if (text->memop == 0) {
		const char *kind = memop_kind(worker->log.strings.data[string]);

		text->memop = metrics_worker_series(worker, METRIC_GPU_MEMOP, kind) + 1;
		text->memop_bytes = metrics_worker_series(worker, METRIC_GPU_MEMOP_BYTES, kind) + 1;
	}
	metrics_observe(worker->host->metrics, text->memop - 1, record->value);
	if (bytes > 0)
		metrics_add(worker->host->metrics, text->memop_bytes - 1, (uint64_t)bytes);
	if (worker->host->xpu != NULL)
		metrics_xpu_memory(worker, memop_kind(worker->log.strings.data[string]));
}

/* --- the recorder --- */

/* Counts the record and those behind it that belong to it. Returns how many; 0: incomplete yet. */
static size_t take_record(struct metrics_worker *worker, const struct ring_record *r, size_t left)
{
	struct matmul matmul;

	switch (r->kind) {
	case FLIGHT_COLLECTIVE:
	case FLIGHT_COLLECTIVE_DONE:
	case FLIGHT_NETWORK:
		return metrics_take_collective(worker, r, left);
	case FLIGHT_NETWORK_SEND:
	case FLIGHT_NETWORK_RECV:
		metrics_take_network_steps(worker, r);
		return 1;
	case FLIGHT_CALLS:
		metrics_take_calls(worker, r);
		return 1;
	case FLIGHT_TIMED:
		if (left == 1)
			return 0;
		if (!matmul_of(&r[1], &matmul)) {
			metrics_take_timed(worker, r, NULL);
			return 1;
		}
		metrics_take_timed(worker, r, &matmul);
		return 2;
	default:
		return 1;
	}
}

/*
 * Counts the lane's records. The last records may be incomplete; they are kept for the next
 * call. Returns how many were counted.
 */
static size_t take_lane(struct metrics_worker *worker, const record_vec *records)
{
	size_t i = 0;

	while (i < records->cnt) {
		size_t cnt = take_record(worker, &records->data[i], records->cnt - i);

		if (cnt == 0)
			break;
		i += cnt;
	}
	return i;
}

/* Counts GPU records only: collectives are in both rings and are counted from the lane. */
static void take_window(struct metrics_worker *worker, const record_vec *records)
{
	vec_foreach(record, records) {
		if (record->kind == FLIGHT_GPU_KERNEL)
			take_kernel(worker, record);
		else if (record->kind == FLIGHT_GPU_MEMOP)
			take_memop(worker, record);
		else if (record->kind == FLIGHT_GPU_API && worker->host->xpu != NULL)
			metrics_xpu_memory(
				worker, worker->log.strings.data[flight_gpu_string(record->extra)]);
	}
}

/* Lost marks are counted by metrics_worker_state(), so they are subtracted here. */
static void count_lost(struct metrics_worker *worker)
{
	struct flightlog_drops drops = worker->log.drops;
	uint64_t now[ARRAY_SIZE(drop_reasons)];

	_Static_assert(sizeof(now) == sizeof(drops), "counters and nothing else");
	drops.overrun -= MIN(drops.overrun, worker->log.marks_tail.overrun);
	drops.torn -= MIN(drops.torn, worker->log.marks_tail.torn);
	memcpy(now, &drops, sizeof(now));
	for (size_t i = 0; i < ARRAY_SIZE(now); i++) {
		if (now[i] > worker->lost[i])
			metrics_add(worker->host->metrics,
				    metrics_worker_series(worker, METRIC_LOST, drop_reasons[i]),
				    now[i] - worker->lost[i]);
		worker->lost[i] = MAX(worker->lost[i], now[i]);
	}
}

void metrics_worker_follow(struct metrics_worker *worker, const struct flight *flight,
			   bool with_window)
{
	if (worker == NULL || flightlog_take(&worker->log, flight, with_window) < 0)
		return; /* out of memory: the next call retries */
	vec_foreach(sample, &worker->log.samples) {
		if (sample->kind == FLIGHT_CPU)
			take_account(worker, sample);
	}
	vec_foreach(lane, &worker->log.lanes) {
		size_t taken = take_lane(worker, &lane->records);

		lane->records.cnt -= taken;
		if (lane->records.cnt > 0)
			memmove(lane->records.data, lane->records.data + taken,
				lane->records.cnt * sizeof(*lane->records.data));
		take_window(worker, &lane->window);
		lane->window.cnt = 0;
	}
	stream_settle(&worker->host->stream);
	worker->log.samples.cnt = worker->log.marks.cnt = 0;
	count_lost(worker);
}

/* --- state --- */

void metrics_worker_state(struct metrics_worker *worker, const struct wire_state *state,
			  int64_t mono_to_wall_ns)
{
	struct metrics *metrics;

	if (worker == NULL)
		return;
	metrics = worker->host->metrics;
	for (uint32_t i = 0; i < METRICS_PHASE_CNT; i++)
		metrics_set(metrics, worker->state[i], state->phase == i);
	if (state->world_size > 0)
		metrics_set(metrics, worker->world_size, state->world_size);
	if (state->last_ns > 0)
		metrics_set(metrics, worker->last_mark,
			    (double)(state->last_ns + mono_to_wall_ns) / NSEC_PER_SEC);
	metrics_set(metrics, worker->recent, (double)state->iteration_ns / NSEC_PER_SEC);
	metrics_set(metrics, worker->baseline, (double)state->baseline_ns / NSEC_PER_SEC);
	metrics_set(metrics, worker->best, (double)state->best_ns / NSEC_PER_SEC);
	metrics_set(metrics, worker->slow_since, (double)state->slow_since_step);
	if (state->lost > worker->marks_lost)
		metrics_add(metrics, metrics_worker_series(worker, METRIC_LOST, "marks"),
			    state->lost - worker->marks_lost);
	worker->marks_lost = MAX(worker->marks_lost, state->lost);
	worker->had_window |= state->phase == PHASE_PROFILING;
	if (worker->host->xpu != NULL)
		metrics_xpu_state(worker->host->xpu, worker, state->phase);
}
