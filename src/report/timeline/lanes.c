/* SPDX-License-Identifier: Apache-2.0 */
/* What threads wrote themselves: operators, exact calls, collectives. */
#include "report/timeline/timeline_parts.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* --- operators and calls --- */

static bool slice_kind_of(uint16_t kind, uint8_t *ret)
{
	switch (kind) {
	case FLIGHT_OPERATOR:
		*ret = SLICE_OPERATOR;
		return true;
	case FLIGHT_ANNOTATION:
		*ret = SLICE_ANNOTATION;
		return true;
	case FLIGHT_PYTHON:
		*ret = SLICE_FRAME;
		return true;
	case FLIGHT_C_CALL:
		*ret = SLICE_C_CALL;
		return true;
	default:
		return false;
	}
}

static int add_records(const record_vec *records, slice_vec *ret)
{
	for (size_t i = 0; i < records->cnt; i++) {
		const struct ring_record *record = &records->data[i];
		struct slice slice = { .start_ns = record->time_ns,
				       .end_ns = record->time_ns + record->value,
				       .cpu_ns = -1,
				       .what = (uint32_t)record->extra,
				       .order = UINT32_MAX - (uint32_t)i };

		/* Written at their ends: what is written later is outside. */
		if (slice_kind_of(record->kind, &slice.kind) && vec_push(ret, slice) < 0)
			return -ENOMEM;
	}
	return 0;
}

int timeline_lane(const struct flightlog_lane *lane, slice_vec *ret)
{
	int error = add_records(&lane->records, ret);

	return error == 0 ? add_records(&lane->window, ret) : error;
}

/* --- collectives --- */

/* records[0] is a collective; the two behind it belong to it if their kinds say so. */
struct comm timeline_read_comm(const struct ring_record *records, size_t cnt)
{
	struct comm comm = { .start_ns = records[0].time_ns,
			     .dur_ns = records[0].value,
			     .bytes = -1,
			     .seq = -1,
			     .name = (uint32_t)records[0].extra };

	if (cnt < 3 || records[1].kind != FLIGHT_COLLECTIVE_ARGS ||
	    records[2].kind != FLIGHT_COLLECTIVE_GROUP)
		return comm;
	comm.bytes = records[1].value;
	comm.seq = (int64_t)records[1].extra;
	comm.group_size = (uint32_t)((uint64_t)records[2].value >> 32);
	comm.group = (uint32_t)records[2].value;
	comm.what = (uint32_t)records[2].extra;
	return comm;
}

static int by_start(const void *a, const void *b)
{
	const struct comm *x = a, *y = b;

	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	if (x->dur_ns != y->dur_ns)
		return x->dur_ns > y->dur_ns ? -1 : 1;
	return (x->name > y->name) - (x->name < y->name);
}

/* A collective may be in both rings of a lane. */
static void drop_doubles(comm_vec *comms)
{
	size_t kept = 0;

	if (comms->cnt > 0)
		qsort(comms->data, comms->cnt, sizeof(*comms->data), by_start);
	for (size_t i = 0; i < comms->cnt; i++) {
		if (kept == 0 || by_start(&comms->data[kept - 1], &comms->data[i]) != 0)
			comms->data[kept++] = comms->data[i];
	}
	comms->cnt = kept;
}

