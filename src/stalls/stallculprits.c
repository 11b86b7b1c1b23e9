/* SPDX-License-Identifier: Apache-2.0 */
/* Who took the time of a finding, and what that process or thread did meanwhile. */
#include "base/idmap.h"
#include "model/thresholds.h"
#include "stalls/kernelrules.h"
#include "stalls/stalljudge_parts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Processes and what they took. */
struct tally {
	VEC(struct stall_culprit) list;
	struct idmap by_id; /* of pid and tid */
};

static int add(struct tally *tally, uint32_t pid, uint32_t tid, int64_t ns)
{
	const uint64_t key = (uint64_t)pid << 32 | tid;
	const uint32_t index = idmap_get(&tally->by_id, key);

	if (index != IDMAP_NONE) {
		tally->list.data[index].ns += ns;
		return 0;
	}
	if (vec_reserve(&tally->list, tally->list.cnt + 1) < 0 || tally->list.data == NULL)
		return -ENOMEM;
	tally->list.data[tally->list.cnt++] =
		(struct stall_culprit){ .pid = pid, .tid = tid, .ns = ns };
	return idmap_set(&tally->by_id, key, (uint32_t)tally->list.cnt - 1);
}

static int add_process(void *context, uint32_t pid, int64_t ns)
{
	return pid != 0 ? add(context, pid, 0, ns) : 0;
}

/* By CPUs. */

