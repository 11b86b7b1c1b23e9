/* SPDX-License-Identifier: Apache-2.0 */
/* Work of the kernel while a thread had the CPU, from samples, and what the whole host lost. */
#include "base/idmap.h"
#include "model/thresholds.h"
#include "stalls/kernelrules.h"
#include "stalls/stalljudge_parts.h"

#include <errno.h>
#include <string.h>

struct busy {
	uint64_t samples;
	uint64_t thread_bits;
	uint32_t chain; /* of the first sample */
};

static void add_sample(const struct judge *judge, uint32_t thread, const struct stall_event *event,
		       struct busy busy[static STALL_CLASS_CNT])
{
	const enum stall_class class = kernelrules_busy(judge_text(judge, event->chain));

	if (class == STALL_UNKNOWN)
		return;
	if (busy[class].samples++ == 0)
		busy[class].chain = event->chain;
	busy[class].thread_bits |= UINT64_C(1) << thread;
}

static int add_busy(struct judge *judge, enum stall_class class, const struct busy *busy)
{
	const struct stall_recording *recording = judge->recording;
	const double window_ns = (double)(recording->end_ns - recording->begin_ns);
	struct stall_finding finding = {
		.class = class,
		.chain = busy->chain,
		.cnt = busy->samples,
		.thread_bits = busy->thread_bits,
		.total_ns = (int64_t)(busy->samples * recording->sample_ns),
	};

	for (size_t i = 0; i < recording->threads.cnt; i++) {
		if ((busy->thread_bits >> i & 1) == 0)
			continue;
		finding.minor_faults += recording->threads.data[i].minor_faults;
		finding.major_faults += recording->threads.data[i].major_faults;
	}
	finding.matters = busy->samples >= HUNT_BUSY_SAMPLES_MIN &&
			  (double)finding.total_ns >= HUNT_BUSY_FRAC * window_ns;
	return vec_push(&judge->verdict->findings, finding);
}

static int judge_samples(struct judge *judge)
{
	const struct stall_recording *recording = judge->recording;
	struct busy busy[STALL_CLASS_CNT] = { 0 };
	struct idmap by_tid = { 0 };
	int error = 0;

	for (size_t i = 0; i < recording->threads.cnt && error == 0; i++)
		if (judge->verdict->accounts.data[i].judged)
			error = idmap_set(&by_tid, recording->threads.data[i].tid, (uint32_t)i);
	vec_foreach(event, &recording->events) {
		const uint32_t thread = event->kind == STALL_SAMPLE && event->chain != 0
						? idmap_get(&by_tid, event->tid)
						: IDMAP_NONE;

		if (thread != IDMAP_NONE)
			add_sample(judge, thread, event, busy);
	}
	idmap_done(&by_tid);
	for (enum stall_class i = 0; i < STALL_CLASS_CNT && error == 0; i++)
		if (busy[i].samples > 0)
			error = add_busy(judge, i, &busy[i]);
	return error;
}

static int add_host(struct judge *judge, enum stall_class class, uint64_t ticks, uint64_t total,
		    double least)
{
	const int64_t window_ns = judge->recording->end_ns - judge->recording->begin_ns;
	struct stall_finding finding = { .class = class };

	if (total == 0 || ticks < HUNT_TICKS_MIN || (double)ticks < least * (double)total)
		return 0;
	finding.cpu_frac = MIN((double)ticks / (double)total, 1.0);
	finding.total_ns = (int64_t)(finding.cpu_frac * (double)window_ns);
	finding.matters = true;
	return vec_push(&judge->verdict->findings, finding);
}

static int judge_host(struct judge *judge)
{
	const struct stall_counters *first = NULL, *last = NULL;
	uint64_t total;
	int error;

	vec_foreach(counters, &judge->recording->counters) {
		if (counters->pid != 0)
			continue;
		first = first == NULL ? counters : first;
		last = counters;
	}
	if (first == NULL || last->total_ticks <= first->total_ticks)
		return 0;
	total = last->total_ticks - first->total_ticks;
	error = last->steal_ticks > first->steal_ticks
			? add_host(judge, STALL_STEAL, last->steal_ticks - first->steal_ticks,
				   total, HUNT_STEAL_FRAC)
			: 0;
	if (error == 0 && last->irq_ticks > first->irq_ticks)
		error = add_host(judge, STALL_INTERRUPTS, last->irq_ticks - first->irq_ticks, total,
				 HUNT_IRQ_FRAC);
	return error;
}

int judge_kernel(struct judge *judge)
{
	const int error = judge_samples(judge);

	return error < 0 ? error : judge_host(judge);
}
