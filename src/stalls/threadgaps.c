/* SPDX-License-Identifier: Apache-2.0 */
#include "stalls/threadgaps.h"

#include "base/idmap.h"

#include <errno.h>

/* A thread while the events go by. */
struct tracked {
	bool seen; /* any switch of it */
	bool off;
	struct stall_gap gap;
	bool looked;	 /* gap is one of looks: it began at the first of these */
	uint64_t slices; /* of the last look */
};

struct tracker {
	const struct stall_recording *recording;
	struct stall_account *accounts;
	struct tracked *threads;
	struct idmap by_tid;
	stall_gap_vec *out;
};

static int close_gap(struct tracker *tracker, struct tracked *thread, int64_t on_ns, uint32_t cpu)
{
	struct stall_gap *gap = &thread->gap;
	const int64_t begin_ns = tracker->recording->begin_ns;

	thread->off = false;
	gap->on_ns = on_ns;
	gap->off_ns = MAX(gap->off_ns, begin_ns); /* events are recorded a little earlier */
	if (gap->wake_ns != 0)
		gap->wake_ns = MAX(gap->wake_ns, begin_ns);
	gap->on_cpu = cpu;
	if (gap->state == 'R')
		gap->wake_ns = gap->off_ns;
	else if (gap->wake_ns == 0 || gap->wake_ns > on_ns)
		gap->wake_ns = on_ns;
	return on_ns > gap->off_ns ? vec_push(tracker->out, *gap) : 0;
}

/* A gap that began before the window. */
static void begin_before(struct tracker *tracker, struct tracked *thread, uint32_t index,
			 uint32_t cpu)
{
	const struct stall_thread *about = &tracker->recording->threads.data[index];

	thread->off = true;
	thread->gap.thread = index;
	thread->gap.off_ns = tracker->recording->begin_ns;
	thread->gap.off_cpu = cpu;
	thread->gap.state = about->state == 'R' ? 'R' : about->state;
	thread->gap.open_begin = true;
}

static int take_out(struct tracker *tracker, struct tracked *thread, uint32_t index,
		    const struct stall_event *event)
{
	int error = 0;

	if (thread->off && thread->seen) {
		/* When it came back was lost: not before it was woken, as far as is known. */
		tracker->accounts[index].unpaired++;
		error = thread->gap.wake_ns != 0
				? close_gap(tracker, thread, thread->gap.wake_ns, event->cpu)
				: 0;
	}
	thread->seen = thread->off = true;
	thread->gap = (struct stall_gap){
		.thread = index,
		.off_ns = event->time_ns,
		.state = event->state,
		.off_cpu = event->cpu,
		.chain = event->chain,
		.file = event->file,
		.address = event->address,
	};
	return error;
}

static int take_in(struct tracker *tracker, struct tracked *thread, uint32_t index,
		   const struct stall_event *event)
{
	if (!thread->seen && !thread->off)
		begin_before(tracker, thread, index, event->cpu);
	thread->seen = true;
	if (!thread->off) {
		tracker->accounts[index].unpaired++;
		return 0;
	}
	return close_gap(tracker, thread, event->time_ns, event->cpu);
}

static void take_wake(struct tracker *tracker, struct tracked *thread, uint32_t index,
		      const struct stall_event *event)
{
	if (!thread->seen && !thread->off)
		begin_before(tracker, thread, index, event->cpu);
	if (!thread->off || thread->gap.wake_ns != 0)
		return;
	thread->gap.wake_ns = event->time_ns;
	thread->gap.waker_pid = event->pid;
	thread->gap.waker_tid = event->other;
	thread->gap.waker_chain = event->chain;
}

/* What /proc said inside a gap whose switch had no stack or state. */
static void complete_gap(struct stall_gap *gap, const struct stall_event *event)
{
	if (event->state == 'R')
		return;
	if (gap->chain == 0)
		gap->chain = event->chain;
	if (gap->address == 0)
		gap->address = event->address;
	if (gap->state == '-')
		gap->state = event->state;
}

