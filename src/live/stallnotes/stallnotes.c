/* SPDX-License-Identifier: Apache-2.0 */
#include "live/stallnotes/stallnotes.h"

#include <errno.h>
#include <string.h>

#define PREFIX "stall window after this report: "
#define SLOW_FRAC 0.05 /* iterations that are as much longer are no difference to explain */

void stallnotes_keep(struct stallnotes *notes, const struct report *report, uint64_t number)
{
	stallnotes_drop(notes);
	*notes = (struct stallnotes){ true, *report, number };
}

void stallnotes_drop(struct stallnotes *notes)
{
	if (notes->present)
		arena_done(&notes->report.arena);
	*notes = (struct stallnotes){ 0 };
}

/*
 * Which part of the time that iterations take longer than before the stalls are: both as shares of
 * all time. Negative: the job is not slow, or its pace is not known.
 */
static double explained_frac(const struct wire_stalls *stalls, const struct stallpace *pace)
{
	if (pace->baseline_ms <= 0 || pace->now_ms < pace->baseline_ms * (1 + SLOW_FRAC))
		return -1;
	return MIN(stalls->stall_frac / (1 - pace->baseline_ms / pace->now_ms), 1.0);
}

/* What say_explained() says in words. */
static struct finding_explained explain(const struct wire_stalls *stalls,
					const struct stallpace *pace)
{
	const double frac = explained_frac(stalls, pace);

	return (struct finding_explained){ .present = frac >= 0,
					   .at_most = stalls->several != 0,
					   .iteration_ms = pace->now_ms,
					   .baseline_ms = pace->baseline_ms,
					   .frac = stalls->found != 0 ? MAX(frac, 0.0) : 0 };
}

/* NULL: out of memory; "": nothing to say. */
static const char *say_explained(struct arena *arena, const struct wire_stalls *stalls,
				 const struct stallpace *pace)
{
	const double frac = explained_frac(stalls, pace);

	if (frac < 0)
		return "";
	if (stalls->found == 0 || stalls->stall_frac <= 0)
		return arena_printf(arena,
				    PREFIX "iterations take %.1f ms, before %.1f ms: no stall of a "
					   "training thread explains the difference",
				    pace->now_ms, pace->baseline_ms);
	return arena_printf(arena,
			    PREFIX
			    "iterations take %.1f ms, before %.1f ms: stalls explain %s%.0f %% of "
			    "the difference, %s%.0f %% is not explained",
			    pace->now_ms, pace->baseline_ms, stalls->several != 0 ? "at most " : "",
			    100 * frac, stalls->several != 0 ? "at least " : "", 100 * (1 - frac));
}

/* The texts with the lines of the window behind them, in the arena. Returns 0 or -ENOMEM. */
static int extend(struct arena *arena, const struct wire_stalls *stalls,
		  const struct stallpace *pace, const char *const **texts, size_t *cnt)
{
	const size_t line_cnt = MIN(stalls->line_cnt, WIRE_STALL_LINES);
	const char **ret = arena_calloc(arena, *cnt + line_cnt + 1, sizeof(*ret));
	const char *explained = say_explained(arena, stalls, pace);
	size_t at = *cnt;

	if (ret == NULL || explained == NULL)
		return -ENOMEM;
	if (*cnt > 0)
		memcpy(ret, *texts, *cnt * sizeof(*ret));
	for (size_t i = 0; i < line_cnt; i++) {
		ret[at] = arena_printf(arena, PREFIX "%.*s", (int)sizeof(stalls->lines[0]) - 1,
				       stalls->lines[i]);
		if (ret[at++] == NULL)
			return -ENOMEM;
	}
	if (*explained != '\0')
		ret[at++] = explained;
	*texts = ret;
	*cnt = at;
	return 0;
}

static int add_to_finding(struct report *report, size_t index, const struct wire_stalls *stalls,
			  const struct stallpace *pace)
{
	struct finding *findings =
		arena_calloc(&report->arena, report->finding_cnt, sizeof(*findings));
	int error;

	if (findings == NULL)
		return -ENOMEM;
	memcpy(findings, report->findings, report->finding_cnt * sizeof(*findings));
	error = extend(&report->arena, stalls, pace, &findings[index].evidence,
		       &findings[index].evidence_cnt);
	if (error == 0) {
		findings[index].stalls = explain(stalls, pace);
		report->findings = findings;
	}
	return error;
}

int stallnotes_add(struct stallnotes *notes, const struct wire_stalls *stalls,
		   const struct stallpace *pace)
{
	struct report *report = &notes->report;

	if (!notes->present || notes->number != stalls->number)
		return -ENOENT;
	for (size_t i = 0; i < report->finding_cnt; i++)
		if (stalls_may_explain(report->findings[i].cause))
			return add_to_finding(report, i, stalls, pace);
	return extend(&report->arena, stalls, pace, &report->notes, &report->note_cnt);
}
