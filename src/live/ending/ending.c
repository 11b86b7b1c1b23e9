/* SPDX-License-Identifier: Apache-2.0 */
#include "live/ending/ending.h"

#include "live/recall/recall.h"
#include "model/thresholds.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

/* Silence before a request to end is worth a word from so long and so many iterations. */
#define SILENT_NS (2 * NSEC_PER_SEC)
#define SILENT_ITERATIONS 5

/* Noise makes the iterations of some moments slower than the best, by less than this. */
#define LATE_FACTOR 1.5
/* Less more than the best is not reported. */
#define VARIED_FACTOR 1.2

/* A rank ended before the others if these made so many steps after it. */
#define WENT_ON_STEPS 5
/* A rank that has ended well left too early if the others made this share of their steps after. */
#define LEFT_EARLY_FRAC 0.1

struct ending {
	const struct ending_facts *facts;
	const struct report *report;
	struct str *reason;
	uint64_t step;	   /* the greatest of all workers */
	size_t seen_cnt;   /* ranks */
	size_t silent_cnt; /* workers that were not watched until their end */
	size_t off_cnt;	   /* of which the hook is off; else their host was silent */
};

static bool was_asked(const struct ending *e)
{
	return e->facts->end.asked_signal != 0;
}

/* --- parts of the reason --- */

static void append_asked(const struct ending *e)
{
	if (!was_asked(e))
		return;
	str_append(e->reason, "; then ended by ");
	life_append_signal(e->facts->end.asked_signal, e->reason);
	if (e->facts->end.asked_signal == SIGINT)
		str_append(e->reason, " (Ctrl-C)");
}

static void append_watched(const struct ending *e)
{
	str_printf(e->reason, "%.0f iteration%s watched", e->report->iterations,
		   plural(e->report->iterations));
}

static double factor_of(const struct ending *e)
{
	return jobstate_factor(&e->facts->pace);
}

/* "of 14.0 ms at the end and 10.0 ms at their best (1.4x)" */
static void append_paces(const struct ending *e)
{
	const struct jobstate_pace *pace = &e->facts->pace;

	str_printf(e->reason, "of %.1f ms at the end and %.1f ms at their best (%.1fx)",
		   (double)pace->now_ns / NSEC_PER_MSEC, (double)pace->baseline_ns / NSEC_PER_MSEC,
		   factor_of(e));
}

/* No slowdown was detected; where iterations are longer than the best all the same, both times are reported. */
static void append_no_slowdown(const struct ending *e)
{
	const char *none = e->facts->slowdowns > 0 ? "no slowdown now" : "no slowdown";
	str_append(e->reason, ", ");
	if (factor_of(e) >= VARIED_FACTOR)
		append_paces(e);
	str_append(e->reason, factor_of(e) < VARIED_FACTOR
				      ? none
				      : ", which is within what their times vary by");
}

static struct report_trigger slowdown_of(const struct ending *e)
{
	const struct jobstate_pace *pace = &e->facts->pace;

	return (struct report_trigger){
		.present = true,
		.baseline_iteration_ms = (double)pace->baseline_ns / NSEC_PER_MSEC,
		.current_iteration_ms = (double)pace->now_ns / NSEC_PER_MSEC,
		.since_step = (int64_t)pace->slow_since_step,
	};
}

static void append_slowdown(const struct ending *e)
{
	const struct report_trigger trigger = slowdown_of(e);

	trigger_describe(&trigger, e->reason);
}

/* What went on before the end: a hang or a slowdown that lasted, and what is over. */
static void append_before(const struct ending *e)
{
	if (e->facts->stuck)
		str_append(e->reason, "; no iteration had ended for a while before that");
	if (e->facts->slow) {
		str_append(e->reason, "; it was slow: ");
		append_slowdown(e);
	}
	history_append(e->facts->history, e->reason);
}

