/* SPDX-License-Identifier: Apache-2.0 */
#include "live/hostd/blocked_stacks.h"

#include "base/clock.h"
#include "live/hostd/hostd_parts.h"
#include "live/link/wire_hang.h"
#include "model/syscall.h"
#include "read/flight/labels.h"
#include "read/flight/loaderchildren.h"
#include "read/flight/others.h"
#include "read/flight/stacks.h"

#include <stdio.h>
#include <string.h>

#define DEPTH_MAX 64
#define AWAITED_NS (5 * NSEC_PER_SEC) /* of samples of those that it waits for */
#define AGAIN_NS (60 * NSEC_PER_SEC)  /* as often the stacks of a job that hangs are read */
#define ENDED_NS \
	(10 * NSEC_PER_SEC) /* before it was blocked: what a thread had made lasts so long */

/* --- the stack --- */

/* The latest sample of the training thread; NULL: none. */
static const struct ring_record *latest_sample(const struct flightlog *log)
{
	for (size_t i = log->samples.cnt; i > 0; i--) {
		const struct ring_record *at = &log->samples.data[i - 1];

		if (at->kind == FLIGHT_SAMPLE && flight_sample_tid(at) == log->training_tid)
			return at;
	}
	return NULL;
}

/* Names the GIL or the system call that the thread waits for; leaves ret alone without one. */
static void name_leaf(uint16_t detail, char *ret, size_t size)
{
	const char *name = syscall_name(detail >> 4);

	if ((detail & FLIGHT_SAMPLE_GIL_WAIT) != 0)
		(void)snprintf(ret, size, EVENT_GIL_WAIT);
	else if ((detail & FLIGHT_SAMPLE_SYSCALL) != 0 && name != NULL)
		(void)snprintf(ret, size, "<system call %s>", name);
}

/* Prepends text to ret; false: no room. */
static bool put_before(const char *text, char ret[static WIRE_TEXT])
{
	char whole[WIRE_TEXT];
	int len = snprintf(whole, sizeof(whole), "%s%s%s", text, ret[0] != '\0' ? "\n" : "", ret);

	if (len < 0 || len >= (int)sizeof(whole))
		return false;
	memcpy(ret, whole, (size_t)len + 1);
	return true;
}

/* Adds frames from the innermost outward while there is room; skips those of the agent's hook. */
static void put_stack(const struct flight_names *names, uint32_t node, char ret[static WIRE_TEXT])
{
	const struct flightlog *log = names->log;

	for (size_t depth = 0; node != 0 && depth < DEPTH_MAX; depth++) {
		const struct frame_name *frame = &names->frames[log->nodes.data[node].frame];

		if (frame->part != PART_OWN &&
		    !put_before(strtab_text(names->strings, frame->text), ret))
			return;
		node = log->nodes.data[node].parent;
	}
}

static int find_stack(const struct flightlog *log, struct wire_where *ret)
{
	const struct ring_record *sample = latest_sample(log);
	struct flight_names names;
	struct strtab strings;
	int error;

	if (sample == NULL)
		return 0;
	error = strtab_init(&strings);
	if (error < 0)
		return error;
	error = flight_names_init(&names, log, &strings);
	if (error == 0) {
		name_leaf(sample->detail, ret->leaf, sizeof(ret->leaf));
		put_stack(&names, (uint32_t)sample->extra, ret->stack);
	}
	flight_names_done(&names);
	strtab_done(&strings);
	return error;
}

/*
 * What those do now that it waits for, and which thread has ended while it waits or shortly before.
 * Returns 0 or -ENOMEM.
 */
static int find_awaited(const struct flightlog *log, const struct worker *worker, int64_t now_ns,
			struct wire_where *ret)
{
	struct flight_place found = { 0 }, ended = { 0 };
	int error;

	if (worker->last_mark == MARK_DATALOADER)
		error = flight_children(log, now_ns - AWAITED_NS, now_ns, &found);
	else
		error = flight_others(log, now_ns - AWAITED_NS, now_ns, true, &found);
	if (error == 0)
		error = flight_ended_thread(log, worker->last_ns - ENDED_NS, &ret->ended_ago_ns,
					    &ended);
	if (error == 0 && found.sample_cnt > 0) {
		ret->awaited_by = found.by;
		(void)snprintf(ret->awaited, sizeof(ret->awaited), "%s", found.place);
	}
	if (error == 0 && ended.sample_cnt > 0)
		(void)snprintf(ret->ended, sizeof(ret->ended), "%s", ended.place);
	return error;
}

/* --- collectives --- */

/*
 * Whether the record's number is comparable within the group and marks an entry: sends and
 * receives are numbered per pair of ranks, and Gloo records a collective only at its end.
 */
static bool is_entry_event(const char *event, const char *name)
{
	return name[0] != '\0' && strstr(name, "send") == NULL && strstr(name, "recv") == NULL &&
	       strncmp(event, "gloo:", strlen("gloo:")) != 0;
}

