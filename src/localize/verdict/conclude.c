/* SPDX-License-Identifier: Apache-2.0 */
#include "base/stats.h"
#include "base/str.h"
#include "localize/verdict/conclude_parts.h"
#include "model/rankset.h"
#include "model/thresholds.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>

#define RANKS_SHOWN 60 /* characters of a set of ranks in a sentence */
#define STEPS_ENOUGH 5 /* to tell a fault from chance, in most jobs */

/* Less over the best pace is no slowdown. */
#define OVER_FACTOR (1 + PACE_SLOW_FRAC)

static bool are_missing(const struct report *report)
{
	return report->missing_cnt > 0 || report->workers_analyzed < report->workers_expected;
}

/* "rank 2's trace is missing", "the traces of ranks 4-7 are missing" */
static void append_missing(const struct conclusion *c)
{
	const struct report *report = c->report;
	struct str ranks = { 0 };

	rankset_format(&ranks, report->missing, report->missing_cnt);
	if (!are_missing(report)) /* left out by choice */
		str_printf(c->reason, "%d of %d ranks were not analyzed",
			   report->world_size - report->workers_analyzed, report->world_size);
	else if (report->missing_cnt == 1)
		str_printf(c->reason, "rank %d's trace is missing", report->missing[0]);
	else if (ranks.len > 0 && ranks.len <= RANKS_SHOWN)
		str_printf(c->reason, "the traces of ranks %s are missing", str_borrow(&ranks));
	else
		str_printf(c->reason, "the traces of %d of %d ranks are missing",
			   report->workers_expected - report->workers_analyzed,
			   report->workers_expected);
	if (str_error(&ranks) < 0)
		c->reason->error = str_error(&ranks);
	str_done(&ranks);
}

static void append_late(const struct conclusion *c)
{
	const struct conclude_late *late = &c->facts->late;

	str_printf(c->reason,
		   "rank %d arrives late by %.1f ms per iteration (%.1f %%), but no function "
		   "explains it",
		   late->rank, late->ms, late->pct);
}

static bool is_slow(const struct conclusion *c)
{
	return trigger_is_slow(&c->report->trigger) &&
	       !trigger_is_over(&c->report->trigger, c->report->iteration_ms);
}

void conclude_append_next(const struct conclusion *c)
{
	const struct report *report = c->report;
	int cnt = report->iterations < STEPS_ENOUGH ? STEPS_ENOUGH : 2 * (int)report->iterations;
	const char *whom = report->world_size > 1 ? "all ranks, " : "";

	if (report->trigger.present)
		str_append(c->reason, ": a window of more iterations may tell");
	else
		str_printf(c->reason,
			   ": to decide, record %sthe same %d steps or more (torch.profiler: "
			   "schedule(active=%d))",
			   whom, cnt, cnt);
}

/* --- one function per verdict: the reason; false: the verdict does not apply --- */

static bool no_worker_seen(const struct conclusion *c)
{
	if (c->report->workers_analyzed > 0)
		return false;
	str_append(c->reason, "no worker could be analyzed");
	return true;
}

/*
 * What costs more than what was found is not here. Those that ranks present wait for are late, whatever else
 * costs time.
 */
static bool is_elsewhere(const struct conclusion *c)
{
	const struct finding *first = &c->report->findings[0];

	return c->report->missing_cnt > 0 && first->victim_cnt == 0 &&
	       c->facts->absent_ms > first->gain_ms_per_iteration;
}

static bool surely_found(const struct conclusion *c)
{
	const struct report *report = c->report;

	if (report->finding_cnt == 0 || report->findings[0].confidence == CONFIDENCE_LOW ||
	    is_elsewhere(c))
		return false;
	str_append(c->reason, report->findings[0].title);
	return true;
}

/* What was found is not sure. */
static void append_weak(const struct conclusion *c)
{
	if (c->report->finding_cnt > 0)
		str_printf(c->reason, "; weak evidence: %s", c->report->findings[0].title);
}

static void append_slowness(const struct conclusion *c)
{
	trigger_describe(&c->report->trigger, c->reason);
	append_weak(c);
	if (c->facts->late.rank >= 0) {
		str_append(c->reason, "; ");
		append_late(c);
	}
	if (are_missing(c->report)) {
		str_append(c->reason, "; ");
		append_missing(c);
	}
}

/*
 * By the trigger, a mean that may begin before the slowdown, and by the window: of iterations that
 * the profile itself does not make much longer.
 */
static bool is_slight(const struct conclusion *c)
{
	struct report_trigger shown = c->report->trigger;

	if (!trigger_is_slight(&shown))
		return false;
	if (c->report->iteration_ms < SLOW_SHOWN_MS)
		return true;
	shown.current_iteration_ms = c->report->iteration_ms;
	return trigger_is_slight(&shown);
}