/* "rank 2 (pid 77) was the first to end, at step 60, by ValueError: see its own output" */
static void append_rank(const struct ending *e, const struct wire_state *state, const char *what)
{
	bool killed = state->exit_known != 0 ? state->exit_status == SIGKILL : state->bye == 0;

	str_printf(e->reason, "rank %d (pid %u) %s, at step %" PRIu64 ", ", state->rank, state->pid,
		   what, state->step);
	life_append_how(state, e->reason);
	if (!life_is_failure(state))
		return;
	str_append(e->reason, killed && state->raised[0] == '\0'
				      ? ": see its own output, and if that says nothing, the "
					"kernel log (out of memory?)"
				      : ": see its own output");
}

/*
 * Launchers end the other ranks once one has failed: only the first are evidence. If the first ended
 * by itself, it may have called exit(), or been done before another failed: both are named.
 */
static void append_first(const struct ending *e, const struct life *life)
{
	const struct life_end *any = life_first(life), *failure = life_first_failure(life);

	if (any == NULL)
		return;
	append_rank(e, &any->state, "was the first to end");
	if (failure != NULL && failure != any && failure->state.raised[0] != '\0') {
		str_append(e->reason, "; ");
		append_rank(e, &failure->state, "then ended");
	}
}

/* "restarted 2 times: rank 1 (pid 77) was the first to end ...; the last time rank 0 ..." */
static void append_restarts(const struct ending *e)
{
	const struct lives *lives = e->facts->lives;
	const struct life *latest = lives_latest_failed(lives), *first = lives->all;

	while (first < latest && !first->failed)
		first++;
	str_printf(e->reason, "restarted %u time%s", lives->restarts, plural(lives->restarts));
	if (latest == NULL)
		return;
	str_append(e->reason, ": ");
	append_first(e, first);
	if (first == latest)
		return;
	str_append(e->reason, "; the last time ");
	append_first(e, latest);
}

/* --- one function per verdict: the reason; false: the verdict does not apply --- */

static bool failed(const struct ending *e)
{
	const struct job_end *end = &e->facts->end;

	if (end->exit_status <= 0 || was_asked(e))
		return false;
	str_append(e->reason, "(");
	if (end->signal != 0)
		life_append_signal(end->signal, e->reason);
	else
		str_printf(e->reason, "exit %d", end->exit_status);
	str_append(e->reason, ")");
	if (e->facts->cnt == 0) {
		str_append(e->reason, " before any training process connected");
		return true;
	}
	str_printf(e->reason, " after %" PRIu64 " step%s", e->step, plural((double)e->step));
	str_append(e->reason, e->facts->orphans);
	if (lives_present(e->facts->lives)->cnt > 0)
		str_append(e->reason, "; ");
	append_first(e, lives_present(e->facts->lives));
	if (e->facts->lives->restarts > 0) {
		str_append(e->reason, "; before that it was ");
		append_restarts(e);
	}
	append_before(e);
	return true;
}

/* A launcher that starts failed ranks again may end well: what failed has failed. */
static bool restarted(const struct ending *e)
{
	if (e->facts->lives->restarts == 0)
		return false;
	str_append(e->reason, "and was ");
	append_restarts(e);
	str_printf(e->reason, "; the last life ran %.0f iteration%s%s", e->report->iterations,
		   plural(e->report->iterations),
		   e->report->iterations < ENDING_ITERATIONS_MIN ? ", too few to judge" : "");
	append_before(e);
	append_asked(e);
	return true;
}

/* How far the other workers came after the end of this one. */
static uint64_t steps_after(const struct ending *e, const struct life_end *end)
{
	uint64_t step = 0;

	for (size_t i = 0; i < e->facts->cnt; i++) {
		if (e->facts->states[i].worker != end->state.worker)
			step = MAX(step, e->facts->states[i].step);
	}
	return step - MIN(step, end->others_step);
}

/*
 * Launchers end workers that are done, by a signal or, as Ray does, by an exit() that runs nothing
 * of Python: that counts if it came before the others' end.
 */
static bool counts(const struct ending *e, const struct life_end *end)
{
	const struct wire_state *state = &end->state;
	bool by_exit = state->exit_known != 0 && WIFEXITED(state->exit_status) && state->bye == 0;
	bool by_another = state->exit_known == 0 || state->exit_status == SIGKILL ||
			  state->exit_status == SIGTERM || by_exit;

	if (!life_is_failure(state))
		return false;
	return !by_another || steps_after(e, end) >= WENT_ON_STEPS;
}

