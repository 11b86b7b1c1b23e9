/* SPDX-License-Identifier: Apache-2.0 */
/* When the hub profiles: a slowdown, again while it lasts, a check-up; and reports of hangs. */
#include "base/log.h"
#include "live/ending/leaver.h"
#include "live/hang/hang.h"
#include "live/hub/hub_parts.h"

#include <inttypes.h>
#include <stdlib.h>

#define HANG_STACKS_NS (12 * NSEC_PER_SEC) /* a hang's report waits so long for stacks */
#define HANG_AGAIN_NS (15 * NSEC_PER_SEC)  /* what may only take long is judged again then */

static enum detector_state detector_state_of(const struct wire_state *state, bool ending)
{
	switch ((enum wire_phase)state->phase) {
	case PHASE_STEADY:
		return DETECTOR_WATCHING;
	case PHASE_PROFILING:
		return state->slow_since_step != 0 ? DETECTOR_SLOW : DETECTOR_WATCHING;
	case PHASE_SLOW:
		return DETECTOR_SLOW;
	case PHASE_BLOCKED:
		return ending ? DETECTOR_LEARNING : DETECTOR_BLOCKED;
	case PHASE_LEARNING:
	case PHASE_GONE:
	case PHASE_SILENT:
		break;
	}
	return DETECTOR_LEARNING;
}

/* states: as many as there are workers. Returns how many are watched. */
static size_t gather_states(const struct hub *hub, enum detector_state *states, int64_t now_ns)
{
	bool ending = hang_job_is_ending(hub->workers.data, hub->workers.cnt) &&
		      !leaver_is_awaited(hub->workers.data, hub->workers.cnt, hub->wheres.data,
					 hub->wheres.cnt, now_ns);
	bool excused = overhead_excuses(&hub->overhead, hub->workers.data, hub->workers.cnt);
	size_t cnt = 0;

	vec_foreach(state, &hub->workers) {
		if (!wire_is_watched(state))
			continue;
		states[cnt] = detector_state_of(state, ending);
		if (excused && states[cnt] == DETECTOR_SLOW)
			states[cnt] = DETECTOR_WATCHING;
		cnt++;
	}
	return cnt;
}

bool hub_is_slow(const struct hub *hub, struct jobstate_pace *ret)
{
	jobstate_pace(hub->workers.data, hub->workers.cnt, ret);
	return jobwatch_is_slow(&hub->watch) && ret->slow_since_step != 0;
}

static void log_slow(struct hub *hub, const struct jobstate_pace *pace)
{
	if (!hub->options->quiet)
		log_line(LOG_WARNING,
			 "event=slow since_step=%" PRIu64
			 " baseline_ms=%.1f now_ms=%.1f factor=%.2f",
			 pace->slow_since_step, (double)pace->baseline_ns / NSEC_PER_MSEC,
			 (double)pace->now_ns / NSEC_PER_MSEC, jobstate_factor(pace));
	keeper_event(hub->keeper, "slow", "%.1f -> %.1f ms since step %" PRIu64,
		     (double)pace->baseline_ns / NSEC_PER_MSEC,
		     (double)pace->now_ns / NSEC_PER_MSEC, pace->slow_since_step);
	hub->slowdown = *pace;
	hub->accepted = false;
}

static void log_slow_is_over(struct hub *hub, const struct jobstate_pace *pace)
{
	if (!hub->options->quiet && !hub->accepted)
		log_line(LOG_INFO,
			 "event=slow-over since_step=%" PRIu64 " step=%" PRIu64
			 " baseline_ms=%.1f now_ms=%.1f",
			 hub->slowdown.slow_since_step,
			 jobstate_step(hub->workers.data, hub->workers.cnt),
			 (double)pace->baseline_ns / NSEC_PER_MSEC,
			 (double)pace->now_ns / NSEC_PER_MSEC);
	keeper_event(hub->keeper, "slow-over", "%.1f ms at step %" PRIu64,
		     (double)pace->now_ns / NSEC_PER_MSEC,
		     jobstate_step(hub->workers.data, hub->workers.cnt));
	hub->slowdown = (struct jobstate_pace){ 0 };
	hub->accepted = false;
	moment_end(&hub->moment);
}

static void log_pace(struct hub *hub)
{
	struct jobstate_pace pace;
	bool slow = hub_is_slow(hub, &pace);

	if (slow && hub->slowdown.slow_since_step == 0)
		log_slow(hub, &pace);
	else if (!jobwatch_is_slow(&hub->watch) && hub->slowdown.slow_since_step != 0)
		log_slow_is_over(hub, &pace);
}

static void note_pace(struct hub *hub)
{
	struct jobstate_pace pace;
	bool slow = hub_is_slow(hub, &pace);

	history_pace(&hub->history, slow, &pace,
		     jobstate_step(hub->workers.data, hub->workers.cnt));
}

