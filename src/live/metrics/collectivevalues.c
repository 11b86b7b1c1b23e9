/* SPDX-License-Identifier: Apache-2.0 */
/* Turns a worker's records of collectives and network transfers into values of its series. */
#include "live/metrics/metrics_parts.h"

#include <math.h>
#include <string.h>
#include <xxhash.h>

#define BANDWIDTH_NS (10 * NSEC_PER_SEC)
#define COMMON_END_NS (INT64_MAX / 2) /* end of a collective of which only the duration is known */
#define OPERATION_MAX 64u	      /* kinds of collectives of a worker; the last is "other" */

static uint32_t operation_series(const struct metrics_worker *worker,
				 const struct metrics_operation *operation, enum metric metric)
{
	return metrics_series(worker->host->metrics, metric,
			      METRIC_VALUES(worker->rank, worker->local_rank,
					    operation->words.operation, operation->words.backend,
					    operation->words.dtype));
}

/* Each series is made with its first value: a network thread, for instance, records no payload. */
static void open_operation(struct metrics_operation *operation)
{
	operation->payload = operation->launch = operation->seconds = METRICS_NONE;
	operation->wait = operation->transfer = operation->bus_bytes = METRICS_NONE;
	operation->network = operation->network_bytes = operation->rate = METRICS_NONE;
}

/* Observes the duration of the collective, or of its launch. */
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

/* Makes the series of known wait times and bus bandwidth. */
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

/* A key that is equal on all members of a collective. */
static uint64_t collective_key(const struct flightlog *log, const char *operation,
			       const struct ring_record *args, const struct ring_record *group)
{
	const char *name = log->strings.data[(uint32_t)group->value];
	uint64_t hash = XXH3_64bits_withSeed(name, strlen(name), args->extra);

	return XXH3_64bits_withSeed(operation, strlen(operation), hash);
}

/* A key of collectives without a number that may be the same; group: NULL, or its record. */
static uint64_t alike_key(const struct flightlog *log, const char *operation, int64_t bytes,
			  const struct ring_record *group)
{
	const char *name = group != NULL ? log->strings.data[(uint32_t)group->value] : "";
	uint64_t hash = XXH3_64bits_withSeed(name, strlen(name), (uint64_t)bytes);

	return XXH3_64bits_withSeed(operation, strlen(operation), hash);
}

/* args, group: the records behind the collective; NULL: none. */
static void match_or_settle(struct metrics_worker *worker, struct stream_member *member,
			    const struct ring_record *args, const struct ring_record *group)
{
	const char *name = worker->operations.data[member->what].words.operation;
	size_t here = worker->host->worker_cnt;
	bool numbered = args != NULL && (int64_t)args->extra >= 0, is_here;

	if (member->group_size == 0 && !numbered && collective_is_mutual(name) &&
	    (size_t)worker->log.world_size == here)
		member->group_size = (uint32_t)here;
	is_here = member->group_size >= 2 && member->group_size <= here;
	if (is_here && numbered && !collective_is_pair(name))
		stream_add(&worker->host->stream, collective_key(&worker->log, name, args, group),
			   member);
	else if (is_here && !numbered && collective_is_mutual(name))
		stream_add_alike(&worker->host->stream,
				 alike_key(&worker->log, name, member->bytes, group), member);
	else
		metrics_settle(worker, member, -1);
}

/* A record of a collective or transfer, and the records behind it with its details. */
struct collective_event {
	const struct ring_record *record, *args, *group, *how; /* NULL: none */
	size_t cnt;
};

/* The kind of collective of the event; NULL when out of memory. */
static struct metrics_operation *operation_of(struct metrics_worker *worker,
					      const struct collective_event *event)
{
	const struct flightlog *log = &worker->log;
	uint32_t dtype = event->how != NULL ? (uint32_t)(event->how->value >> 32) : 0;
	struct collective_words words;
	uint32_t at;

	collective_words(log->strings.data[event->record->extra],
			 event->group != NULL ? log->strings.data[event->group->extra] : "",
			 dtype < log->strings.cnt ? log->strings.data[dtype] : "", &words);
	at = find_operation(worker, &words);
	return at != UINT32_MAX ? &worker->operations.data[at] : NULL;
}