static void append_others(const struct ending *e)
{
	str_printf(e->reason, "the others went on to step %" PRIu64, e->step);
	append_before(e);
	append_asked(e);
}

/* The launcher did not mind that a rank failed. */
static bool rank_failed(const struct ending *e)
{
	const struct life *life = lives_present(e->facts->lives);
	size_t i = 0;

	while (i < life->cnt && !counts(e, &life->ends[i]))
		i++;
	if (i == life->cnt || life_is_interrupted(life))
		return false;
	str_append(e->reason, "in part: ");
	append_rank(e, &life->ends[i].state, "ended");
	str_append(e->reason, "; ");
	append_others(e);
	return true;
}

/* Ranks of a job end together, but for uneven data; processes of a sweep do not. */
static bool left_early(const struct ending *e)
{
	const struct life_end *first = life_first(lives_present(e->facts->lives));
	uint64_t after = first != NULL ? steps_after(e, first) : 0;

	if (after < ENDING_ITERATIONS_MIN || (double)after < LEFT_EARLY_FRAC * (double)e->step ||
	    first->state.world_size < 2)
		return false;
	append_rank(e, &first->state, "left");
	str_append(e->reason, "; ");
	append_others(e);
	return true;
}

/* What its processes did before is known to the daemon that ended, and to the reports that it wrote. */
static bool watched_in_part(const struct ending *e)
{
	if (e->facts->restarts == 0)
		return false;
	str_printf(e->reason, "the daemon on this host ended %u time%s before the job did",
		   e->facts->restarts, plural(e->facts->restarts));
	str_append(e->reason, "; what ran here then was not watched any more");
	if (e->facts->earlier_report > 0)
		str_printf(e->reason, ", and report-%" PRIu64 " and earlier ones say what it found",
			   e->facts->earlier_report);
	str_append(e->reason, "; ");
	append_watched(e);
	append_asked(e);
	return true;
}

static bool no_worker_came(const struct ending *e)
{
	if (e->facts->cnt > 0 || e->facts->restarts > 0)
		return false;
	str_append(e->reason, "no training iteration was seen; " ENDING_ADVICE
			      "; a rank started by fork connects when it first steps an optimizer");
	append_asked(e);
	return true;
}

static bool stuck(const struct ending *e)
{
	if (!e->facts->stuck)
		return false;
	str_printf(e->reason,
		   "no iteration ended after step %" PRIu64 ", and no rank differed from "
		   "the others; perftracker timeline, with the folder of this "
		   "report, shows what each recorded last",
		   e->step);
	append_asked(e);
	history_append(e->facts->history, e->reason);
	return true;
}

static void append_slow_end(const struct ending *e, const char *more)
{
	append_slowdown(e);
	str_printf(e->reason, ", until the end at step %" PRIu64 "%s", e->step, more);
	append_asked(e);
	history_append(e->facts->history, e->reason);
}

static bool slow(const struct ending *e)
{
	const struct report_trigger slowdown = slowdown_of(e);

	if (!e->facts->slow || trigger_is_slight(&slowdown))
		return false;
	append_slow_end(e, "");
	return true;
}

static bool slightly_slow(const struct ending *e)
{
	if (!e->facts->slow)
		return false;
	append_slow_end(e, ": " TRIGGER_SLIGHT);
	return true;
}

static bool ranks_unseen(const struct ending *e)
{
	if ((int)e->seen_cnt >= e->report->world_size)
		return false;
	str_printf(e->reason,
		   "%zu of %d ranks were watched, those of this run; the others are unknown; ",
		   e->seen_cnt, e->report->world_size);
	append_watched(e);
	append_no_slowdown(e);
	append_asked(e);
	history_append(e->facts->history, e->reason);
	return true;
}

static bool hook_off(const struct ending *e)
{
	if (e->silent_cnt + e->off_cnt == 0)
		return false;
	if (e->off_cnt > 0)
		str_printf(e->reason, "the hook switched itself off in %zu of %zu workers; ",
			   e->off_cnt, e->facts->cnt);
	if (e->silent_cnt > e->off_cnt)
		str_printf(e->reason, "the hosts of %zu of %zu workers were silent at the end; ",
			   e->silent_cnt - e->off_cnt, e->facts->cnt);
	append_watched(e);
	append_asked(e);
	return true;
}