static void profile_slowdown(struct hub *hub, int64_t now_ns)
{
	unsigned times = jobwatch_lengthen(&hub->watch);
	const struct profile_wish wish = { "slowdown", hub->options->window_ns * times,
					   hub->options->steps_max * times };

	if (hub_start_profile(hub, &wish, now_ns) < 0)
		jobwatch_note_result(&hub->watch, JOBWATCH_NO_WINDOW, 0, 0, now_ns);
}

/* A window that is only kept. If it cannot be ordered, the check-up follows soon. */
static void take_early_window(struct hub *hub, int64_t now_ns)
{
	const struct profile_wish wish = { PROFILE_EARLY, hub->options->window_ns,
					   hub->options->steps_max };

	checkup_note_early(&hub->checkup, now_ns);
	(void)hub_start_profile(hub, &wish, now_ns);
}

static void check_up(struct hub *hub, int64_t now_ns)
{
	unsigned times = checkup_lengthen(&hub->checkup);
	const struct profile_wish wish = { "checkup", hub->options->window_ns * times,
					   hub->options->steps_max * times };

	checkup_update(&hub->checkup, hub->workers.data, hub->workers.cnt, now_ns);
	if (hub->overhead.running ||
	    overhead_excuses(&hub->overhead, hub->workers.data, hub->workers.cnt))
		return;
	if (checkup_is_early_due(&hub->checkup, hub->workers.data, hub->workers.cnt, now_ns)) {
		take_early_window(hub, now_ns);
		return;
	}
	if (!checkup_is_due(&hub->checkup, hub->workers.data, hub->workers.cnt, now_ns))
		return;
	/*
	 * The slowdown has windows of its own, which also compare the ranks. Without the job's past
	 * a check-up could only tell what was always so, and hide the cause.
	 */
	if (jobwatch_is_slow(&hub->watch))
		return;
	checkup_note_begun(&hub->checkup, now_ns);
	if (hub_start_profile(hub, &wish, now_ns) < 0)
		checkup_note_failed(&hub->checkup, "");
}

bool hub_holds_audit(const struct hub *hub, int64_t now_ns)
{
	if (hub->checkup.doubted)
		return true; /* the second window comes first: the job may end in an audit */
	/* That of a window's collectors goes before the check-up: it says whether they are too
	 * expensive. */
	return !hub->overhead.running && checkup_is_near(&hub->checkup) &&
	       now_ns < hub->overhead.series[OVERHEAD_WINDOW].due_ns;
}

/* Whether the stacks of each watched worker have been read. Those of other hosts say it a moment later. */
static bool all_wheres_known(const struct hub *hub)
{
	vec_foreach(state, &hub->workers) {
		bool known = !wire_is_watched(state);

		vec_foreach(where, &hub->wheres)
			known |= where->worker == state->worker && where->read != 0 &&
				 (where->step == state->step || state->phase != PHASE_BLOCKED);
		if (!known)
			return false;
	}
	return true;
}

static bool is_blocked(const struct hub *hub)
{
	vec_foreach(state, &hub->workers) {
		if (state->phase == PHASE_BLOCKED)
			return true;
	}
	return false;
}

/* Reports a hang that was decided, when what the report needs is there. */
static void mind_hang(struct hub *hub, int64_t now_ns)
{
	if (hub->hang_due_ns == 0 || (now_ns < hub->hang_due_ns && !all_wheres_known(hub)))
		return;
	hub->hang_due_ns = 0;
	if (is_blocked(hub) && !hub_report_blocked(hub, now_ns))
		hub->hang_due_ns = now_ns + HANG_AGAIN_NS;
}

void hub_decide(struct hub *hub, int64_t now_ns)
{
	_cleanup_free_ enum detector_state *states = calloc(hub->workers.cnt + 1, sizeof(*states));
	struct jobstate_pace pace;
	enum job_decision decision;

	if (states == NULL || hub->ending)
		return;
	jobstate_pace(hub->workers.data, hub->workers.cnt, &pace);
	jobwatch_note_pace(&hub->watch, pace.now_ns, pace.baseline_ns, now_ns);
	decision = jobwatch_update(&hub->watch, states, gather_states(hub, states, now_ns), now_ns);
	log_pace(hub);
	note_pace(hub);
	reference_update(&hub->reference, hub->workers.data, hub->workers.cnt);
	if (decision == JOB_BLOCKED)
		hub->hang_due_ns = now_ns + HANG_STACKS_NS;
	mind_hang(hub, now_ns);
	if (decision == JOB_BLOCKED)
		return;
	if (decision == JOB_SLOW)
		profile_slowdown(hub, now_ns);
	else
		check_up(hub, now_ns);
}
