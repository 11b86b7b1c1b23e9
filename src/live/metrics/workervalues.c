/* SPDX-License-Identifier: Apache-2.0 */
/* What one worker recorded becomes values of its series. */
#include "live/metrics/metrics_parts.h"
#include "model/elements.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#define BANDWIDTH_NS (10 * NSEC_PER_SEC)
#define COMMON_END_NS (INT64_MAX / 2) /* of times of which only the length is known */
#define OPERATION_MAX 64u /* kinds of collectives of a worker; the last holds the others */

static const char *const phase_names[METRICS_PHASE_CNT] = {
	[PHASE_LEARNING] = "learning", [PHASE_STEADY] = "steady",	[PHASE_SLOW] = "slow",
	[PHASE_BLOCKED] = "blocked",   [PHASE_PROFILING] = "profiling", [PHASE_GONE] = "gone",
	[PHASE_SILENT] = "disabled",
};

static const char *const mark_names[METRICS_MARK_CNT] = {
	[MARK_DATALOADER] = "dataloader", [MARK_DATALOADER_END] = "dataloader_end",
	[MARK_OPTIMIZER] = "optimizer",	  [MARK_ITERATION] = "iteration",
	[MARK_GC] = "garbage_collection", [MARK_OPTIMIZER_BEGIN] = "optimizer_begin",
};

static const char *const drop_reasons[] = {
#define X(field, what) #field,
	FLIGHTLOG_DROP_LIST(X)
#undef X
};

static uint32_t series_of(struct metrics_worker *worker, enum metric metric, const char *third)
{
	return metrics_series(worker->host->metrics, metric,
			      METRIC_VALUES(worker->rank, worker->local_rank, third));
}

/* --- life --- */

