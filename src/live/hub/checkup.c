/* SPDX-License-Identifier: Apache-2.0 */
#include "live/hub/checkup.h"

#include "live/hub/doubt.h"
#include "model/thresholds.h"

#include <stdio.h>

/* What is over sooner is no slowdown of the job, but noise. */
#define CHECKUP_NOISE_NS JOBWATCH_HOLD_NS

/* Of an unclear check-up, the third window: times the usual. */
#define CHECKUP_LONGEST 4u

static bool is_at_its_pace(const struct wire_state *state)
{
	return state->phase == PHASE_STEADY && state->slow_since_step == 0 &&
	       state->baseline_ns > 0;
}

static bool all_at_their_pace(const struct wire_state *states, size_t cnt)
{
	size_t watched = 0;

	for (size_t i = 0; i < cnt; i++) {
		if (!wire_is_watched(&states[i]))
			continue;
		if (!is_at_its_pace(&states[i]))
			return false;
		watched++;
	}
	return watched > 0;
}

/* Whether all have a pace, at which they may be or not. */
static bool all_are_known(const struct wire_state *states, size_t cnt)
{
	size_t watched = 0;

	for (size_t i = 0; i < cnt; i++) {
		const struct wire_state *state = &states[i];

		if (!wire_is_watched(state))
			continue;
		if (state->baseline_ns == 0 ||
		    (state->phase != PHASE_STEADY && state->phase != PHASE_SLOW))
			return false;
		watched++;
	}
	return watched > 0;
}

uint64_t checkup_job(const struct wire_state *states, size_t cnt)
{
	uint64_t job = 1;

	/* A sum, so that the order of the workers does not matter; ids are never used again. */
	for (size_t i = 0; i < cnt; i++) {
		if (wire_is_watched(&states[i]))
			job += ((uint64_t)states[i].worker << 16) + states[i].learned_cnt;
	}
	return job;
}

void checkup_update(struct checkup *checkup, const struct wire_state *states, size_t cnt,
		    int64_t now_ns)
{
	uint64_t job = checkup_job(states, cnt);
	bool steady = all_at_their_pace(states, cnt);

	if (checkup->known_ns == 0 && all_are_known(states, cnt))
		checkup->known_ns = MAX(now_ns, 1);
	if (steady)
		checkup->away_ns = 0;
	else if (checkup->away_ns == 0)
		checkup->away_ns = MAX(now_ns, 1);
	if (!steady && now_ns - checkup->away_ns >= CHECKUP_NOISE_NS)
		checkup->steady_ns = 0;
	else if (steady && (checkup->steady_ns == 0 || checkup->job != job))
		checkup->steady_ns = MAX(now_ns, 1);
	checkup->job = job;
}

bool checkup_is_near(const struct checkup *checkup)
{
	return !checkup->off && checkup->done_job == 0 && checkup->steady_ns != 0;
}

/* Steady for so long, at least; one window of the detector has passed before. */
static bool is_steady(const struct checkup *checkup, const struct wire_state *states, size_t cnt,
		      int64_t least_ns, int64_t now_ns)
{

	for (size_t i = 0; i < cnt; i++) {
		if (wire_is_watched(&states[i]))
			least_ns = MAX(least_ns, states[i].baseline_ns * checkup->recent_cnt);
	}
	return checkup->steady_ns != 0 && checkup->away_ns == 0 &&
	       now_ns - checkup->steady_ns >= least_ns;
}

/* Twice what a steady job waits, and no pace yet that all keep. */
static bool is_overdue(const struct checkup *checkup, const struct wire_state *states, size_t cnt,
		       int64_t now_ns)
{
	int64_t least_ns = CHECKUP_PATIENCE_NS;

	for (size_t i = 0; i < cnt; i++) {
		if (wire_is_watched(&states[i]))
			least_ns = MAX(least_ns, 2 * states[i].baseline_ns * checkup->recent_cnt);
	}
	return checkup->known_ns != 0 && now_ns - checkup->known_ns >= least_ns &&
	       all_are_known(states, cnt);
}

unsigned checkup_lengthen(const struct checkup *checkup)
{
	return checkup->failures == 0 ? 1 : checkup->failures == 1 ? 2 : CHECKUP_LONGEST;
}

static int64_t retry_ns(const struct checkup *checkup)
{
	static const int64_t gaps_ns[] = { 20 * NSEC_PER_SEC, 60 * NSEC_PER_SEC, CHECKUP_RETRY_NS,
					   CHECKUP_INTERVAL_NS };

	return gaps_ns[MIN((size_t)checkup->failures, ARRAY_SIZE(gaps_ns)) - 1];
}

bool checkup_is_due(const struct checkup *checkup, const struct wire_state *states, size_t cnt,
		    int64_t now_ns)
{
	int64_t since_ns = now_ns - checkup->done_ns;

	if (checkup->off)
		return false;
	/* Its fault may be what makes the pace unsteady. */
	if (checkup->doubted)
		return since_ns >= DOUBT_AGAIN_NS;
	if (checkup->done_job == 0 && is_overdue(checkup, states, cnt, now_ns))
		return true;
	if (!is_steady(checkup, states, cnt, CHECKUP_STEADY_NS, now_ns))
		return false;
	if (checkup->done_job == 0)
		return true;
	if (checkup->failures > 0)
		return since_ns >= retry_ns(checkup);
	if (checkup->done_job != checkup->job)
		return since_ns >= CHECKUP_RETRY_NS;
	return since_ns >= CHECKUP_INTERVAL_NS;
}

bool checkup_is_early_due(const struct checkup *checkup, const struct wire_state *states,
			  size_t cnt, int64_t now_ns)
{
	if (checkup->off)
		return false;
	if (!checkup->bare &&
	    (checkup->job == checkup->done_job || checkup->job == checkup->early_job))
		return false;
	if (!checkup->bare && checkup->early_job != 0 &&
	    now_ns - checkup->early_ns < CHECKUP_EARLY_GAP_NS)
		return false;
	return is_steady(checkup, states, cnt, CHECKUP_EARLY_NS, now_ns);
}

void checkup_note_early(struct checkup *checkup, int64_t now_ns)
{
	checkup->early_job = checkup->job;
	checkup->early_ns = now_ns;
	checkup->bare = false;
}

void checkup_note_past_lost(struct checkup *checkup)
{
	checkup->bare = true;
}

void checkup_note_begun(struct checkup *checkup, int64_t now_ns)
{
	checkup->done_job = checkup->job;
	checkup->done_ns = now_ns;
	checkup->done_steady = checkup->steady_ns != 0 && checkup->away_ns == 0;
	checkup->doubted = false;
}

void checkup_note_failed(struct checkup *checkup, const char *why)
{
	checkup->failures++;
	(void)snprintf(checkup->unclear, sizeof(checkup->unclear), "%s", why);
}

void checkup_note_passed(struct checkup *checkup)
{
	checkup->failures = 0;
	checkup->unclear[0] = '\0';
}

void checkup_forget(struct checkup *checkup)
{
	checkup_note_passed(checkup);
	checkup->doubted = false;
	checkup->known_ns = checkup->steady_ns = checkup->away_ns = 0;
}

void checkup_note_doubted(struct checkup *checkup, int64_t now_ns)
{
	checkup->doubted = true;
	checkup->done_ns = now_ns;
}
