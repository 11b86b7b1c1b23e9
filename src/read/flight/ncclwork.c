/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collectives as recorded by the NCCL plugin, and their network transfers: on lanes of their
 * own, since both overlap with the events of threads.
 */
#include "read/flight/flight_parts.h"

#include <errno.h>
#include <stdlib.h>

struct nccl_event {
	int64_t start_ns, end_ns;
	uint32_t tid, name, args;
	size_t order;
};

typedef VEC(struct nccl_event) nccl_vec;

static bool in_window(const struct flight_pass *pass, const struct ring_record *record)
{
	return record->time_ns < pass->end_ns && record->time_ns + record->value > pass->start_ns;
}

static int add_record(struct flight_pass *pass, uint32_t tid, const struct ring_record *records,
		      size_t cnt, nccl_vec *to)
{
	const char *name = pass->log->strings.data[records[0].extra];
	struct nccl_event event = {
		.start_ns = records[0].time_ns,
		.end_ns = records[0].time_ns + records[0].value,
		.tid = tid,
		.order = to->cnt,
	};

	event.name = flight_intern(pass->trace, name[0] != '\0' ? name : "nccl");
	if (event.name == STRTAB_NONE ||
	    flight_collective_args(pass, records, cnt, &event.args) < 0)
		return -ENOMEM;
	return vec_push(to, event);
}

/* kind: FLIGHT_COLLECTIVE or FLIGHT_NETWORK. They are in the rings that are always written. */
static int collect(struct flight_pass *pass, enum flight_kind kind, nccl_vec *ret)
{
	int error = 0;

	vec_foreach(lane, &pass->log->lanes) {
		const record_vec *records = &lane->records;

		for (size_t i = 0; i < records->cnt && error == 0; i++) {
			const struct ring_record *at = &records->data[i];

			if (at->kind == kind && in_window(pass, at) &&
			    (kind == FLIGHT_NETWORK || flight_is_nccl(at, records->cnt - i)))
				error = add_record(pass, lane->tid, at, records->cnt - i, ret);
		}
	}
	return error;
}

static int by_thread_and_start(const void *a, const void *b)
{
	const struct nccl_event *x = a, *y = b;

	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return (x->order > y->order) - (x->order < y->order);
}

/*
 * Calls of one group are queued together by one thread: each has begun when the next
 * begins, and none ends before the last. So the next one's beginning is an end.
 */
static void end_at_the_next(nccl_vec *events)
{
	for (size_t i = 0; i + 1 < events->cnt; i++) {
		if (events->data[i].tid == events->data[i + 1].tid)
			events->data[i].end_ns =
				MIN(events->data[i].end_ns, events->data[i + 1].start_ns);
	}
}

/* number: of the track, below all thread ids. */
static int put(struct flight_pass *pass, const nccl_vec *events, int number, const char *name)
{
	int ret = 0, lane;

	if (events->cnt == 0)
		return 0;
	lane = build_lane(pass->build, (struct ident){ .num = pass->log->pid },
			  (struct ident){ .num = number }, LANE_OTHER);
	if (lane == -ENOSPC) {
		pass->trace->drops.unsupported_overlap += events->cnt;
		return 0;
	}
	if (lane < 0)
		return lane;
	pass->trace->lanes[lane].name = flight_intern(pass->trace, name);
	if (pass->trace->lanes[lane].name == STRTAB_NONE)
		return -ENOMEM;
	for (size_t i = 0; i < events->cnt && ret == 0; i++) {
		const struct nccl_event *at = &events->data[i];
		struct event event = { .kind = KIND_ANNOTATION,
				       .lane = (uint16_t)lane,
				       .name = at->name,
				       .args = at->args };

		ret = flight_add(pass, event, at->start_ns, at->end_ns, NULL);
	}
	return ret;
}

static int add_track(struct flight_pass *pass, enum flight_kind kind, int number, const char *name)
{
	nccl_vec events = { 0 };
	int ret = collect(pass, kind, &events);

	if (ret == 0 && events.cnt > 0)
		qsort(events.data, events.cnt, sizeof(*events.data), by_thread_and_start);
	if (kind == FLIGHT_COLLECTIVE)
		end_at_the_next(&events);
	if (ret == 0)
		ret = put(pass, &events, number, name);
	vec_done(&events);
	return ret;
}

int flight_nccl(struct flight_pass *pass)
{
	int ret = add_track(pass, FLIGHT_COLLECTIVE, -1, "NCCL");

	return ret == 0 ? add_track(pass, FLIGHT_NETWORK, -2, "NCCL, network") : ret;
}
