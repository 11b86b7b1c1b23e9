/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Detects from a worker's marks alone that it became slow or blocked. Time is an
 * argument: the detector reads no clock.
 *
 *   learning --M alike--> watching --pace--> slow --back or accepted--> watching
 *     any --no mark for the limit--> blocked --a mark--> as before
 *
 * The time of an iteration is taken from the end of the one before to its own
 * end, so that a slow function between step and next loader call shows too;
 * over other marks in between (an evaluation) it is the paper's, from the
 * first loader call to the last step, plus the usual gap.
 *
 * Blocked: no mark for max(blocked_factor * mean iteration, blocked_floor_ns, 1.5 * the longest
 * silence that ended by itself, of those up to pause_limit_ns); until the pace is known,
 * pause_limit_ns replaces the floor.
 * A worker is never blocked while the detector learns its iteration.
 * Source: PerfTracker, section 4.1.
 */
#pragma once

#include "base/base.h"
#include "detect/loop.h"
#include "detect/pace.h"

struct detector_config {
	struct sequence_config sequence;
	struct pace_config pace;
	double blocked_factor;
	int64_t blocked_floor_ns;
	int64_t pause_limit_ns;
};

/* The paper's M = 10, N = 50, 5 %, 5 x, K = 200; the rest is not from it. */
extern const struct detector_config detector_default_config;

enum detector_state {
	DETECTOR_LEARNING,
	DETECTOR_WATCHING,
	DETECTOR_SLOW,
	DETECTOR_BLOCKED,
};

/* What a mark or a tick changed; a set of bits. */
enum detector_event {
	DETECTOR_LEARNED = 1,	/* a sequence is known; pace starts anew */
	DETECTOR_REGAINED = 2,	/* the sequence from before is back; pace goes on */
	DETECTOR_LOST = 4,	/* the sequence no longer fits */
	DETECTOR_ITERATION = 8, /* an iteration ended */
	DETECTOR_BECAME_SLOW = 16,
	DETECTOR_CLEARED = 32, /* no longer slow */
	DETECTOR_BECAME_BLOCKED = 64,
	DETECTOR_UNBLOCKED = 128,
};

struct detector_view {
	enum detector_state state;
	struct pace_view pace;
	int64_t iteration_ns;	  /* the last one, gap included; 0: none yet */
	int64_t last_mark_ns;	  /* 0: no mark yet */
	int64_t blocked_limit_ns; /* silence that means blocked; 0: unknown */
	uint64_t iterations;	  /* matched since the start */
	uint64_t skipped;	  /* marks outside of iterations */
	uint64_t slow_since_step; /* the first slow step; 0: not slow */
	uint32_t learned_cnt;	  /* how often another iteration was learned */
	uint32_t step_cnt;  /* step-counting marks of one iteration, see struct order's stride */
	uint32_t cycle_cnt; /* iterations of one cycle of phases, as of rollouts; else 1 */
	int64_t bound_ns, end_ns; /* of the last iteration: struct sequence_match */
	uint64_t learned_step;	  /* at which the iteration was learned */
};

struct detector;

/* Returns NULL when out of memory or config is out of range. Freed by detector_free. */
struct detector *detector_new(const struct detector_config *config);
struct detector *detector_free(struct detector *det);

/* Takes one mark of the ring, in order. Returns the events. Allocates nothing. */
unsigned detector_mark(struct detector *det, const struct ring_record *record);

/* Call it regularly: only time shows that a worker is blocked. Returns the events. */
unsigned detector_tick(struct detector *det, int64_t now_ns);

/* The slow pace becomes the baseline. Returns false, and does nothing, if it is not slow. */
bool detector_accept(struct detector *det);

/*
 * While a window is open or its trace is saved, the profile slows iterations: they are
 * matched but not measured, and BLOCKED_SUSPENDED_FACTOR as many mean iterations may be silent.
 * stops: none counts, since the profiler itself may stop the worker for minutes.
 */
void detector_suspend(struct detector *det, bool stops);
void detector_resume(struct detector *det, int64_t now_ns);

void detector_look(const struct detector *det, struct detector_view *ret);

/* The iteration for people; "" while learning. Cut to size - 1. */
void detector_describe(const struct detector *det, char *buf, size_t size);
