/* SPDX-License-Identifier: Apache-2.0 */
#include "live/hub/quiet.h"

#include "live/hub/jobstate.h"

#include <errno.h>
#include <inttypes.h>

/* Launchers end the other ranks once one has died: only the first to end is evidence. */
static bool has_failed(const struct quiet_facts *facts)
{
	return facts->exit_status != 0 && facts->first_gone != NULL;
}

static size_t count_silent(const struct quiet_facts *facts)
{
	size_t silent = 0;

	for (size_t i = 0; i < facts->cnt; i++)
		silent += facts->states[i].silent != 0;
	return silent;
}

static const char *quiet_reason(struct arena *arena, const struct quiet_facts *facts,
				const struct report *report)
{
	size_t silent = count_silent(facts);

	if (facts->cnt == 0)
		return arena_strdup(
			arena,
			"no training iteration was seen; " QUIET_ADVICE
			"; a rank started by fork connects when it first steps an optimizer");
	if (report->iterations < QUIET_ITERATIONS_MIN)
		return arena_printf(
			arena,
			"only %.0f iteration%s seen, %u are needed; let the job run "
			"longer, or ask for a profile while it runs: perftracker profile",
			report->iterations, report->iterations == 1 ? " was" : "s were",
			QUIET_ITERATIONS_MIN);
	if (has_failed(facts))
		return arena_printf(arena,
				    "%.0f iterations watched, %s; but the job ended with "
				    "status %d, and rank %d (pid %u) was the first to end, at step "
				    "%" PRIu64 ": see its own output and the kernel log",
				    report->iterations,
				    facts->hangs > 0 ? "then none for a while" : "no slowdown",
				    facts->exit_status, facts->first_gone->rank,
				    facts->first_gone->pid, facts->first_gone->step);
	if (facts->hangs > 0)
		return arena_printf(
			arena,
			"%.0f iterations watched; %u time%s no iteration ended any more for a "
			"while, and no rank looked different from outside; perftracker timeline, "
			"with the folder of this report, shows what each recorded last",
			report->iterations, facts->hangs, plural(facts->hangs));
	if (facts->slowdowns > 0)
		return arena_printf(
			arena,
			"%.0f iterations watched; %u short slowdown%s profiled, without a "
			"culprit",
			report->iterations, facts->slowdowns, plural(facts->slowdowns));
	if (silent > 0)
		return arena_printf(
			arena,
			"%.0f iterations watched, no slowdown; the hook switched itself "
			"off in %zu of %zu workers",
			report->iterations, silent, facts->cnt);
	return arena_printf(arena, "%.0f iterations watched, no slowdown", report->iterations);
}

int quiet_report(const struct quiet_facts *facts, struct report *ret)
{
	struct report report = { .rank_source = "the job's environment", .job_id = "live" };

	arena_init(&report.arena);
	jobstate_fill_report(facts->states, facts->cnt, &report);
	report.workers_analyzed = (int)(facts->cnt - count_silent(facts));
	report.verdict = VERDICT_HEALTHY;
	if (report.iterations < QUIET_ITERATIONS_MIN || has_failed(facts) || facts->hangs > 0 ||
	    report.workers_analyzed == 0)
		report.verdict = VERDICT_INCONCLUSIVE;
	report.reason = quiet_reason(&report.arena, facts, &report);
	if (report.reason == NULL) {
		arena_done(&report.arena);
		return -ENOMEM;
	}
	*ret = report;
	return 0;
}
