/* SPDX-License-Identifier: Apache-2.0 */
/* Gaps become parts of a class. */
#include "model/thresholds.h"
#include "stalls/kernelrules.h"
#include "stalls/stalljudge_parts.h"

#include <string.h>

struct share {
	int64_t idle_ns;
};

static int add_idle(void *context, uint32_t pid, int64_t ns)
{
	struct share *share = context;

	if (pid == 0)
		share->idle_ns += ns;
	return 0;
}

/* Index of the first counters behind that time. */
static size_t find_counters(const struct stall_recording *recording, int64_t time_ns)
{
	size_t low = 0, high = recording->counters.cnt;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (recording->counters.data[middle].time_ns <= time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/*
 * Whether the kernel held back threads of the process's cgroup for most of that time. It adds to its
 * sum when it lets them go, so the next reading counts, too.
 */
static bool is_throttled(const struct stall_recording *recording, uint32_t pid, int64_t begin_ns,
			 int64_t end_ns)
{
	const struct stall_counters *before = NULL, *after = NULL;
	const size_t middle = find_counters(recording, begin_ns);

	for (size_t i = middle; i > 0 && before == NULL; i--)
		if (recording->counters.data[i - 1].pid == pid)
			before = &recording->counters.data[i - 1];
	for (size_t i = find_counters(recording, end_ns + HUNT_QUOTA_LATE_NS);
	     i < recording->counters.cnt && after == NULL; i++)
		if (recording->counters.data[i].pid == pid)
			after = &recording->counters.data[i];
	for (size_t i = recording->counters.cnt; i > middle && after == NULL; i--)
		if (recording->counters.data[i - 1].pid == pid)
			after = &recording->counters.data[i - 1];
	return before != NULL && after != NULL && after->throttled_cnt > before->throttled_cnt &&
	       after->throttled_ns > before->throttled_ns &&
	       (double)(after->throttled_ns - before->throttled_ns) >=
		       HUNT_QUOTA_FRAC * (double)(end_ns - begin_ns);
}

/* Why a thread that could run did not. */
static enum stall_class class_of_runnable(const struct judge *judge, const struct stall_gap *gap,
					  int64_t begin_ns, int64_t end_ns)
{
	const struct stall_recording *recording = judge->recording;
	const struct cpuruns_query query = { gap->on_cpu, recording->threads.data[gap->thread].tid,
					     begin_ns, end_ns };
	struct share share = { 0 };
	int64_t known_ns;
	int error;

	if (is_throttled(recording, recording->threads.data[gap->thread].pid, begin_ns, end_ns))
		return STALL_QUOTA;
	known_ns = cpuruns_usage(&judge->runs, &query, add_idle, &share, &error);
	if (known_ns > 0 && (double)share.idle_ns > HUNT_IDLE_FRAC * (double)known_ns)
		return STALL_UNPLACED;
	return STALL_STARVED;
}

static enum stall_class class_of_blocked(const struct judge *judge, const struct stall_gap *gap)
{
	const struct stall_recording *recording = judge->recording;
	const uint32_t pid = recording->threads.data[gap->thread].pid;
	const struct stall_process *process = stallrecording_process(recording, pid);
	const enum stall_class class =
		kernelrules_blocked(judge_text(judge, gap->chain), gap->state);

	/* A killed waiter is woken by a signal, perhaps from an interrupt: no holder let it go then. */
	if (class == STALL_MMAP_LOCK &&
	    (gap->waker_pid == 0 || kernelrules_interrupt(judge_text(judge, gap->waker_chain))))
		return STALL_MM_UNSEEN;
	if (class == STALL_MMAP_LOCK && gap->waker_pid == pid)
		return STALL_MM_INTERNAL;
	if (class != STALL_FUTEX)
		return class;
	if (process != NULL && process->gil_begin < process->gil_end &&
	    gap->address >= process->gil_begin && gap->address < process->gil_end)
		return STALL_GIL;
	/* Who woke it by a timer is not known; a timed wait for an own thread looks like that. */
	if (gap->waker_pid != 0 && gap->waker_pid != pid &&
	    !kernelrules_interrupt(judge_text(judge, gap->waker_chain)))
		return STALL_SHARED_FUTEX;
	return STALL_FUTEX;
}

static int add_part(struct judge *judge, const struct stall_gap *gap, enum stall_class class,
		    int64_t begin_ns, int64_t end_ns)
{
	struct stall_part part = {
		.thread = gap->thread,
		.begin_ns = begin_ns,
		.end_ns = end_ns,
		.class = class,
		.finding = UINT32_MAX,
	};

	if (class != STALL_STARVED && class != STALL_QUOTA && class != STALL_UNPLACED) {
		part.chain = gap->chain;
		part.file = gap->file;
		part.pid = gap->waker_pid;
		part.tid = gap->waker_tid;
		part.waker_chain = gap->waker_chain;
	}
	return vec_push(&judge->verdict->parts, part);
}

/* Blocked first, then in the queue of a CPU. */
static int add_gap(struct judge *judge, const struct stall_gap *gap)
{
	struct stall_account *account = &judge->verdict->accounts.data[gap->thread];
	const bool delays = (judge->recording->sources & STALL_BY_WAKERS) == 0;
	const int64_t blocked_ns = gap->wake_ns - gap->off_ns,
		      runnable_ns = gap->on_ns - gap->wake_ns;
	enum stall_class class;
	int error = 0;

	account->blocked_ns += blocked_ns;
	account->runnable_ns += runnable_ns;
	if (blocked_ns > 0) {
		class = class_of_blocked(judge, gap);
		if (stallclass_about(class)->kind == STALL_KIND_WAIT)
			account->waited_ns += blocked_ns;
		if (blocked_ns >= HUNT_PART_MIN_NS)
			error = add_part(judge, gap, class, gap->off_ns, gap->wake_ns);
	}
	/* Without wakers the kernel's own sum of such waits is complete: add_delays(). */
	if (error == 0 && runnable_ns >= HUNT_PART_MIN_NS && !delays)
		error = add_part(judge, gap,
				 class_of_runnable(judge, gap, gap->wake_ns, gap->on_ns),
				 gap->wake_ns, gap->on_ns);
	return error;
}

/* The time that the kernel counted between two looks, at the end of it. */
static int add_delay(struct judge *judge, uint32_t thread, const struct stall_event *event)
{
	struct stall_account *account = &judge->verdict->accounts.data[thread];
	const int64_t ns = (int64_t)MIN(event->value, (uint64_t)NSEC_PER_SEC * 3600),
		      begin_ns = MAX(event->time_ns - ns, judge->recording->begin_ns);
	const struct stall_gap gap = { .thread = thread };

	if (event->time_ns <= begin_ns)
		return 0;
	if (!account->exact)
		account->runnable_ns += event->time_ns - begin_ns;
	if (event->time_ns - begin_ns < HUNT_PART_MIN_NS)
		return 0;
	const enum stall_class class =
		is_throttled(judge->recording, judge->recording->threads.data[thread].pid, begin_ns,
			     event->time_ns)
			? STALL_QUOTA
			: STALL_STARVED;

	return add_part(judge, &gap, class, begin_ns, event->time_ns);
}

static int add_delays(struct judge *judge)
{
	const struct stall_recording *recording = judge->recording;
	int error = 0;

	if ((recording->sources & STALL_BY_WAKERS) != 0)
		return 0;
	vec_foreach(event, &recording->events) {
		if (event->kind != STALL_DELAY)
			continue;
		for (size_t i = 0; i < recording->threads.cnt && error == 0; i++)
			if (recording->threads.data[i].tid == event->tid)
				error = add_delay(judge, (uint32_t)i, event);
		if (error < 0)
			break;
	}
	return error;
}

static int compare(const void *a, const void *b)
{
	const struct stall_part *x = a, *y = b;

	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	if (x->begin_ns != y->begin_ns)
		return x->begin_ns < y->begin_ns ? -1 : 1;
	return x->end_ns < y->end_ns ? -1 : x->end_ns > y->end_ns;
}

static void sort_parts(struct stall_verdict *verdict)
{
	if (verdict->parts.cnt > 0)
		qsort(verdict->parts.data, verdict->parts.cnt, sizeof(*verdict->parts.data),
		      compare);
}

/* The first of `cnt` sorted parts that is of that thread or a later one. */
static size_t first_of(const struct stall_verdict *verdict, size_t cnt, uint32_t thread)
{
	size_t low = 0, high = cnt;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (verdict->parts.data[middle].thread < thread)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* A collection without the times in which its thread did not run: those have causes of their own. */
static int add_collection(struct judge *judge, size_t cnt, uint32_t thread, int64_t begin_ns,
			  int64_t end_ns)
{
	const struct stall_verdict *verdict = judge->verdict;
	const struct stall_gap gap = { .thread = thread };
	int64_t at_ns = begin_ns;

	for (size_t i = first_of(verdict, cnt, thread);
	     i < cnt && verdict->parts.data[i].thread == thread; i++) {
		const struct stall_part part = verdict->parts.data[i];

		if (part.end_ns <= at_ns || part.begin_ns >= end_ns)
			continue;
		if (part.begin_ns - at_ns >= HUNT_PART_MIN_NS) {
			const int error = add_part(judge, &gap, STALL_GC, at_ns, part.begin_ns);

			if (error < 0)
				return error;
		}
		at_ns = MAX(at_ns, part.end_ns);
	}
	return end_ns - at_ns >= HUNT_PART_MIN_NS ? add_part(judge, &gap, STALL_GC, at_ns, end_ns)
						  : 0;
}

/* Parts are sorted; those of collections are added behind them. */
static int add_collections(struct judge *judge)
{
	const struct stall_recording *recording = judge->recording;
	const size_t cnt = judge->verdict->parts.cnt;
	int error = 0;

	vec_foreach(event, &recording->events) {
		const int64_t ns = (int64_t)MIN(event->value, (uint64_t)NSEC_PER_SEC * 3600),
			      begin_ns = MAX(event->time_ns, recording->begin_ns),
			      end_ns = MIN(event->time_ns + ns, recording->end_ns);

		if (event->kind != STALL_COLLECT || end_ns <= begin_ns)
			continue;
		for (uint32_t i = 0; i < recording->threads.cnt && error == 0; i++)
			if (recording->threads.data[i].tid == event->tid)
				error = add_collection(judge, cnt, i, begin_ns, end_ns);
		if (error < 0)
			break;
	}
	return error;
}

static void finish_accounts(struct judge *judge)
{
	const int64_t window_ns = judge->recording->end_ns - judge->recording->begin_ns;

	for (size_t i = 0; i < judge->verdict->accounts.cnt; i++) {
		struct stall_account *account = &judge->verdict->accounts.data[i];
		const struct stall_thread *thread = &judge->recording->threads.data[i];

		account->running_ns =
			account->exact || thread->cpu_ns < 0
				? window_ns - account->blocked_ns - account->runnable_ns
				: thread->cpu_ns;
		account->running_ns = MAX(account->running_ns, (int64_t)0);
		account->judged = thread->main || (double)account->running_ns >=
							  HUNT_WORKER_FRAC * (double)window_ns;
	}
}

int judge_parts(struct judge *judge)
{
	struct stall_verdict *verdict = judge->verdict;
	int error = 0;

	vec_foreach(gap, &judge->gaps) {
		error = add_gap(judge, gap);
		if (error < 0)
			return error;
	}
	error = add_delays(judge);
	if (error < 0)
		return error;
	sort_parts(verdict);
	error = add_collections(judge);
	if (error < 0)
		return error;
	sort_parts(verdict);
	finish_accounts(judge);
	return 0;
}
