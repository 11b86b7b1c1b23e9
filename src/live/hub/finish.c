/* SPDX-License-Identifier: Apache-2.0 */
/* The end of the job: the last report and the last line of the log. */
#include "base/clock.h"
#include "base/log.h"
#include "live/ending/orphans.h"
#include "live/hub/hub_parts.h"
#include "live/hub/keeping.h"
#include "live/hub/publish.h"
#include "live/recall/recall.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

/* No iteration has ended since a hang was reported. */
static bool is_stuck(const struct hub *hub)
{
	uint64_t step = 0;

	vec_foreach(state, &hub->workers)
		step = MAX(step, state->step);
	return hub->hang_step > 0 && step <= hub->hang_step;
}

/* A worker has made no mark since a hang was reported, though others may have. */
static bool is_frozen(const struct hub *hub)
{
	vec_foreach(state, &hub->workers) {
		if (hub->hang_step > 0 && !state->silent && !state->bye &&
		    state->last_ns < hub->hang_ns)
			return true;
	}
	return false;
}

static struct ending_facts gather(const struct hub *hub, const struct job_end *end)
{
	struct ending_facts ret = {
		.states = hub->workers.data,
		.cnt = hub->workers.cnt,
		.end = *end,
		.lives = &hub->lives,
		.history = &hub->history,
		.unclear = hub->checkup.unclear,
		.uncompared = !hub->compared && !hub->checkup.off,
		.last_mark_ns = hub->last_mark_ns,
		.stuck = is_stuck(hub),
		.hangs = hub->quiet_hangs,
		.slowdowns = hub->quiet_slowdowns,
		.restarts = hub->options->restarts,
		.earlier_report = hub->earlier_report,
	};

	/* A SIGINT that only the launcher got: its workers tell. */
	if (end->asked_signal == 0 && life_is_interrupted(lives_present(&hub->lives))) {
		ret.end.asked_signal = SIGINT;
		ret.end.asked_ns = life_first(lives_present(&hub->lives))->state.last_ns;
		ret.last_mark_ns = ret.end.asked_ns;
	}
	ret.slow = hub_is_slow(hub, &ret.pace);
	return ret;
}

/* A check-up may have seen the slowdown before it was called one. */
static bool is_of_slowdown(const struct hub *hub, const struct history_slowdown *slowdown)
{
	return hub->last.slow_since_step > 0 &&
	       (uint64_t)hub->last.slow_since_step == slowdown->since_step;
}

/*
 * Whether the latest report says already what the end would say, and more: where a slow or a stuck
 * job loses its time, or which finding it had before all was well. A failure is news, unless the
 * job had stopped before and a finding says why.
 */
static bool is_reported(const struct hub *hub, const struct report *report)
{
	const struct history_slowdown *slowdown = history_open(&hub->history);

	if (!hub->last.present)
		return false;
	switch (report->verdict) {
	case VERDICT_FAILED:
		return (is_stuck(hub) || is_frozen(hub)) && hub->last.verdict == VERDICT_ABNORMAL;
	case VERDICT_STUCK:
		return hub->last.verdict == VERDICT_ABNORMAL || hub->last.verdict == VERDICT_STUCK;
	case VERDICT_SLOW:
		return slowdown != NULL && (slowdown->reported || is_of_slowdown(hub, slowdown)) &&
		       (hub->last.verdict == VERDICT_ABNORMAL || hub->last.verdict == VERDICT_SLOW);
	case VERDICT_HEALTHY:
	case VERDICT_INCONCLUSIVE:
	case VERDICT_INCOMPLETE:
	case VERDICT_NOTHING_FOUND: /* never of a window of a run */
		return hub->found;
	case VERDICT_ABNORMAL:
	case VERDICT_CNT:
		break;
	}
	return false;
}

/* The last line of a run. A report that has just been printed has said the reason. */
static void log_finished(const struct hub *hub, enum verdict verdict, const char *reason)
{
	if (hub->options->quiet)
		return;
	log_line(LOG_INFO, "event=finished verdict=%s%s%s%s report=\"%s\"", verdict_name(verdict),
		 reason == NULL ? "" : " reason=\"", reason == NULL ? "" : reason,
		 reason == NULL ? "" : "\"", hub->last.path);
}

/* A job may be slow for a reason that was found, and fail for another one: the report says both. */
static void append_finding(const struct hub *hub, struct report *report)
{
	const char *slash = strrchr(hub->last.path, '/');
	char *reason;

	if (!hub->last.present || hub->last.verdict != VERDICT_ABNORMAL || slash == NULL)
		return;
	reason = arena_printf(&report->arena, "%s; found before that: %s (%s)", report->reason,
			      hub->last.reason, slash + 1);
	if (reason != NULL)
		report->reason = reason;
}