static size_t first_event(const struct stall_recording *recording, int64_t time_ns)
{
	size_t low = 0, high = recording->events.cnt;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (recording->events.data[middle].time_ns < time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int add_users(const struct judge *judge, uint32_t finding, struct tally *tally)
{
	int error = 0;

	vec_foreach(gap, &judge->gaps) {
		const struct stall_part key = { .thread = gap->thread, .begin_ns = gap->wake_ns };
		const struct stall_part *part = judge_find_part(judge, &key);

		if (part == NULL || part->finding != finding)
			continue;
		const struct cpuruns_query query = {
			gap->on_cpu, judge->recording->threads.data[gap->thread].tid,
			part->begin_ns, part->end_ns
		};

		(void)cpuruns_usage(&judge->runs, &query, add_process, tally, &error);
		if (error < 0)
			return error;
	}
	return 0;
}

/* Samples of the CPU, where its changes were not recorded. */
static int add_sampled(const struct judge *judge, uint32_t finding, struct tally *tally)
{
	const struct stall_recording *recording = judge->recording;

	vec_foreach(gap, &judge->gaps) {
		const struct stall_part key = { .thread = gap->thread, .begin_ns = gap->wake_ns };
		const struct stall_part *part = judge_find_part(judge, &key);

		if (part == NULL || part->finding != finding)
			continue;
		for (size_t i = first_event(recording, part->begin_ns);
		     i < recording->events.cnt && recording->events.data[i].time_ns < part->end_ns;
		     i++) {
			const struct stall_event *event = &recording->events.data[i];

			if (event->kind == STALL_SAMPLE && event->cpu == gap->on_cpu &&
			    add_process(tally, event->pid, (int64_t)recording->sample_ns) < 0)
				return -ENOMEM;
		}
	}
	return 0;
}

/* Where it is only known how much CPU each process used. */
static int add_used(const struct judge *judge, struct tally *tally)
{
	vec_foreach(event, &judge->recording->events) {
		const struct stall_process *process =
			stallrecording_process(judge->recording, event->pid);
		const bool other = process == NULL || !process->watched;
		const int error =
			event->kind == STALL_USED && other
				? add(tally, event->pid, 0,
				      (int64_t)MIN(event->value, (uint64_t)NSEC_PER_SEC * 3600))
				: 0;

		if (error < 0)
			return error;
	}
	return 0;
}

/* By wakers. */

static bool is_woken(const struct judge *judge, const struct stall_part *part)
{
	return part->pid != 0 && !kernelrules_interrupt(judge_text(judge, part->waker_chain));
}

/*
 * A waiter for the GIL wakes by a timer every 5 ms; who let it go at the end held it before, too.
 * Parts are walked from the last one, so that the next one's waker is known.
 */
static int add_wakers(const struct judge *judge, uint32_t finding, bool threads,
		      struct tally *tally)
{
	const struct stall_part *parts = judge->verdict->parts.data, *next = NULL;
	uint32_t pid = 0, tid = 0;

	for (size_t i = judge->verdict->parts.cnt; i > 0; i--) {
		const struct stall_part *part = &parts[i - 1];
		const bool follows = next != NULL && next->thread == part->thread &&
				     next->begin_ns - part->end_ns <= HUNT_FOLLOW_NS;

		if (part->finding != finding)
			continue;
		if (is_woken(judge, part)) {
			pid = part->pid;
			tid = part->tid;
		} else if (!follows) {
			pid = tid = 0;
		}
		next = part;
		if (pid != 0 &&
		    add(tally, pid, threads ? tid : 0, part->end_ns - part->begin_ns) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* By signals and tracers. */

static uint32_t find_sender(const struct judge *judge, const struct stall_part *part)
{
	const struct stall_recording *recording = judge->recording;
	const uint32_t pid = recording->threads.data[part->thread].pid;
	uint32_t sender = 0;

	vec_foreach(event, &recording->events) {
		if (event->kind != STALL_SIGNAL || event->time_ns > part->begin_ns ||
		    event->time_ns < part->begin_ns - HUNT_SIGNAL_NS)
			continue;
		for (size_t i = 0; i < recording->threads.cnt; i++)
			if (recording->threads.data[i].tid == event->tid &&
			    recording->threads.data[i].pid == pid)
				sender = event->pid;
	}
	return sender;
}

static int add_stoppers(const struct judge *judge, uint32_t finding, struct tally *tally)
{
	vec_foreach(part, &judge->verdict->parts) {
		const uint32_t own = judge->recording->threads.data[part->thread].pid;
		const struct stall_process *process = stallrecording_process(judge->recording, own);
		uint32_t pid;

		if (part->finding != finding)
			continue;
		if (part->class == STALL_TRACED)
			pid = process != NULL ? process->tracer : 0;
		else
			pid = find_sender(judge, part);
		if (pid != 0 && add(tally, pid, 0, part->end_ns - part->begin_ns) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* The result. */

static int compare(const void *a, const void *b)
{
	const struct stall_culprit *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return x->tid < y->tid ? -1 : x->tid > y->tid;
}

static bool is_victim(const struct judge *judge, const struct stall_finding *finding, uint32_t pid)
{
	for (size_t i = 0; i < judge->recording->threads.cnt; i++)
		if ((finding->thread_bits >> i & 1) != 0 &&
		    judge->recording->threads.data[i].pid == pid)
			return true;
	return false;
}

static void take_culprits(const struct judge *judge, struct tally *tally,
			  struct stall_finding *finding)
{
	if (tally->list.cnt > 0)
		qsort(tally->list.data, tally->list.cnt, sizeof(*tally->list.data), compare);
	vec_foreach(culprit, &tally->list) {
		const struct stall_process *process =
			stallrecording_process(judge->recording, culprit->pid);

		if (finding->culprit_cnt == STALL_CULPRITS_MAX) {
			finding->culprits_more++;
			continue;
		}
		culprit->name = process != NULL ? process->name : 0;
		culprit->command = process != NULL ? process->command : 0;
		culprit->own = process != NULL && process->own;
		culprit->same = is_victim(judge, finding, culprit->pid);
		finding->culprits[finding->culprit_cnt++] = *culprit;
	}
}

/* What the culprit did: the most telling function of its stacks in these times. */

static void offer_holder(const struct judge *judge, uint32_t chain, uint32_t *best,
			 struct stall_finding *finding)
{
	char name[STALL_FUNCTION_BYTES];
	uint32_t weight;

	kernelrules_holder(judge_text(judge, chain), name, &weight);
	if (weight <= *best)
		return;
	*best = weight;
	memcpy(finding->holder, name, sizeof(name));
}

static void find_holder(const struct judge *judge, uint32_t index, struct stall_finding *finding)
{
	const struct stall_recording *recording = judge->recording;
	uint32_t best = 0;

	if (finding->culprit_cnt == 0)
		return;
	vec_foreach(part, &judge->verdict->parts) {
		if (part->finding != index || part->pid != finding->culprits[0].pid)
			continue;
		offer_holder(judge, part->waker_chain, &best, finding);
		for (size_t i = first_event(recording, part->begin_ns);
		     i < recording->events.cnt && recording->events.data[i].time_ns <= part->end_ns;
		     i++) {
			const struct stall_event *event = &recording->events.data[i];

			if (event->kind == STALL_SAMPLE && event->pid == part->pid)
				offer_holder(judge, event->chain, &best, finding);
		}
	}
}

/* What a thread of its own did: ran, waited for a CPU, or was blocked in a function. */

struct doing {
	int64_t total_ns, runnable_ns, blocked_ns;
	int64_t longest_ns;
	uint32_t chain; /* of the longest gap */
};

static void add_doing(const struct judge *judge, uint32_t thread, const struct stall_part *part,
		      struct doing *doing)
{
	size_t low = 0, high = judge->gaps.cnt;

	while (low < high) { /* the first gap of the thread that ends behind the part's begin */
		const size_t middle = low + (high - low) / 2;
		const struct stall_gap *gap = &judge->gaps.data[middle];

		if (gap->thread < thread || (gap->thread == thread && gap->on_ns <= part->begin_ns))
			low = middle + 1;
		else
			high = middle;
	}
	doing->total_ns += part->end_ns - part->begin_ns;
	for (; low < judge->gaps.cnt; low++) {
		const struct stall_gap *gap = &judge->gaps.data[low];
		const int64_t begin = MAX(gap->off_ns, part->begin_ns),
			      wake = MIN(MAX(gap->wake_ns, begin), part->end_ns),
			      end = MIN(gap->on_ns, part->end_ns);

		if (gap->thread != thread || gap->off_ns >= part->end_ns)
			break;
		doing->blocked_ns += wake - begin;
		doing->runnable_ns += end - wake;
		if (wake - begin > doing->longest_ns) {
			doing->longest_ns = wake - begin;
			doing->chain = gap->chain;
		}
	}
}

static void find_doing(const struct judge *judge, uint32_t index, struct stall_finding *finding)
{
	const struct stall_recording *recording = judge->recording;
	char function[STALL_FUNCTION_BYTES];
	struct doing doing = { 0 };
	uint32_t thread = UINT32_MAX;

	for (uint32_t i = 0; finding->culprit_cnt > 0 && i < recording->threads.cnt; i++)
		if (recording->threads.data[i].tid == finding->culprits[0].tid)
			thread = i;
	if (thread == UINT32_MAX || !judge->verdict->accounts.data[thread].exact)
		return;
	vec_foreach(part, &judge->verdict->parts) {
		if (part->finding == index)
			add_doing(judge, thread, part, &doing);
	}
	if (doing.blocked_ns * 2 > doing.total_ns) {
		kernelrules_function(judge_text(judge, doing.chain), function);
		(void)snprintf(finding->did, sizeof(finding->did), "was blocked%s%s",
			       function[0] != '\0' ? " in " : "", function);
	} else if (doing.runnable_ns * 2 > doing.total_ns) {
		(void)snprintf(finding->did, sizeof(finding->did), "waited for a CPU");
	} else if ((doing.blocked_ns + doing.runnable_ns) * 2 < doing.total_ns) {
		(void)snprintf(finding->did, sizeof(finding->did), "ran");
	}
}

static void take_quota(const struct judge *judge, struct stall_finding *finding)
{
	const struct stall_recording *recording = judge->recording;

	for (size_t i = 0; i < recording->threads.cnt; i++) {
		const uint32_t pid = recording->threads.data[i].pid;
		const struct stall_process *process = stallrecording_process(recording, pid);
		const struct stall_counters *first = NULL, *last = NULL;

		if ((finding->thread_bits >> i & 1) == 0 || process == NULL)
			continue;
		vec_foreach(counters, &recording->counters) {
			if (counters->pid != pid)
				continue;
			first = first == NULL ? counters : first;
			last = counters;
		}
		finding->quota_us = process->quota_us;
		finding->period_us = process->period_us;
		if (first != NULL) {
			finding->throttled_cnt = last->throttled_cnt - first->throttled_cnt;
			finding->throttled_ns = last->throttled_ns - first->throttled_ns;
		}
		return;
	}
}

static int list_culprits(struct judge *judge, uint32_t index, struct stall_finding *finding,
			 struct tally *tally)
{
	switch (judge_traits(finding->class)->by) {
	case BY_CPUS:
		if (judge->runs.list.cnt > 0)
			return add_users(judge, index, tally);
		if ((judge->recording->sources & STALL_BY_SAMPLES) != 0)
			return add_sampled(judge, index, tally);
		finding->likely = true;
		return add_used(judge, tally);
	case BY_SIGNALS:
		return add_stoppers(judge, index, tally);
	case BY_WAKING_THREADS:
		return add_wakers(judge, index, true, tally);
	case BY_WAKING_PROCESSES:
		return add_wakers(judge, index, false, tally);
	case BY_NOTHING:
	default:
		return 0;
	}
}

int judge_culprits(struct judge *judge, uint32_t index)
{
	struct stall_finding *finding = &judge->verdict->findings.data[index];
	struct tally tally = { 0 };
	int error = list_culprits(judge, index, finding, &tally);

	if (error == 0) {
		take_culprits(judge, &tally, finding);
		if (finding->class == STALL_QUOTA)
			take_quota(judge, finding);
		else if (judge_traits(finding->class)->by == BY_WAKING_THREADS)
			find_doing(judge, index, finding);
		else
			find_holder(judge, index, finding);
	}
	if (error == 0 && finding->class == STALL_MMAP_LOCK)
		error = judge_culprit_rhythm(judge, index);
	vec_done(&tally.list);
	idmap_done(&tally.by_id);
	return error;
}
