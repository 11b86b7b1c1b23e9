/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a window was taken from a live job, and the pace of the job at that moment.
 * Source: docs/report-schema.json, "trigger".
 */
#pragma once

#include "base/str.h"

#include <stdint.h>

/* What a slight slowdown without a cause says. */
#define TRIGGER_SLIGHT "the speed of a machine that other work shares may vary by as much"

struct report_trigger {
	bool present;
	const char *kind;	      /* "slowdown", "blocked", "request", "checkup" */
	double baseline_iteration_ms; /* the best pace of this job; 0: unknown */
	double current_iteration_ms;  /* 0: unknown */
	int64_t step;		      /* profile began here */
	int64_t since_step; /* the job is slow since this step; 0: unknown, or it is not slow */
};

/* Whether the job was slower than its best when the window was ordered. */
bool trigger_is_slow(const struct report_trigger *trigger);

/* Whether the window is one of a job that gave no reason for it. */
bool trigger_is_checkup(const struct report_trigger *trigger);

/*
 * Whether the iterations of the window are back at the best pace: it shows nothing of the
 * slowdown. Times far below the best are wrongly divided iterations and say nothing.
 */
bool trigger_is_over(const struct report_trigger *trigger, double window_iteration_ms);

/*
 * Whether a window that no slowdown asked for shows iterations longer than the best ones by this
 * factor, as the job had them when it was ordered. Noise may explain it.
 */
bool trigger_is_far(const struct report_trigger *trigger, double window_iteration_ms,
		    double factor);

/*
 * Whether the speed of a machine that other work shares varies by as much (SLOW_SURE_FACTOR).
 * False where a pace is unknown.
 */
bool trigger_is_slight(const struct report_trigger *trigger);

/* " (3.4x)", " (+8 %)"; nothing where both are the same or one is unknown. */
void trigger_append_factor(struct str *out, double before, double now);

/* "9.8 -> 33.8 ms since step 650 (3.4x)"; without what is unknown. */
void trigger_describe(const struct report_trigger *trigger, struct str *out);