/* Without a finding: no function of the job is to blame. */
static void append_alike(const struct conclusion *c)
{
	if (c->report->alike_factor > 0 && c->report->finding_cnt == 0)
		str_printf(
			c->reason,
			"; all functions take longer alike (%.1fx): the machine is slower, by its "
			"clock or since other programs use it, or iterations have more to do",
			c->report->alike_factor);
}

/*
 * Where no function is to blame, but the training threads lacked CPUs for as long as explains most
 * of the slowdown. They may have lacked as much before: no finding.
 */
static void append_starved(const struct conclusion *c, double before_ms)
{
	double more_ms = c->report->iteration_ms - before_ms;

	if (c->report->finding_cnt > 0 || c->facts->starved_ms <= 0 || more_ms <= 0 ||
	    c->facts->starved_ms < CAUSE_EXPLAINS * more_ms)
		return;
	str_printf(c->reason,
		   "; the training thread%s waited for a CPU for %.1f ms of each iteration: other "
		   "programs, or threads of the job, use the CPUs",
		   plural(c->report->workers_analyzed), c->facts->starved_ms);
}

static bool slow_without_cause(const struct conclusion *c)
{
	if (!is_slow(c) || is_slight(c))
		return false;
	append_slowness(c);
	append_alike(c);
	append_starved(c, c->report->trigger.baseline_iteration_ms);
	return true;
}

static bool slightly_slow(const struct conclusion *c)
{
	if (!is_slow(c))
		return false;
	append_slowness(c);
	str_append(c->reason, "; " TRIGGER_SLIGHT);
	return true;
}

static void append_wait(const struct conclusion *c)
{
	str_printf(
		c->reason,
		", and those present wait up to %.*f ms an iteration for a missing rank or for the "
		"network",
		c->facts->wait_ms < 10 ? 1 : 0, c->facts->wait_ms);
}

static bool weakly_found(const struct conclusion *c)
{
	const struct report *report = c->report;

	if (report->finding_cnt == 0)
		return false;
	str_printf(c->reason, "only weak evidence in %.0f iteration%s: %s", report->iterations,
		   plural(report->iterations), report->findings[0].title);
	conclude_append_next(c);
	return true;
}

/* Without a trigger only the past says that the window is of a slow job. */
static bool slower_than_past(const struct conclusion *c)
{
	if (c->facts->past_ms <= 0)
		return false;
	str_printf(c->reason, "iterations of %.1f ms in the job's past, of %.1f ms in this window",
		   c->facts->past_ms, c->report->iteration_ms);
	append_weak(c);
	append_alike(c);
	append_starved(c, c->facts->past_ms);
	return true;
}

static bool ranks_missing(const struct conclusion *c)
{
	if (!are_missing(c->report) && c->facts->wait_ms <= 0)
		return false;
	append_missing(c);
	if (c->facts->wait_ms > 0)
		append_wait(c);
	/* What is waited for is not here: what is may be a victim, too. */
	if (c->report->finding_cnt > 0 &&
	    c->report->findings[0].gain_ms_per_iteration > c->facts->wait_ms)
		append_weak(c);
	if (c->report->finding_cnt == 0 && c->facts->wait_ms <= 0)
		str_append(c->reason, "; no fault shows in those present");
	if (!c->report->trigger.present)
		str_printf(c->reason, ": to decide, %s",
			   are_missing(c->report) ? "add the missing traces, or record all ranks "
						    "at the same steps"
						  : "choose all ranks");
	return true;
}

static bool collectives_unmatched(const struct conclusion *c)
{
	if (c->facts->unmatched_rank < 0)
		return false;
	str_printf(c->reason,
		   "the collectives of rank %d match those of no other rank, so who waited for "
		   "whom is unknown",
		   c->facts->unmatched_rank);
	conclude_append_next(c);
	return true;
}

static bool late_in_one_iteration(const struct conclusion *c)
{
	if (c->report->iterations >= 2)
		return false;
	/* Ranks that meet as often show who is late, as in several iterations. */
	if (c->facts->late.rank < 0 && c->facts->met_cnt >= ONE_ITERATION_MET_CNT)
		return false;
	if (c->facts->late.rank >= 0) {
		append_late(c);
		str_append(c->reason, "; ");
	}
	str_append(c->reason,
		   "one iteration is too short a window to tell a fault from normal variation");
	conclude_append_next(c);
	return true;
}

static bool records_lost(const struct conclusion *c)
{
	if (c->facts->lost_frac <= LOST_FRAC)
		return false;
	str_printf(c->reason,
		   "rank %d lost %.0f %% of what it was to record: a fault may hide there; "
		   "record another window, which may lose less",
		   c->facts->lossy_rank, 100 * c->facts->lost_frac);
	return true;
}