static int add_comms(const record_vec *records, comm_vec *ret)
{
	for (size_t i = 0; i < records->cnt; i++) {
		if (records->data[i].kind == FLIGHT_COLLECTIVE &&
		    !flight_is_nccl(&records->data[i], records->cnt - i) &&
		    vec_push(ret, timeline_read_comm(&records->data[i], records->cnt - i)) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* FNV-1a; its end is part of the text, so that "ab","c" is not "a","bc". */
static uint64_t add_to_key(uint64_t key, const char *text)
{
	const unsigned char *p = (const unsigned char *)text;

	do
		key = (key ^ *p) * 0x100000001b3u;
	while (*p++ != '\0');
	return key;
}

/* What it moves is as big on all members; others may give each its own part. */
static bool size_is_common(const char *what)
{
	static const char *const names[] = { "all_reduce", "allreduce", "reduce", "broadcast" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (strcmp(what, names[i]) == 0)
			return true;
	}
	return false;
}

static uint64_t key_of(const struct flightlog *log, const struct comm *comm)
{
	const char *what = log->strings.data[comm->what];
	uint64_t key = 0xcbf29ce484222325u;
	char size[24] = "";

	if (comm->seq < 0 && size_is_common(what))
		(void)snprintf(size, sizeof(size), "%" PRId64, comm->bytes);
	key = add_to_key(key, log->strings.data[comm->name]);
	key = add_to_key(key, log->strings.data[comm->group]);
	key = add_to_key(key, what);
	return add_to_key(key, size);
}

static int make_events(struct rank_view *view)
{
	const struct flightlog *log = view->log;

	view->events = calloc(view->comms.cnt + 1, sizeof(*view->events));
	if (view->events == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < view->comms.cnt; i++) {
		const struct comm *comm = &view->comms.data[i];

		view->events[i] = (struct instance_event){ .start_ns = comm->start_ns,
							   .end_ns = comm->start_ns + comm->dur_ns,
							   .key = key_of(log, comm),
							   .seq = comm->seq };
	}
	return 0;
}

int timeline_collect_comms(struct rank_view *view)
{
	int ret = 0;

	vec_foreach(lane, &view->log->lanes) {
		if (ret == 0)
			ret = add_comms(&lane->records, &view->comms);
		if (ret == 0)
			ret = add_comms(&lane->window, &view->comms);
	}
	if (ret < 0)
		return ret;
	drop_doubles(&view->comms);
	return make_events(view);
}

int timeline_comms(const struct rank_view *view, slice_vec *ret)
{
	for (size_t i = 0; i < view->comms.cnt; i++) {
		const struct comm *comm = &view->comms.data[i];
		struct slice slice = { .start_ns = comm->start_ns,
				       .end_ns = comm->start_ns + comm->dur_ns,
				       .number = (int64_t)i,
				       .cpu_ns = -1,
				       .what = comm->name,
				       .kind = SLICE_COLLECTIVE };

		if (vec_push(ret, slice) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* --- who came first --- */

struct arrival {
	uint32_t instance;
	uint32_t order; /* of ranks */
	int64_t start_ns;
	struct comm *comm;
};

typedef VEC(struct arrival) arrival_vec;

static int by_arrival(const void *a, const void *b)
{
	const struct arrival *x = a, *y = b;

	if (x->instance != y->instance)
		return x->instance < y->instance ? -1 : 1;
	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return (x->order > y->order) - (x->order < y->order);
}

/* As it will be drawn: what began before the part that is shown is cut off there. */
static int collect_arrivals(struct rank_view *view, uint32_t order, arrival_vec *ret)
{
	for (size_t i = 0; i < view->comms.cnt; i++) {
		struct comm *comm = &view->comms.data[i];
		struct arrival arrival = { view->events[i].instance, order,
					   MAX(comm->start_ns, view->from_ns) +
						   view->result->clock.offset_ns,
					   comm };

		comm->turn = comm->member_cnt = 0;
		if (arrival.instance != 0 && comm->start_ns + comm->dur_ns > view->from_ns &&
		    comm->dur_ns > 0 && vec_push(ret, arrival) < 0)
			return -ENOMEM;
	}
	return 0;
}

int timeline_take_turns(struct rank_view *views, size_t cnt, uint32_t instance_cnt)
{
	arrival_vec arrivals = { 0 };
	int ret = 0;

	for (size_t i = 0; i < cnt && ret == 0 && instance_cnt > 0; i++)
		ret = collect_arrivals(&views[i], (uint32_t)i, &arrivals);
	if (ret == 0 && arrivals.cnt > 0)
		qsort(arrivals.data, arrivals.cnt, sizeof(*arrivals.data), by_arrival);
	for (size_t i = 0, end; i < arrivals.cnt && ret == 0; i = end) {
		for (end = i; end < arrivals.cnt &&
			      arrivals.data[end].instance == arrivals.data[i].instance;)
			end++;
		for (size_t k = i; k < end && end > i + 1; k++) {
			arrivals.data[k].comm->turn = (uint32_t)(k - i);
			arrivals.data[k].comm->member_cnt = (uint32_t)(end - i);
		}
	}
	vec_done(&arrivals);
	return ret;
}