static void make_series(struct metrics_worker *worker)
{
	worker->iteration = series_of(worker, METRIC_ITERATION, NULL);
	worker->loader = series_of(worker, METRIC_LOADER, NULL);
	worker->run_delay = series_of(worker, METRIC_RUN_DELAY, NULL);
	worker->cpu = series_of(worker, METRIC_THREAD_CPU, NULL);
	worker->last_mark = series_of(worker, METRIC_LAST_MARK, NULL);
	worker->recent = series_of(worker, METRIC_ITERATION_RECENT, NULL);
	worker->baseline = series_of(worker, METRIC_ITERATION_BASELINE, NULL);
	worker->world_size = metrics_series(worker->host->metrics, METRIC_WORLD_SIZE, NULL);
	for (size_t i = 0; i < METRICS_PHASE_CNT; i++)
		worker->state[i] = series_of(worker, METRIC_WORKER_STATE, phase_names[i]);
	for (size_t i = MARK_DATALOADER; i < METRICS_MARK_CNT; i++)
		worker->marks[i] = series_of(worker, METRIC_MARKS, mark_names[i]);
	for (size_t i = 0; i < METRICS_GENERATION_CNT; i++)
		worker->gc[i] =
			series_of(worker, METRIC_GC, ((const char[]){ (char)('0' + i), 0 }));
	for (size_t i = 0; i < ARRAY_SIZE(drop_reasons); i++)
		(void)series_of(worker, METRIC_LOST, drop_reasons[i]); /* 0 until there are some */
	metrics_add(worker->host->metrics, series_of(worker, METRIC_WORKER_STARTS, NULL), 1);
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

/* --- accounts of the kernel --- */

static void take_account(struct metrics_worker *worker, const struct ring_record *record)
{
	int64_t cpu_ns = record->value, delay_ns = (int64_t)record->extra;
	bool forward =
		worker->cpu_ns >= 0 && cpu_ns >= worker->cpu_ns && delay_ns >= worker->delay_ns;

	if (forward) { /* else the first one, or another thread trains now */
		metrics_add(worker->host->metrics, worker->cpu,
			    (uint64_t)(cpu_ns - worker->cpu_ns));
		metrics_observe(worker->host->metrics, worker->run_delay,
				delay_ns - worker->delay_ns);
	}
	worker->cpu_ns = cpu_ns;
	worker->delay_ns = delay_ns;
}

/* --- collectives --- */

static uint32_t operation_series(const struct metrics_worker *worker,
				 const struct metrics_operation *operation, enum metric metric)
{
	return metrics_series(worker->host->metrics, metric,
			      METRIC_VALUES(worker->rank, worker->local_rank,
					    operation->words.operation, operation->words.backend,
					    operation->words.dtype));
}

/* Its series are made when there is something to count: a network thread, say, tells no payload. */
static void open_operation(struct metrics_operation *operation)
{
	operation->payload = operation->launch = operation->seconds = METRICS_NONE;
	operation->wait = operation->transfer = operation->bus_bytes = METRICS_NONE;
	operation->network = operation->network_bytes = operation->rate = METRICS_NONE;
}

/* How long it took, or took to be queued. */
static void observe_time(const struct metrics_worker *worker, struct metrics_operation *operation,
			 bool launch, int64_t dur_ns)
{
	uint32_t *series = launch ? &operation->launch : &operation->seconds;

	if (*series == METRICS_NONE)
		*series = operation_series(worker, operation,
					   launch ? METRIC_COLLECTIVE_LAUNCH : METRIC_COLLECTIVE);
	metrics_observe(worker->host->metrics, *series, dur_ns);
}

static void observe_payload(const struct metrics_worker *worker,
			    struct metrics_operation *operation, int64_t bytes)
{
	if (operation->payload == METRICS_NONE)
		operation->payload = operation_series(worker, operation, METRIC_COLLECTIVE_BYTES);
	metrics_observe(worker->host->metrics, operation->payload, bytes);
}

/* Index of this kind of collective, UINT32_MAX when out of memory. */
static uint32_t find_operation(struct metrics_worker *worker, const struct collective_words *words)
{
	struct metrics_operation fresh = { .words = *words };

	for (size_t i = 0; i < worker->operations.cnt; i++) {
		const struct collective_words *known = &worker->operations.data[i].words;

		if (strcmp(known->operation, words->operation) == 0 &&
		    strcmp(known->backend, words->backend) == 0 &&
		    strcmp(known->dtype, words->dtype) == 0)
			return (uint32_t)i;
	}
	if (worker->operations.cnt == OPERATION_MAX)
		return OPERATION_MAX - 1;
	if (worker->operations.cnt == OPERATION_MAX - 1)
		fresh.words = (struct collective_words){ "other", "other", "other", words->launch };
	open_operation(&fresh);
	if (vec_push(&worker->operations, fresh) < 0)
		return UINT32_MAX;
	return (uint32_t)worker->operations.cnt - 1;
}

/* Series that are only there where something is known. */
static void open_known(const struct metrics_worker *worker, struct metrics_operation *operation,
		       bool waits, bool bus)
{
	if (waits && operation->wait == METRICS_NONE) {
		operation->wait = operation_series(worker, operation, METRIC_COLLECTIVE_WAIT);
		operation->transfer =
			operation_series(worker, operation, METRIC_COLLECTIVE_TRANSFER);
	}
	if (bus && operation->bus_bytes == METRICS_NONE) {
		operation->bus_bytes = operation_series(worker, operation, METRIC_BUS_BYTES);
		operation->bus_time = operation_series(worker, operation, METRIC_BUS_TIME);
		operation->bandwidth = operation_series(worker, operation, METRIC_BUS_BANDWIDTH);
		operation->rate = operation_series(worker, operation, METRIC_BUS_RATE);
	}
}

static void count_bus(struct metrics_worker *worker, struct metrics_operation *operation,
		      double bytes, int64_t time_ns)
{
	struct metrics *metrics = worker->host->metrics;

	metrics_add(metrics, operation->bus_bytes, (uint64_t)llround(bytes));
	metrics_add(metrics, operation->bus_time, (uint64_t)time_ns);
	metrics_observe(metrics, operation->rate, llround(bytes * NSEC_PER_SEC / (double)time_ns));
	operation->recent_bytes += bytes;
	operation->recent_ns += time_ns;
}

void metrics_settle(void *owner, const struct stream_member *member, int64_t last_start_ns)
{
	struct metrics_worker *worker = owner;
	struct metrics_operation *operation = &worker->operations.data[member->what];
	struct metrics *metrics = worker->host->metrics;
	int64_t wait_ns = 0, move_ns = member->dur_ns;
	bool local =
		last_start_ns >= 0 || (size_t)worker->log.world_size == worker->host->worker_cnt;
	double bytes = 0;

	if (last_start_ns >= 0) {
		wait_ns = MIN(MAX(last_start_ns - member->start_ns, (int64_t)0), member->dur_ns);
		move_ns -= wait_ns;
	}
	if (member->bytes > 0 && member->group_size > 0)
		bytes = (double)member->bytes *
			collective_bus_factor(operation->words.operation, member->group_size);
	open_known(worker, operation, last_start_ns >= 0, bytes > 0 && move_ns > 0);
	if (last_start_ns >= 0) {
		metrics_observe(metrics, operation->wait, wait_ns);
		metrics_observe(metrics, operation->transfer, move_ns);
	}
	if (bytes > 0 && move_ns > 0)
		count_bus(worker, operation, bytes, move_ns);
	if (worker->host->xpu != NULL)
		metrics_xpu_collective(
			worker->host->xpu,
			&(struct metrics_xpu_event){ .worker = worker,
						     .operation = operation->words.operation,
						     .dtype = operation->words.dtype,
						     .transport = local ? "IntraNode" : "InterNode",
						     .dur_ns = member->dur_ns,
						     .bytes = member->bytes,
						     .bus_bytes = bytes });
}

/* Everybody in a collective has the same. */
static uint64_t collective_key(const struct flightlog *log, const char *operation,
			       const struct ring_record *args, const struct ring_record *group)
{
	const char *name = log->strings.data[(uint32_t)group->value];
	uint64_t hash = XXH3_64bits_withSeed(name, strlen(name), args->extra);

	return XXH3_64bits_withSeed(operation, strlen(operation), hash);
}

/* args, group: the records behind it; NULL: there are none. */
static void match_or_settle(struct metrics_worker *worker, struct stream_member *member,
			    const struct ring_record *args, const struct ring_record *group)
{
	const char *name = worker->operations.data[member->what].words.operation;
	size_t here = worker->host->worker_cnt;
	uint64_t bytes = (uint64_t)member->bytes;

	if (args != NULL && (int64_t)args->extra >= 0 && member->group_size > 1 &&
	    member->group_size <= here && !collective_is_pair(name)) {
		stream_add(&worker->host->stream, collective_key(&worker->log, name, args, group),
			   member);
	} else if (member->group_size == 0 && worker->log.world_size > 1 &&
		   (size_t)worker->log.world_size == here && collective_is_mutual(name)) {
		member->group_size = (uint32_t)worker->log.world_size;
		stream_add_alike(&worker->host->stream,
				 XXH3_64bits_withSeed(name, strlen(name), bytes), member);
	} else {
		metrics_settle(worker, member, -1);
	}
}

/* A record and those behind it that tell more of it. */
struct told {
	const struct ring_record *record, *args, *group, *how; /* NULL: there is none */
	size_t cnt;
};

/* The kind of collective that this is about; NULL when out of memory. */
static struct metrics_operation *operation_of(struct metrics_worker *worker,
					      const struct told *told)
{
	const struct flightlog *log = &worker->log;
	uint32_t dtype = told->how != NULL ? (uint32_t)(told->how->value >> 32) : 0;
	struct collective_words words;
	uint32_t at;

	collective_words(log->strings.data[told->record->extra],
			 told->group != NULL ? log->strings.data[told->group->extra] : "",
			 dtype < log->strings.cnt ? log->strings.data[dtype] : "", &words);
	at = find_operation(worker, &words);
	return at != UINT32_MAX ? &worker->operations.data[at] : NULL;
}

static void take_collective(struct metrics_worker *worker, const struct told *told)
{
	struct metrics_operation *operation = operation_of(worker, told);
	struct stream_member member = { .owner = worker,
					.start_ns = told->record->time_ns,
					.dur_ns = told->record->value,
					.bytes = told->args != NULL ? told->args->value : -1 };
	bool launch;

	if (operation == NULL)
		return;
	if (told->group != NULL)
		member.group_size = (uint32_t)(told->group->value >> 32);
	member.what = (uint32_t)(operation - worker->operations.data);
	launch = operation->words.launch;
	observe_time(worker, operation, launch, member.dur_ns);
	if (member.bytes >= 0)
		observe_payload(worker, operation, member.bytes);
	if (!launch)
		match_or_settle(worker, &member, told->args, told->group);
}

/*
 * What was timed on the GPU ends on all members together: who was there for the shortest time
 * came last, and no clock is needed to say so.
 */
static void take_done(struct metrics_worker *worker, const struct told *told)
{
	struct metrics_operation *operation = operation_of(worker, told);
	struct stream_member member = { .owner = worker,
					.start_ns = COMMON_END_NS - told->record->value,
					.dur_ns = told->record->value,
					.known_ns = told->record->time_ns,
					.bytes = told->args != NULL ? told->args->value : -1 };

	if (operation == NULL)
		return;
	if (told->group != NULL)
		member.group_size = (uint32_t)(told->group->value >> 32);
	member.what = (uint32_t)(operation - worker->operations.data);
	observe_time(worker, operation, false, member.dur_ns);
	match_or_settle(worker, &member, told->args, told->group);
}

static void take_network(struct metrics_worker *worker, const struct told *told)
{
	struct metrics_operation *operation = operation_of(worker, told);
	struct metrics *metrics = worker->host->metrics;

	if (operation == NULL)
		return;
	if (operation->network == METRICS_NONE) {
		operation->network = operation_series(worker, operation, METRIC_NETWORK);
		operation->network_bytes =
			operation_series(worker, operation, METRIC_NETWORK_BYTES);
	}
	metrics_observe(metrics, operation->network, told->record->value);
	if (told->args != NULL && told->args->value > 0)
		metrics_add(metrics, operation->network_bytes, (uint64_t)told->args->value);
}

static void add_step(struct metrics_worker *worker, const char *part, uint32_t time_us)
{
	if (time_us > 0)
		metrics_add(worker->host->metrics, series_of(worker, METRIC_NETWORK_STEP, part),
			    (uint64_t)time_us * NSEC_PER_USEC);
}

/* What the steps of a transfer waited for. */
static void take_steps(struct metrics_worker *worker, const struct ring_record *record)
{
	uint32_t first_us = (uint32_t)((uint64_t)record->value >> 32);
	uint32_t second_us = (uint32_t)record->value, third_us = (uint32_t)(record->extra >> 32);
	bool send = record->kind == FLIGHT_NETWORK_SEND;

	add_step(worker, send ? "send_gpu" : "receive_wire", first_us);
	add_step(worker, send ? "send_peer" : "receive_flush", second_us);
	add_step(worker, send ? "send_wire" : "receive_gpu", third_us);
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
		text->kernel = series_of(worker, METRIC_KERNEL, kind) + 1;
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

		text->memop = series_of(worker, METRIC_GPU_MEMOP, kind) + 1;
		text->memop_bytes = series_of(worker, METRIC_GPU_MEMOP_BYTES, kind) + 1;
	}
	metrics_observe(worker->host->metrics, text->memop - 1, record->value);
	if (bytes > 0)
		metrics_add(worker->host->metrics, text->memop_bytes - 1, (uint64_t)bytes);
	if (worker->host->xpu != NULL)
		metrics_xpu_memory(worker, memop_kind(worker->log.strings.data[string]));
}