static bool rank_late(const struct conclusion *c)
{
	if (c->facts->late.rank < 0)
		return false;
	append_late(c);
	conclude_append_next(c);
	return true;
}

/* Ranks of a small job are last by turns, but not by so much. */
static bool rank_late_by_chance(const struct conclusion *c)
{
	const struct conclude_late *chance = &c->facts->chance;

	if (chance->rank < 0)
		return false;
	str_printf(
		c->reason,
		"rank %d is late by %.1f ms per iteration (%.1f %%), but only in some iterations, "
		"which may be normal variation",
		chance->rank, chance->ms, chance->pct);
	conclude_append_next(c);
	return true;
}

/* Nothing shows whether the others wait for it meanwhile. */
static bool rank_unequal(const struct conclusion *c)
{
	const struct conclude_late *unequal = &c->facts->unequal;

	if (unequal->name == NULL)
		return false;
	str_printf(c->reason,
		   "rank %d spends %.1f ms per iteration (%.1f %%) in %s, where its peers spend "
		   "nothing; whether they wait for it meanwhile is not known, since no collectives "
		   "were recorded",
		   unequal->rank, unequal->ms, unequal->pct, unequal->name);
	return true;
}

/* All ranks of a job move at one pace: it falls behind, or what it waits for is not in the window. */
static bool rank_at_other_pace(const struct conclusion *c)
{
	const struct conclude_late *pace = &c->facts->pace;

	if (pace->rank < 0 || c->report->trigger.present)
		return false;
	str_printf(
		c->reason,
		"iterations of rank %d take %.1f ms longer (%.1f %%) than those of the typical rank, "
		"which must wait for it sooner or later",
		pace->rank, pace->ms, pace->pct);
	conclude_append_next(c);
	return true;
}

/* The next collective would show whether the others wait for it meanwhile. */
static bool rank_late_at_end(const struct conclusion *c)
{
	const struct conclude_late *tail = &c->facts->tail;

	/* A running job shows by its pace whether they do. */
	if (tail->rank < 0 || c->report->trigger.present)
		return false;
	str_printf(c->reason,
		   "rank %d spends %.1f ms more than its peers after its last collective, at the "
		   "end of the window (%.1f %% of all iterations)%s%s; whether they wait for it "
		   "then was not recorded",
		   tail->rank, tail->ms, tail->pct, tail->name != NULL ? ", in " : "",
		   tail->name != NULL ? tail->name : "");
	conclude_append_next(c);
	return true;
}

/* Who waited for whom is not known, and each rank is its only peer. */
static bool not_compared(const struct conclusion *c)
{
	if (c->facts->matched || !c->facts->apart)
		return false;
	str_append(
		c->reason,
		"the ranks were not compared: each computes other functions than the others, and "
		"no collectives show who waits for whom");
	return true;
}

static bool slowdown_over(const struct conclusion *c)
{
	const struct report_trigger *trigger = &c->report->trigger;
	double best_ms = trigger->baseline_iteration_ms;

	if (!trigger_is_slow(trigger))
		return false;
	if (c->report->iteration_ms <= OVER_FACTOR * best_ms)
		str_printf(c->reason,
			   "the slowdown was over before the window: %.1f ms per iteration in it, "
			   "best %.1f ms",
			   c->report->iteration_ms, best_ms);
	else
		str_printf(c->reason,
			   "most of the slowdown was over before the window: iterations of %.1f ms "
			   "when it was noticed, %.1f ms in the window, %.1f ms at best",
			   trigger->current_iteration_ms, c->report->iteration_ms, best_ms);
	return true;
}

/* Not said to be slow by the detector, since iterations vary so much; not healthy, either. */
static bool unsteady(const struct conclusion *c)
{
	const struct report_trigger *trigger = &c->report->trigger;

	if (!trigger_is_far(trigger, c->report->iteration_ms, UNSTEADY_FACTOR))
		return false;
	str_printf(c->reason, "iterations of %.1f ms in this window and %.1f ms at best",
		   c->report->iteration_ms, trigger->baseline_iteration_ms);
	trigger_append_factor(c->reason, trigger->baseline_iteration_ms, c->report->iteration_ms);
	str_append(c->reason, ", but their times vary too much to say that the job became slower, "
			      "and no rank and no function explains it: is the machine shared?");
	return true;
}

/*
 * Ordered of a job at its pace, but slow itself: by more than a profile makes iterations longer. The
 * job became slower meanwhile, or its pace did not show it yet.
 */
