/* SPDX-License-Identifier: Apache-2.0 */
/* Verdicts by what a whole window looks like: its iterations, and the use of its devices. */
#include "base/stats.h"
#include "base/str.h"
#include "localize/verdict/conclude_parts.h"
#include "model/thresholds.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>

/* Of the typical worker; NAN: some have fewer iterations. */
static double typical_ms(const struct report *report, size_t iteration, double *scratch)
{
	for (size_t w = 0; w < report->worker_cnt; w++) {
		if (iteration >= report->workers[w].iteration_cnt)
			return (double)NAN;
		scratch[w] = report->workers[w].iteration_ms[iteration];
	}
	return stats_median(scratch, report->worker_cnt);
}

/*
 * In a short window an occasion, such as a checkpoint, and a fault that comes now and then look alike.
 * The first iteration warms up.
 */
bool conclude_one_is_long(const struct conclusion *c)
{
	const struct report *report = c->report;
	double *scratch = arena_calloc(&c->report->arena, report->worker_cnt + 1, sizeof(*scratch));
	double longest = 0, next = 0, first;
	int cnt = (int)(report->iterations + 0.5);

	if (scratch == NULL) {
		c->reason->error = -ENOMEM;
		return false;
	}
	if (report->trigger.present || cnt < 2 || cnt > FEW_ITERATIONS)
		return false;
	first = typical_ms(report, 0, scratch);
	for (int i = 1; i < cnt; i++) {
		double ms = typical_ms(report, (size_t)i, scratch);

		next = fmax(next, fmin(longest, ms));
		longest = fmax(longest, ms);
	}
	next = fmax(next, first);
	if (!(longest > LONG_FACTOR * next))
		return false;
	str_printf(
		c->reason,
		"one of %d iterations took %.1f ms, the others at most %.1f ms: an occasion, such "
		"as a checkpoint, or a fault that comes now and then",
		cnt, longest, next);
	conclude_append_next(c);
	return true;
}

static double median_of(const struct report *report, size_t field_off, double *scratch)
{
	size_t cnt = 0;

	for (size_t w = 0; w < report->worker_cnt; w++) {
		const struct report_use *use = &report->workers[w].use;

		if (use->known)
			scratch[cnt++] =
				*(const double *)(const void *)((const char *)use + field_off);
	}
	return cnt > 0 ? stats_median(scratch, cnt) : (double)NAN;
}

/*
 * Devices that do next to nothing for the job, or have no work for longer than they compute: what they
 * wait for is a fault, or its design.
 */
bool conclude_hardly_computes(const struct conclusion *c)
{
	const struct report *report = c->report;
	double *scratch = arena_calloc(&c->report->arena, report->worker_cnt + 1, sizeof(*scratch));
	double compute, starved;

	if (scratch == NULL) {
		c->reason->error = -ENOMEM;
		return false;
	}
	compute = median_of(report, offsetof(struct report_use, compute_frac), scratch);
	starved = median_of(report, offsetof(struct report_use, starved_frac), scratch);
	if (isnan(compute) || starved < NOTE_HOST_FRAC ||
	    (compute > COMPUTE_LITTLE && starved < compute))
		return false;
	str_printf(
		c->reason,
		"the GPUs compute for %.1f %% of the window and have no work for %.0f %% of it, but "
		"no rank and no function stands out: the hosts of all ranks may be slow, or the "
		"job may be too small for its GPUs",
		100 * compute, 100 * starved);
	return true;
}

/*
 * In few iterations. A host that is more than one ahead of its device, or whose device is out of work now
 * and then, may be slow in those that are not in the window.
 */
bool conclude_hides_hosts(const struct conclusion *c)
{
	const struct report *report = c->report;
	double *scratch = arena_calloc(&c->report->arena, report->worker_cnt + 1, sizeof(*scratch));
	double delay_ms, starved;

	if (scratch == NULL) {
		c->reason->error = -ENOMEM;
		return false;
	}
	/* A single rank is only said to be healthy as far as it shows by itself. */
	if (report->trigger.present || report->iterations > FEW_ITERATIONS ||
	    report->worker_cnt < 2)
		return false;
	delay_ms = median_of(report, offsetof(struct report_use, launch_delay_us), scratch) / 1e3;
	starved = median_of(report, offsetof(struct report_use, starved_frac), scratch);
	if (delay_ms >= report->iteration_ms && report->iteration_ms > 0)
		str_printf(
			c->reason,
			"kernels begin %.0f ms after their launch, and iterations take %.0f ms: the "
			"hosts are more than an iteration ahead, so few iterations do not show "
			"whether one is slow",
			delay_ms, report->iteration_ms);
	else if (starved >= FEW_STARVED)
		str_printf(
			c->reason,
			"the GPUs have no work for %.0f %% of a window of few iterations: whether "
			"the hosts are slow is not known",
			100 * starved);
	else
		return false;
	conclude_append_next(c);
	return true;
}