static void publish_last(struct hub *hub, struct report *report)
{
	struct err err;

	append_finding(hub, report);
	hub_fill_overhead(hub, &report->overhead);
	jobstate_loop(hub->workers.data, hub->workers.cnt, &report->loop);
	hub_remember_report(hub, report, 0);
	if (publish_files(report, hub->options, 0, &err) < 0)
		log_line(LOG_ERROR, "event=report-not-written why=\"%s\"", err.text);
	else
		publish_text(report, hub->options, 0, true);
	keeper_report(hub->keeper, report, 0);
	webhook_report(hub->webhook, report, 0);
	if (!hub->options->quiet || verdict_is_bad(report->verdict))
		publish_print(report, hub->options);
	log_finished(hub, report->verdict, NULL);
}

/* Says how the job ended beside the latest report, which stays: it has more to say. */
static void log_last(const struct hub *hub, const struct ending_facts *facts,
		     const struct report *end)
{
	struct str reason = { 0 };

	str_append(&reason, hub->last.reason);
	if (end->verdict == VERDICT_SLOW || end->verdict == VERDICT_STUCK)
		ending_append_lasting(facts, &reason);
	else if (end->verdict == VERDICT_FAILED)
		str_printf(&reason, "; then the job failed %s", end->reason);
	else
		str_printf(&reason, "; at the end: %s", end->reason);
	hub_log_cost(hub, "own-cost");
	log_finished(hub, hub->last.verdict, str_borrow(&reason));
	str_done(&reason);
}

void hub_expect_end(struct hub *hub)
{
	hub->ending = true;
	/* Later marks may be those of workers that a signal woke. */
	vec_foreach(state, &hub->workers)
		hub->last_mark_ns = MAX(hub->last_mark_ns, state->last_ns);
}

bool hub_ended_well(const struct hub *hub)
{
	return lives_ended_well(&hub->lives);
}

/* A run that was called slower is no measure for the next one. */
static void note_earlier(struct hub *hub, const struct earlier_answer *answer,
			 struct report *report)
{
	const struct keeper_memory *memory = keeper_borrow_memory(hub->keeper);
	struct str slower = { 0 }, closed = { 0 };

	recall_note_pace(report, answer, keeper_borrow_key(hub->keeper));
	recall_append_slower(answer, "", &slower);
	if (slower.len > 0)
		keeper_event(hub->keeper, EARLIER_SLOWER_EVENT, "%s", str_borrow(&slower));
	/* Without a window that compared the ranks nothing is known to be gone. */
	if (memory != NULL && !hub->found && hub->compared)
		recall_note_gone(report, &memory->past, &memory->earlier, answer, &closed);
	if (closed.len > 0)
		keeper_event(hub->keeper, "closed", "%s", str_borrow(&closed));
	str_done(&slower);
	str_done(&closed);
}

static void note_orphans(const struct hub *hub, struct ending_facts *facts)
{
	struct str text = { 0 };

	orphans_append("", hub->workers.data, hub->workers.cnt, &text);
	(void)snprintf(facts->orphans, sizeof(facts->orphans), "%s", str_borrow(&text));
	str_done(&text);
}

void hub_finish(struct hub *hub, const struct job_end *end)
{
	struct earlier_answer earlier;
	struct ending_facts facts;
	struct report report;
	uint64_t number;

	if (hub->led)
		return; /* the other hub reports */
	if (hub->profile.active)
		hub_finish_profile(hub); /* may report a slowdown */
	hub_recover_all(hub);
	if (doubt_take(&hub->doubt, &report, &number)) {
		checkup_note_failed(&hub->checkup, report.reason);
		hub_publish_report(hub, &report, number, false);
	}
	if (moment_take(&hub->moment, &report, &number)) /* slow until the end */
		hub_publish_report(hub, &report, number, false);
	facts = gather(hub, end);
	note_orphans(hub, &facts);
	if (keeper_compare(hub->keeper, (uint32_t)hub->workers.cnt, &earlier))
		facts.earlier = &earlier;
	hub_reply(hub, ESRCH, "the job has ended");
	if (ending_report(&facts, &report) < 0) {
		log_line(LOG_ERROR, "event=report-not-made why=\"out of memory\"");
		return;
	}
	publish_origin(hub->options, hub->workers.data, hub->workers.cnt, &report);
	hub_fill_pace(hub, &report);
	if (facts.earlier != NULL)
		note_earlier(hub, &earlier, &report);
	if (is_reported(hub, &report))
		log_last(hub, &facts, &report);
	else
		publish_last(hub, &report);
	arena_done(&report.arena);
	hub_keep_end(hub, end);
}