static bool slow_itself(const struct conclusion *c)
{
	const struct report_trigger *trigger = &c->report->trigger;
	double best_ms = trigger->baseline_iteration_ms, now_ms = c->report->iteration_ms;

	if (!trigger->present || trigger_is_slow(trigger) || best_ms <= 0 ||
	    now_ms < WINDOW_SLOW_FACTOR * best_ms || now_ms < best_ms + SLOW_SHOWN_MS)
		return false;
	str_printf(c->reason, "iterations of %.1f ms in this window and %.1f ms at best", now_ms,
		   best_ms);
	trigger_append_factor(c->reason, best_ms, now_ms);
	str_append(c->reason, ": did the job become slower meanwhile?");
	return true;
}

static bool hosts_unrelated(const struct conclusion *c)
{
	if (!c->facts->unrelated)
		return false;
	str_append(c->reason, "nothing stands out on a single host; whether one waited for another "
			      "cannot be seen, as their clocks are not aligned");
	return true;
}

static void append_alone(const struct conclusion *c)
{
	str_append(c->reason,
		   "nothing that one rank shows by itself is slow; whether its computing is, the "
		   "traces of its peers or of an earlier run (--past) would show");
}

/* The others were left out, which may be faster. */
static bool alone_of_many(const struct conclusion *c)
{
	if (!c->facts->alone || c->report->world_size < 2 || c->facts->matched)
		return false;
	append_alone(c);
	return true;
}

static bool all_well(const struct conclusion *c)
{
	if (c->facts->matched)
		str_printf(c->reason,
			   "no rank makes the others wait for more than %g %% of an iteration "
			   "beyond normal variation, and no function stands out",
			   c->facts->min_gain_pct);
	else if (c->facts->alone)
		append_alone(c);
	else
		str_append(c->reason, "no function takes more time than in a healthy job");
	return true;
}

/* The rank that the rule which applied names. */
static void set_suspect(struct report *report, const struct conclude_facts *facts,
			bool (*applied)(const struct conclusion *c))
{
	const struct conclude_late *late = applied == rank_late		    ? &facts->late
					   : applied == rank_late_by_chance ? &facts->chance
					   : applied == rank_unequal	    ? &facts->unequal
					   : applied == rank_late_at_end    ? &facts->tail
					   : applied == rank_at_other_pace  ? &facts->pace
									    : NULL;

	report->has_suspect = late != NULL;
	report->suspect = late != NULL ? late->rank : 0;
}

int conclude(struct report *report, const struct conclude_facts *facts)
{
	/* The first that applies; all_well() always does. */
	static const struct {
		bool (*applies)(const struct conclusion *c);
		enum verdict verdict;
	} rules[] = {
		{ no_worker_seen, VERDICT_INCONCLUSIVE },
		{ surely_found, VERDICT_ABNORMAL },
		{ slow_without_cause, VERDICT_SLOW },
		{ slightly_slow, VERDICT_INCONCLUSIVE },
		{ slower_than_past, VERDICT_SLOW },
		{ ranks_missing, VERDICT_INCOMPLETE },
		{ weakly_found, VERDICT_INCONCLUSIVE },
		{ collectives_unmatched, VERDICT_INCONCLUSIVE },
		{ late_in_one_iteration, VERDICT_INCONCLUSIVE },
		{ records_lost, VERDICT_INCONCLUSIVE },
		{ rank_late, VERDICT_INCONCLUSIVE },
		{ rank_late_by_chance, VERDICT_INCONCLUSIVE },
		{ rank_unequal, VERDICT_INCONCLUSIVE },
		{ rank_late_at_end, VERDICT_INCONCLUSIVE },
		{ rank_at_other_pace, VERDICT_INCONCLUSIVE },
		{ not_compared, VERDICT_INCONCLUSIVE },
		{ slowdown_over, VERDICT_INCONCLUSIVE },
		{ unsteady, VERDICT_INCONCLUSIVE },
		{ slow_itself, VERDICT_INCONCLUSIVE },
		{ conclude_hardly_computes, VERDICT_INCONCLUSIVE },
		{ conclude_one_is_long, VERDICT_INCONCLUSIVE },
		{ conclude_hides_hosts, VERDICT_INCONCLUSIVE },
		{ hosts_unrelated, VERDICT_INCONCLUSIVE },
		{ alone_of_many, VERDICT_INCONCLUSIVE },
		{ all_well, VERDICT_HEALTHY },
	};
	struct str reason = { 0 };
	const struct conclusion c = { .report = report, .facts = facts, .reason = &reason };
	size_t i = 0;

	while (!rules[i].applies(&c))
		i++;
	report->verdict = rules[i].verdict;
	set_suspect(report, facts, rules[i].applies);
	if (rules[i].applies == slightly_slow)
		report->finding_cnt = 0; /* weak ones: the reason has the first */
	report->reason =
		str_error(&reason) == 0 ? arena_strdup(&report->arena, str_borrow(&reason)) : NULL;
	str_done(&reason);
	return report->reason != NULL ? 0 : -ENOMEM;
}