/* --- the recorder --- */

static struct told read_told(const struct ring_record *r, size_t left)
{
	struct told told = { .record = r, .cnt = 1 };

	if (left > 1 && r[1].kind == FLIGHT_COLLECTIVE_ARGS)
		told.args = &r[told.cnt++];
	if (left > told.cnt && r[told.cnt].kind == FLIGHT_COLLECTIVE_GROUP)
		told.group = &r[told.cnt++];
	if (left > told.cnt && r[told.cnt].kind == FLIGHT_COLLECTIVE_HOW)
		told.how = &r[told.cnt++];
	return told;
}

/* Of what NCCL tells itself a fourth record says how. */
static size_t told_cnt(const struct metrics_worker *worker, const struct ring_record *record)
{
	const char *name = worker->log.strings.data[record->extra];
	bool by_nccl = strncmp(name, "nccl", 4) == 0 && name[4] != ':';

	if (record->kind == FLIGHT_COLLECTIVE_DONE)
		return 4;
	return record->kind == FLIGHT_COLLECTIVE && by_nccl ? 4 : 3;
}

/* What begins here; NULL: nothing that is several records. */
static void (*taker_of(uint16_t kind))(struct metrics_worker *, const struct told *)
{
	switch (kind) {
	case FLIGHT_COLLECTIVE:
		return take_collective;
	case FLIGHT_COLLECTIVE_DONE:
		return take_done;
	case FLIGHT_NETWORK:
		return take_network;
	default:
		return NULL;
	}
}