/* Looks alone: as long as it is not given a CPU and does not want one, it is the same gap. */
static int take_look(struct tracker *tracker, struct tracked *thread, uint32_t index,
		     const struct stall_event *event)
{
	const bool same = thread->looked && thread->slices == event->value && event->state != 'R';
	int error = 0;

	if (same) {
		thread->gap.on_ns = event->time_ns;
		complete_gap(&thread->gap, event);
		return 0;
	}
	if (thread->looked && thread->gap.on_ns > thread->gap.off_ns)
		error = close_gap(tracker, thread, thread->gap.on_ns, 0);
	thread->looked = event->state != 'R';
	thread->slices = event->value;
	thread->gap = (struct stall_gap){
		.thread = index,
		.off_ns = event->time_ns,
		.on_ns = event->time_ns,
		.state = event->state,
		.chain = event->chain,
		.address = event->address,
	};
	return error;
}

static int take(struct tracker *tracker, const struct stall_event *event)
{
	const uint32_t index = idmap_get(&tracker->by_tid, event->tid);
	const bool exact = (tracker->recording->sources & STALL_BY_SWITCHES) != 0;
	struct tracked *thread;

	if (index == IDMAP_NONE)
		return 0;
	thread = &tracker->threads[index];
	switch (event->kind) {
	case STALL_OUT:
		return exact ? take_out(tracker, thread, index, event) : 0;
	case STALL_IN:
		return exact ? take_in(tracker, thread, index, event) : 0;
	case STALL_WAKE:
		if (exact)
			take_wake(tracker, thread, index, event);
		return 0;
	case STALL_LOOK:
		if (!exact)
			return take_look(tracker, thread, index, event);
		if (!thread->seen && !thread->off && event->state != 'R') {
			begin_before(tracker, thread, index, event->cpu);
			thread->gap.state = event->state;
		}
		if (thread->off && event->time_ns >= thread->gap.off_ns)
			complete_gap(&thread->gap, event);
		return 0;
	case STALL_SIGNAL:
	case STALL_SAMPLE:
	case STALL_RUN:
	case STALL_DELAY:
	case STALL_USED:
	case STALL_COLLECT:
	case STALL_KIND_CNT:
	default:
		return 0;
	}
}

/* Gaps that the window ends in, and threads that had no switch in it. */
static int finish(struct tracker *tracker, uint32_t index)
{
	const struct stall_recording *recording = tracker->recording;
	struct tracked *thread = &tracker->threads[index];
	const char state = recording->threads.data[index].state;

	if ((recording->sources & STALL_BY_SWITCHES) == 0)
		return thread->looked && thread->gap.on_ns > thread->gap.off_ns
			       ? close_gap(tracker, thread, thread->gap.on_ns, 0)
			       : 0;
	tracker->accounts[index].exact = true;
	if (!thread->seen && !thread->off && state != 'R')
		begin_before(tracker, thread, index, 0);
	if (!thread->off)
		return 0;
	thread->gap.open_end = true;
	return close_gap(tracker, thread, recording->end_ns, thread->gap.off_cpu);
}

static int compare(const void *a, const void *b)
{
	const struct stall_gap *x = a, *y = b;

	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	return x->off_ns < y->off_ns ? -1 : x->off_ns > y->off_ns;
}

int gaps_find(const struct stall_recording *recording, struct stall_account *accounts,
	      stall_gap_vec *ret)
{
	const size_t cnt = recording->threads.cnt;
	_cleanup_free_ struct tracked *threads = calloc(MAX(cnt, (size_t)1), sizeof(*threads));
	struct tracker tracker = { recording, accounts, threads, { 0 }, ret };
	int error = threads != NULL ? 0 : -ENOMEM;

	for (size_t i = 0; i < cnt && error == 0; i++)
		error = idmap_set(&tracker.by_tid, recording->threads.data[i].tid, (uint32_t)i);
	for (size_t i = 0; i < recording->events.cnt && error == 0; i++)
		error = take(&tracker, &recording->events.data[i]);
	for (size_t i = 0; i < cnt && error == 0; i++)
		error = finish(&tracker, (uint32_t)i);
	idmap_done(&tracker.by_tid);
	if (error == 0 && ret->cnt > 0)
		qsort(ret->data, ret->cnt, sizeof(*ret->data), compare);
	return error;
}