static bool too_short(const struct ending *e)
{
	double cnt = e->report->iterations;

	if (cnt >= ENDING_ITERATIONS_MIN)
		return false;
	str_printf(e->reason,
		   "only %.0f iteration%s seen, %u are needed; let the job run longer, or ask for "
		   "a profile while it runs: perftracker profile",
		   cnt, cnt == 1 ? " was" : "s were", ENDING_ITERATIONS_MIN);
	append_asked(e);
	return true;
}

/* Too short to be reported as a hang; but people end jobs that no longer move. */
static bool was_silent(const struct ending *e)
{
	int64_t silent_ns = e->facts->end.asked_ns - e->facts->last_mark_ns;
	double iterations_ns = SILENT_ITERATIONS * e->report->iteration_ms * NSEC_PER_MSEC;
	const struct life_end *first = life_first(lives_present(e->facts->lives));

	if (!was_asked(e) || silent_ns < SILENT_NS || (double)silent_ns < iterations_ns)
		return false;
	append_watched(e);
	str_printf(e->reason, ", but none ended in the last %.0f s",
		   (double)silent_ns / NSEC_PER_SEC);
	if (first != NULL) {
		str_append(e->reason, "; ");
		append_rank(e, &first->state, "had left");
	}
	append_asked(e);
	return true;
}

static bool hung(const struct ending *e)
{
	if (e->facts->hangs == 0)
		return false;
	append_watched(e);
	str_printf(e->reason,
		   "; %u time%s no iteration ended for a while, and no rank differed from the "
		   "others; perftracker timeline, with the folder of this report, shows what each "
		   "recorded last",
		   e->facts->hangs, plural(e->facts->hangs));
	append_asked(e);
	return true;
}

/* Too late to be called slow, and too much to be called healthy. */
static bool slow_of_late(const struct ending *e)
{
	const struct jobstate_pace *pace = &e->facts->pace;

	if (pace->slow_since_step == 0 ||
	    (double)pace->now_ns < LATE_FACTOR * (double)pace->baseline_ns)
		return false;
	append_watched(e);
	str_append(e->reason, ", but they became slower shortly before the end, ");
	append_slowdown(e);
	append_asked(e);
	history_append(e->facts->history, e->reason);
	return true;
}

static bool is_unclear(const struct ending *e)
{
	return e->facts->unclear != NULL && e->facts->unclear[0] != '\0';
}

/* Iterations vary so much that noise may explain even this: neither slow nor healthy. */
static bool unsteady(const struct ending *e)
{
	if (factor_of(e) < UNSTEADY_FACTOR)
		return false;
	append_watched(e);
	str_append(e->reason, ", ");
	append_paces(e);
	str_append(e->reason, ", but their times vary too much to say that the job became slower; "
			      "was the machine shared?");
	if (is_unclear(e))
		str_printf(e->reason, " The check-up has no verdict either: %s", e->facts->unclear);
	append_asked(e);
	history_append(e->facts->history, e->reason);
	return true;
}

/* No slowdown; but whether a rank has made the others wait from the first step is not known. */
static bool checkup_unclear(const struct ending *e)
{
	if (!is_unclear(e))
		return false;
	append_watched(e);
	append_no_slowdown(e);
	str_printf(e->reason, ", but the check-up has no verdict: %s", e->facts->unclear);
	append_asked(e);
	history_append(e->facts->history, e->reason);
	return true;
}

/* As above: there was no window at all. */
static bool not_compared(const struct ending *e)
{
	if (!e->facts->uncompared || e->seen_cnt < 2)
		return false;
	append_watched(e);
	append_no_slowdown(e);
	str_append(e->reason, ", but the ranks were not compared: the job was not at a steady pace "
			      "for long enough; while it runs, perftracker profile compares them");
	append_asked(e);
	history_append(e->facts->history, e->reason);
	return true;
}

static bool end_unknown(const struct ending *e)
{
	if (e->facts->end.exit_status >= 0)
		return false;
	append_watched(e);
	append_no_slowdown(e);
	str_append(e->reason,
		   ", but PerfTracker was ended before the job: how the job ended is not known");
	return true;
}