/* A record that stands alone, or has one behind it. Returns how many were taken; 0: see below. */
static size_t take_other(struct metrics_worker *worker, const struct ring_record *r, size_t left)
{
	struct matmul matmul;

	switch (r->kind) {
	case FLIGHT_NETWORK_SEND:
	case FLIGHT_NETWORK_RECV:
		take_steps(worker, r);
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
 * A collective is several records; the last one may not be written yet, and they are kept for the
 * next time. Returns how many were taken.
 */
static size_t take_lane(struct metrics_worker *worker, const record_vec *records)
{
	for (size_t i = 0; i < records->cnt;) {
		const struct ring_record *r = &records->data[i];
		size_t left = records->cnt - i, cnt;
		struct told told;

		if (taker_of(r->kind) != NULL) {
			told = read_told(r, left);
			if (told.cnt == left && told.cnt < told_cnt(worker, r))
				return i;
			taker_of(r->kind)(worker, &told);
			cnt = told.cnt;
		} else {
			cnt = take_other(worker, r, left);
		}
		if (cnt == 0)
			return i;
		i += cnt;
	}
	return records->cnt;
}

/* Collectives stand in both rings: here only what runs on a GPU counts. */
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

/* Marks have their own way here, and their own count. */
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
				    series_of(worker, METRIC_LOST, drop_reasons[i]),
				    now[i] - worker->lost[i]);
		worker->lost[i] = MAX(worker->lost[i], now[i]);
	}
}