static void take_collective(struct metrics_worker *worker, const struct collective_event *event)
{
	struct metrics_operation *operation = operation_of(worker, event);
	struct stream_member member = { .owner = worker,
					.start_ns = event->record->time_ns,
					.dur_ns = event->record->value,
					.bytes = event->args != NULL ? event->args->value : -1 };
	bool launch;

	if (operation == NULL)
		return;
	if (event->group != NULL)
		member.group_size = (uint32_t)(event->group->value >> 32);
	member.what = (uint32_t)(operation - worker->operations.data);
	launch = operation->words.launch;
	observe_time(worker, operation, launch, member.dur_ns);
	if (member.bytes >= 0)
		observe_payload(worker, operation, member.bytes);
	if (!launch)
		match_or_settle(worker, &member, event->args, event->group);
}

/*
 * A collective timed on the GPU ends on all members at the same time: the member with the
 * shortest duration came last, whatever the clocks.
 */
static void take_done(struct metrics_worker *worker, const struct collective_event *event)
{
	struct metrics_operation *operation = operation_of(worker, event);
	struct stream_member member = { .owner = worker,
					.start_ns = COMMON_END_NS - event->record->value,
					.dur_ns = event->record->value,
					.known_ns = event->record->time_ns,
					.bytes = event->args != NULL ? event->args->value : -1 };

	if (operation == NULL)
		return;
	if (event->group != NULL)
		member.group_size = (uint32_t)(event->group->value >> 32);
	member.what = (uint32_t)(operation - worker->operations.data);
	observe_time(worker, operation, false, member.dur_ns);
	match_or_settle(worker, &member, event->args, event->group);
}

static void take_network(struct metrics_worker *worker, const struct collective_event *event)
{
	struct metrics_operation *operation = operation_of(worker, event);
	struct metrics *metrics = worker->host->metrics;

	if (operation == NULL)
		return;
	if (operation->network == METRICS_NONE) {
		operation->network = operation_series(worker, operation, METRIC_NETWORK);
		operation->network_bytes =
			operation_series(worker, operation, METRIC_NETWORK_BYTES);
	}
	metrics_observe(metrics, operation->network, event->record->value);
	if (event->args != NULL && event->args->value > 0)
		metrics_add(metrics, operation->network_bytes, (uint64_t)event->args->value);
}

static void add_step(struct metrics_worker *worker, const char *part, uint32_t time_us)
{
	if (time_us > 0)
		metrics_add(worker->host->metrics,
			    metrics_worker_series(worker, METRIC_NETWORK_STEP, part),
			    (uint64_t)time_us * NSEC_PER_USEC);
}

/* Adds the times that a transfer waited, by cause. */
void metrics_take_network_steps(struct metrics_worker *worker, const struct ring_record *record)
{
	uint32_t first_us = (uint32_t)((uint64_t)record->value >> 32);
	uint32_t second_us = (uint32_t)record->value, third_us = (uint32_t)(record->extra >> 32);
	bool send = record->kind == FLIGHT_NETWORK_SEND;

	add_step(worker, send ? "send_gpu" : "receive_wire", first_us);
	add_step(worker, send ? "send_peer" : "receive_flush", second_us);
	add_step(worker, send ? "send_wire" : "receive_gpu", third_us);
}

static struct collective_event read_event(const struct ring_record *r, size_t left)
{
	struct collective_event event = { .record = r, .cnt = 1 };

	if (left > 1 && r[1].kind == FLIGHT_COLLECTIVE_ARGS)
		event.args = &r[event.cnt++];
	if (left > event.cnt && r[event.cnt].kind == FLIGHT_COLLECTIVE_GROUP)
		event.group = &r[event.cnt++];
	if (left > event.cnt && r[event.cnt].kind == FLIGHT_COLLECTIVE_HOW)
		event.how = &r[event.cnt++];
	return event;
}

/* Records of a complete event: those of NCCL's plugin have a fourth, FLIGHT_COLLECTIVE_HOW. */
static size_t expected_cnt(const struct metrics_worker *worker, const struct ring_record *record)
{
	const char *name = worker->log.strings.data[record->extra];
	bool by_nccl = strncmp(name, "nccl", 4) == 0 && name[4] != ':';

	if (record->kind == FLIGHT_COLLECTIVE_DONE)
		return 4;
	return record->kind == FLIGHT_COLLECTIVE && by_nccl ? 4 : 3;
}

size_t metrics_take_collective(struct metrics_worker *worker, const struct ring_record *r,
			       size_t left)
{
	struct collective_event event = read_event(r, left);

	if (event.cnt == left && event.cnt < expected_cnt(worker, r))
		return 0;
	if (r->kind == FLIGHT_COLLECTIVE)
		take_collective(worker, &event);
	else if (r->kind == FLIGHT_COLLECTIVE_DONE)
		take_done(worker, &event);
	else
		take_network(worker, &event);
	return event.cnt;
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
