/* SPDX-License-Identifier: Apache-2.0 */
#include "live/run/options.h"

#include "base/clock.h"
#include "model/thresholds.h"

#include <unistd.h>

/* The presets that `perftracker run --help` shows; that of --slowdown is PACE_SLOW_FRAC. */
_Static_assert(PACE_WINDOW_CNT == 50 && SEQUENCE_REPEAT_CNT == 10 && BLOCKED_FACTOR == 5 &&
		       JOBWATCH_MIN_GAP_NS / NSEC_PER_SEC == 15,
	       "change the presets of --recent, --learn, --blocked and --min-gap, too");

struct run_options run_options_preset(void)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	return (struct run_options){ .slowdown_frac = PACE_SLOW_FRAC,
				     .recent_cnt = PACE_WINDOW_CNT,
				     .learn_cnt = SEQUENCE_REPEAT_CNT,
				     .blocked_factor = BLOCKED_FACTOR,
				     .min_gap_ns = JOBWATCH_MIN_GAP_NS,
				     .window_ns = 20 * NSEC_PER_SEC,
				     .steps_max = 16,
				     .min_gain_pct = -1,
				     .jobs = (unsigned int)MAX(cpus / 2, 1L),
				     .budget_always_frac = 0.005,
				     .budget_window_frac = 0.03 };
}