void metrics_worker_follow(struct metrics_worker *worker, const struct flight *flight,
			   bool with_window)
{
	if (worker == NULL || flightlog_take(&worker->log, flight, with_window) < 0)
		return; /* out of memory: next time there may be some */
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
	worker->log.samples.cnt = worker->log.marks.cnt = 0;
	count_lost(worker);
}

/* --- what it does now --- */

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
	if (state->lost > worker->marks_lost)
		metrics_add(metrics, series_of(worker, METRIC_LOST, "marks"),
			    state->lost - worker->marks_lost);
	worker->marks_lost = MAX(worker->marks_lost, state->lost);
	worker->had_window |= state->phase == PHASE_PROFILING;
	if (worker->host->xpu != NULL)
		metrics_xpu_state(worker->host->xpu, worker, state->phase);
}

void metrics_worker_tick(struct metrics_worker *worker, int64_t now_ns)
{
	vec_foreach(operation, &worker->operations) {
		if (operation->since_ns == 0)
			operation->since_ns = now_ns;
		if (now_ns - operation->since_ns < BANDWIDTH_NS || operation->recent_ns == 0)
			continue;
		metrics_set(worker->host->metrics, operation->bandwidth,
			    operation->recent_bytes * NSEC_PER_SEC / (double)operation->recent_ns);
		operation->recent_bytes = 0;
		operation->recent_ns = 0;
		operation->since_ns = now_ns;
	}
}
