/* SPDX-License-Identifier: Apache-2.0 */
#include "detect/detector.h"

#include "detect/kinds.h"
#include "detect/loop.h"
#include "model/thresholds.h"

#include <math.h>

const struct detector_config detector_default_config = {
	.sequence = { .repeat_cnt = SEQUENCE_REPEAT_CNT, .lost_cnt = SEQUENCE_LOST_CNT },
	.pace = {
		.window_cnt = PACE_WINDOW_CNT,
		.warmup_cnt = PACE_WARMUP_CNT,
		.confirm_cnt = PACE_CONFIRM_CNT,
		.history_cnt = PACE_HISTORY_CNT,
		.pause_cnt = PACE_PAUSE_CNT,
		.slow_frac = PACE_SLOW_FRAC,
		.noise_z = PACE_NOISE_Z,
		.pause_factor = PACE_PAUSE_FACTOR,
		.clear_factor = PACE_CLEAR_FACTOR,
	},
	.blocked_factor = BLOCKED_FACTOR,
	.blocked_floor_ns = BLOCKED_FLOOR_NS,
	.pause_limit_ns = BLOCKED_PAUSE_LIMIT_NS,
};

/* The marks come from another process: a time beyond 73 years of uptime is invalid. */
#define TIME_MAX_NS (INT64_MAX / 4)

struct detector {
	struct detector_config config;
	struct loop *loop;
	struct kinds *kinds;
	int64_t last_mark_ns;
	int64_t last_end_ns;  /* of the last matched iteration; 0: no gap is known */
	int64_t usual_gap_ns; /* from an iteration's end to the next one's begin */
	int64_t iteration_ns;
	int64_t longest_pause_ns;
	uint64_t iterations, skipped;
	uint64_t last_step, slow_since_step, learned_step;
	uint32_t learned_cnt;
	uint32_t unmeasured; /* iterations not to be measured yet */
	bool suspended, stops, blocked, slow;
};

struct detector *detector_new(const struct detector_config *config)
{
	struct detector *det = calloc(1, sizeof(*det));

	if (det == NULL)
		return NULL;
	det->config = *config;
	det->loop = loop_new(&config->sequence);
	det->kinds = kinds_new(&config->pace, LOOP_KIND_CNT);
	if (det->loop == NULL || det->kinds == NULL)
		return detector_free(det);
	return det;
}

struct detector *detector_free(struct detector *det)
{
	if (det == NULL)
		return NULL;
	loop_free(det->loop);
	kinds_free(det->kinds);
	free(det);
	return NULL;
}

/* A moving average that forgets in about ten iterations; long gaps are pauses, not usual. */
static void note_gap(struct detector *det, int64_t gap_ns)
{
	if (det->usual_gap_ns == 0)
		det->usual_gap_ns = gap_ns;
	else if (gap_ns < 2 * det->usual_gap_ns + NSEC_PER_MSEC)
		det->usual_gap_ns += (gap_ns - det->usual_gap_ns) / 8;
}

static int64_t measure(struct detector *det, const struct loop_match *match)
{
	int64_t duration_ns = match->end_ns - match->begin_ns;
	bool adjacent = match->skipped == 0 && det->last_end_ns != 0;
	int64_t gap_ns = match->begin_ns - det->last_end_ns;

	if (adjacent && gap_ns >= 0) {
		note_gap(det, gap_ns);
		return match->end_ns - det->last_end_ns;
	}
	return duration_ns > 0 ? duration_ns + det->usual_gap_ns : 0;
}

static void become_slow(struct detector *det)
{
	struct pace_view pace;
	uint64_t lasted_steps;

	kinds_look(det->kinds, &pace);
	lasted_steps = (pace.iterations + 1 - pace.slow_since) * MAX(loop_step_cnt(det->loop), 1u);
	det->slow = true;
	det->slow_since_step =
		det->last_step > lasted_steps ? det->last_step - lasted_steps + 1 : 1;
}

static void end_slow(struct detector *det)
{
	det->slow = false;
	det->slow_since_step = 0;
}

static unsigned take_sample(struct detector *det, uint32_t kind, int64_t time_ns)
{
	switch (kinds_add(det->kinds, kind, time_ns)) {
	case PACE_SLOW:
		become_slow(det);
		return DETECTOR_BECAME_SLOW;
	case PACE_CLEARED:
		end_slow(det);
		return DETECTOR_CLEARED;
	case PACE_NONE:
		break;
	}
	return 0;
}

static unsigned take_match(struct detector *det)
{
	const struct loop_match *match = loop_borrow_match(det->loop);
	int64_t time_ns = measure(det, match);
	unsigned events = DETECTOR_ITERATION;

	det->iterations++;
	det->skipped += match->skipped;
	det->last_end_ns = match->end_ns;
	if (time_ns <= 0)
		return events;
	det->iteration_ns = time_ns;
	if (det->unmeasured > 0)
		det->unmeasured--;
	else if (!det->suspended && !match->partial)
		events |= take_sample(det, match->kind, time_ns);
	return events;
}