/*
 * Returns the entry of the group, or of the name in it if names are counted separately; made if
 * new. NULL: too many.
 */
static struct wire_entered *entry_of(struct wire_where *where, const char *group, const char *name)
{
	for (uint32_t i = 0; i < where->entered_cnt; i++) {
		struct wire_entered *entry = &where->entered[i];

		if (strcmp(entry->group, group) == 0 && entry->by_name == (name != NULL) &&
		    (name == NULL || strcmp(entry->name, name) == 0))
			return entry;
	}
	if (where->entered_cnt == ARRAY_SIZE(where->entered) ||
	    strlen(group) >= sizeof(where->entered[0].group))
		return NULL;
	(void)snprintf(where->entered[where->entered_cnt].group, sizeof(where->entered[0].group),
		       "%s", group);
	return &where->entered[where->entered_cnt++];
}

static void take_collective(const struct flightlog *log, const struct ring_record *records,
			    bool by_name, struct wire_where *ret)
{
	int64_t number = (int64_t)records[1].extra;
	const char *group = log->strings.data[(uint32_t)records[2].value];
	const char *name = log->strings.data[records[2].extra];
	struct wire_entered *entry;

	if (number < 0 || !is_entry_event(log->strings.data[records[0].extra], name))
		return;
	entry = entry_of(ret, group, by_name ? name : NULL);
	if (entry == NULL || records[0].time_ns < entry->time_ns)
		return;
	entry->time_ns = records[0].time_ns;
	entry->number = number;
	entry->by_name = by_name;
	entry->size = (uint32_t)((uint64_t)records[2].value >> 32);
	(void)snprintf(entry->name, sizeof(entry->name), "%s", name);
}

/*
 * off: enum backoff. What is not recorded between windows has only old records, on each rank from
 * another moment; NCCL's plugin goes on without torch's hook.
 */
static void find_collectives(const struct flightlog *log, uint32_t off, struct wire_where *ret)
{
	vec_foreach(lane, &log->lanes) {
		const record_vec *records = &lane->records;

		for (size_t i = 0; i + 2 < records->cnt; i++) {
			const struct ring_record *at = &records->data[i];
			bool nccl;

			if (at[0].kind != FLIGHT_COLLECTIVE ||
			    at[1].kind != FLIGHT_COLLECTIVE_ARGS ||
			    at[2].kind != FLIGHT_COLLECTIVE_GROUP)
				continue;
			nccl = flight_is_nccl(at, records->cnt - i);
			if ((off & BACKOFF_ALWAYS) == 0 &&
			    (nccl || (off & BACKOFF_COLLECTIVES) == 0))
				take_collective(log, at, nccl, ret);
		}
	}
}

/* Fills ret from the worker's recorder. O(the recorder's size), some ms. Returns 0 or -ENOMEM. */
static int find(const struct worker *worker, uint32_t off, struct wire_where *ret)
{
	struct flightlog log;
	int error;

	*ret = (struct wire_where){ .worker = worker->id, .step = worker->step };
	flightlog_init(&log);
	error = flightlog_take(&log, worker->block.flight, false);
	if (error == 0) {
		find_collectives(&log, off, ret);
		error = find_stack(&log, ret);
	}
	if (error == 0)
		error = find_awaited(&log, worker, clock_mono_ns(), ret);
	flightlog_done(&log);
	return error;
}

/* Whether any worker became blocked since the last call, or is blocked for AGAIN_NS more. */
static bool update_blocked(struct hostd *hostd, int64_t now_ns)
{
	bool more = false, any = false;

	vec_foreach(client, &hostd->clients) {
		struct worker *worker = &(*client)->worker;
		bool blocked = (*client)->is_worker && worker_is_blocked(worker);

		any |= blocked;
		more |= blocked && !worker->was_blocked;
		worker->was_blocked = blocked;
	}
	if (!more && !(any && now_ns - hostd->hangstacks.begun_ns > AGAIN_NS))
		return false;
	hostd->hangstacks.begun_ns = now_ns;
	return true;
}

/* What the recorder has goes out at once, what is read from outside some seconds later. */
static void publish(struct hostd *hostd, const struct worker *worker, struct wire_where *where)
{
	const int error = hangstacks_begin(hostd, worker->pid, worker->rank, where);

	where->read = error < 0 && error != -EALREADY;
	hostd_publish(hostd, SUBJECT_WHERE, where, sizeof(*where));
}

void blocked_stacks_publish(struct hostd *hostd)
{
	struct wire_where where;
	bool more = update_blocked(hostd, clock_mono_ns());

	vec_foreach(client, &hostd->clients) {
		if (more && (*client)->is_worker && !(*client)->worker.gone &&
		    find(&(*client)->worker, hostd->overhead.backoff, &where) == 0)
			publish(hostd, &(*client)->worker, &where);
	}
}
