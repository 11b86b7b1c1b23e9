/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Detects from iteration times that a worker became slower. The paper's rule is: the mean
 * of the last N iterations exceeds the recent shortest by more than 5 %. Taken
 * literally, the shortest single iteration makes every noisy job slow. Here:
 *
 *   baseline  the best pace since the iteration was learned: the smallest mean
 *             of a whole window in the last `history_cnt` recorded windows (one
 *             each N/5 iterations: 2,000 iterations, an era), or the least
 *             tenth percentile of an earlier era: the minimum over ever more
 *             windows would fall for ever
 *   slow      mean - baseline > max(slow_frac * baseline, noise_z * SE),
 *             `confirm_cnt` iterations in a row
 *   SE        the greater of two standard errors of the difference:
 *             jitter, sqrt(v_now / n + v_baseline / N), where v is half the mean
 *             squared difference of neighboring iterations, so that a step or
 *             a drift does not raise it; and
 *             slow noise of a shared machine, sqrt(w * (N / n + 1)), where w is
 *             from the median difference of neighboring windows (of blocks of
 *             one window, doubled, while there are few windows yet). For an
 *             earlier era also the wandering of the pace over hours, from
 *             the median difference of neighboring eras
 *
 * With the defaults, iterations until a step is found (mean of 50 runs): from
 * 1.5 times on 7 to 8 in a steady job and 17 at most with 10 % jitter; 1.25
 * times 13, 32 with 10 % jitter; 1.10 times 28, 47 with 5 % jitter.
 *
 * Whatever the noise, a mean of 1.5 times the baseline over N iterations (or over ten of them that
 * took 20 s), or of 1.4 times over 3 N and half a minute, is a slowdown.
 *
 * The test is done over N iterations, and over 4 N (with 0.8 noise_z for
 * jitter) for slowdowns made of long iterations that come now and then: one in
 * eight that takes five times as long is found after 190 iterations.
 *
 * Pauses: an iteration over pause_factor times the median of its window is
 * long. Up to pause_cnt long ones in a window are left out of the means and
 * counted; so are any number that come at an equal distance (evaluation,
 * checkpoint), if they did so from the first N/2 iterations on. Those that
 * begin later count as a slowdown.
 *
 * Hysteresis: slow ends when the mean is back within half of that threshold, or
 * stays below it for ten windows. No pace becomes normal by lasting: slow stays
 * until then, or until pace_accept(). So a job that was fast at first for a
 * reason that ended (short sequences, files in the page cache) is called slow
 * until a person accepts it: times alone cannot tell the two apart.
 * Source: PerfTracker, section 4.1 (N = 50, 5 %).
 */
#pragma once

#include "base/base.h"

#define PACE_WINDOW_MAX 256u /* greatest N */
#define PACE_LONG 4u	     /* the long window is so many N */

struct pace_config {
	uint32_t window_cnt;  /* N, 5..PACE_WINDOW_MAX */
	uint32_t warmup_cnt;  /* first iterations left out */
	uint32_t confirm_cnt; /* iterations in a row that must agree */
	uint32_t history_cnt; /* recorded windows that the baseline is taken from */
	uint32_t pause_cnt;   /* long iterations a window may hold without a reason */
	double slow_frac;
	double noise_z;
	double pause_factor;
	double clear_factor; /* of the baseline: slow whatever the noise, if it lasts */
};

enum pace_result { PACE_NONE, PACE_SLOW, PACE_CLEARED };

struct pace_view {
	bool ready; /* a whole window was seen: mean and baseline are known */
	bool slow;
	int64_t mean_ns; /* of the last N, pauses left out */
	int64_t baseline_ns;
	int64_t best_ns;      /* least baseline since the reset; accepting leaves it */
	int64_t threshold_ns; /* mean that would be slow */
	uint64_t pauses;      /* long iterations left out since the start */
	uint64_t iterations;  /* samples taken */
	uint64_t slow_since;  /* of these, when the slowdown began; 0: not slow */
};

struct pace;

/* Returns NULL when out of memory or when config is out of range. */
struct pace *pace_new(const struct pace_config *config);
struct pace *pace_free(struct pace *pace);

/* Takes the time of one iteration. O(N log N) in the worst case; allocates nothing. */
enum pace_result pace_add(struct pace *pace, int64_t time_ns);

/*
 * The slow pace becomes the baseline: a person said that it is as it should be. Returns false,
 * and does nothing, if the pace is not slow.
 */
bool pace_accept(struct pace *pace);

/* Forgets everything: the job has another iteration now. */
void pace_reset(struct pace *pace);

void pace_look(const struct pace *pace, struct pace_view *ret);