static bool all_well(const struct ending *e)
{
	append_watched(e);
	append_no_slowdown(e);
	recall_append_slower(e->facts->earlier, ", but ", e->reason);
	if (e->facts->slowdowns > 0 && e->facts->history->cnt == 0)
		str_printf(e->reason, "; %u short slowdown%s profiled, %s cause was not found",
			   e->facts->slowdowns, e->facts->slowdowns == 1 ? " was" : "s were",
			   e->facts->slowdowns == 1 ? "its" : "their");
	append_asked(e);
	history_append(e->facts->history, e->reason);
	return true;
}

static int look(struct ending *e)
{
	for (size_t i = 0; i < e->facts->cnt; i++) {
		const struct wire_state *state = &e->facts->states[i];

		e->step = MAX(e->step, state->step);
		e->silent_cnt += state->phase == PHASE_SILENT;
		e->off_cnt += state->silent != 0;
	}
	return jobstate_count_ranks(e->facts->states, e->facts->cnt, &e->seen_cnt);
}

/* Returns 0 or -ENOMEM. */
static int conclude(struct ending *e, struct report *report)
{
	/* The first that applies; all_well() always does. */
	static const struct {
		bool (*applies)(const struct ending *e);
		enum verdict verdict;
	} rules[] = {
		{ failed, VERDICT_FAILED },
		{ restarted, VERDICT_FAILED },
		{ rank_failed, VERDICT_FAILED },
		{ no_worker_came, VERDICT_INCONCLUSIVE },
		{ stuck, VERDICT_STUCK },
		{ slow, VERDICT_SLOW },
		{ watched_in_part, VERDICT_INCOMPLETE },
		{ left_early, VERDICT_INCOMPLETE },
		{ ranks_unseen, VERDICT_INCOMPLETE },
		{ hook_off, VERDICT_INCOMPLETE },
		{ too_short, VERDICT_INCONCLUSIVE },
		{ was_silent, VERDICT_INCONCLUSIVE },
		{ hung, VERDICT_INCONCLUSIVE },
		{ slightly_slow, VERDICT_INCONCLUSIVE },
		{ slow_of_late, VERDICT_INCONCLUSIVE },
		{ unsteady, VERDICT_INCONCLUSIVE },
		{ checkup_unclear, VERDICT_INCONCLUSIVE },
		{ not_compared, VERDICT_INCONCLUSIVE },
		{ end_unknown, VERDICT_INCONCLUSIVE },
		{ all_well, VERDICT_HEALTHY },
	};
	size_t i = 0;

	while (!rules[i].applies(e))
		i++;
	report->verdict = rules[i].verdict;
	if (report->verdict != VERDICT_HEALTHY)
		recall_append_slower(e->facts->earlier, "; its pace was ", e->reason);
	report->reason = str_error(e->reason) == 0
				 ? arena_strdup(&report->arena, str_borrow(e->reason))
				 : NULL;
	return report->reason != NULL ? 0 : -ENOMEM;
}

void ending_append_lasting(const struct ending_facts *facts, struct str *out)
{
	struct ending e = { .facts = facts, .reason = out };

	for (size_t i = 0; i < facts->cnt; i++)
		e.step = MAX(e.step, facts->states[i].step);
	str_printf(out, "; it lasted until the end at step %" PRIu64, e.step);
	append_asked(&e);
}

int ending_report(const struct ending_facts *facts, struct report *ret)
{
	struct report report = { .rank_source = "the job's environment", .job_id = "live" };
	struct str reason = { 0 };
	struct ending e = { .facts = facts, .report = &report, .reason = &reason };
	int error;

	arena_init(&report.arena);
	jobstate_fill_report(facts->states, facts->cnt, &report);
	error = look(&e);
	report.workers_analyzed = (int)(e.seen_cnt - MIN(e.seen_cnt, e.silent_cnt));
	if (error == 0)
		error = conclude(&e, &report);
	str_done(&reason);
	if (error < 0)
		arena_done(&report.arena);
	else
		*ret = report;
	return error;
}