/* Learns from the silence that this mark ends; one caused by a profile is ignored. */
static unsigned end_silence(struct detector *det, int64_t now_ns)
{
	int64_t silence_ns = det->last_mark_ns == 0 ? 0 : now_ns - det->last_mark_ns;
	unsigned events = det->blocked ? DETECTOR_UNBLOCKED : 0;

	if (!det->suspended && silence_ns <= det->config.pause_limit_ns)
		det->longest_pause_ns = MAX(det->longest_pause_ns, silence_ns);
	det->last_mark_ns = now_ns;
	det->blocked = false;
	return events;
}

unsigned detector_mark(struct detector *det, const struct ring_record *record)
{
	int64_t time_ns = MAX(record->time_ns, det->last_mark_ns); /* never back */
	unsigned events;

	if (time_ns > TIME_MAX_NS)
		return 0;
	events = end_silence(det, time_ns);
	if (record->extra != 0)
		det->last_step = record->extra;
	switch (loop_mark(det->loop, record->kind, record->detail, time_ns)) {
	case SEQUENCE_LEARNED:
		kinds_reset(det->kinds);
		end_slow(det);
		det->learned_cnt++;
		det->learned_step = det->last_step;
		det->usual_gap_ns = det->last_end_ns = 0;
		return events | DETECTOR_LEARNED;
	case SEQUENCE_REGAINED:
		det->last_end_ns = 0;
		return events | DETECTOR_REGAINED;
	case SEQUENCE_LOST:
		det->last_end_ns = 0;
		return events | DETECTOR_LOST;
	case SEQUENCE_MATCHED:
		return events | take_match(det);
	case SEQUENCE_NONE:
		break;
	}
	return events;
}

bool detector_accept(struct detector *det)
{
	if (!kinds_accept(det->kinds))
		return false;
	end_slow(det);
	return true;
}

static int64_t blocked_limit(const struct detector *det)
{
	struct pace_view pace;
	double factor = det->config.blocked_factor;
	int64_t limit_ns, mean_ns, floor_ns;

	if (det->suspended)
		factor *= BLOCKED_SUSPENDED_FACTOR;
	kinds_look(det->kinds, &pace);
	/* The first iterations may compile and fill caches for minutes. */
	mean_ns = pace.ready ? pace.mean_ns : det->iteration_ns;
	floor_ns = pace.ready ? det->config.blocked_floor_ns : det->config.pause_limit_ns;
	if (mean_ns == 0)
		return 0;
	limit_ns = (int64_t)fmin(factor * (double)mean_ns, (double)TIME_MAX_NS);
	limit_ns = MAX(limit_ns, floor_ns);
	return MAX(limit_ns, det->longest_pause_ns / 2 * 3);
}

unsigned detector_tick(struct detector *det, int64_t now_ns)
{
	int64_t limit_ns = blocked_limit(det);

	if (det->blocked || limit_ns == 0 || det->last_mark_ns == 0)
		return 0;
	if (det->suspended && det->stops)
		return 0;
	if (now_ns - det->last_mark_ns < limit_ns)
		return 0;
	det->blocked = true;
	return DETECTOR_BECAME_BLOCKED;
}

void detector_suspend(struct detector *det, bool stops)
{
	det->suspended = true;
	det->stops = stops;
}

void detector_resume(struct detector *det, int64_t now_ns)
{
	det->suspended = det->stops = false;
	det->unmeasured = DETECT_SKIP_AFTER_RESUME;
	if (det->last_mark_ns != 0)
		det->last_mark_ns = now_ns;
}

static enum detector_state state_of(const struct detector *det)
{
	if (det->blocked)
		return DETECTOR_BLOCKED;
	if (!loop_is_learned(det->loop))
		return DETECTOR_LEARNING;
	return det->slow ? DETECTOR_SLOW : DETECTOR_WATCHING;
}

void detector_look(const struct detector *det, struct detector_view *ret)
{
	*ret = (struct detector_view){
		.state = state_of(det),
		.iteration_ns = det->iteration_ns,
		.last_mark_ns = det->last_mark_ns,
		.blocked_limit_ns = blocked_limit(det),
		.iterations = det->iterations,
		.skipped = det->skipped,
		.slow_since_step = det->slow_since_step,
		.learned_cnt = det->learned_cnt,
		.learned_step = det->learned_step,
		.step_cnt = loop_step_cnt(det->loop),
		.cycle_cnt = kinds_cycle(det->kinds),
		.bound_ns = loop_borrow_match(det->loop)->bound_ns,
		.end_ns = loop_borrow_match(det->loop)->end_ns,
	};
	kinds_look(det->kinds, &ret->pace);
}

void detector_describe(const struct detector *det, char *buf, size_t size)
{
	loop_describe(det->loop, buf, size);
}
