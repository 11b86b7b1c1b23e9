/* SPDX-License-Identifier: Apache-2.0 */
#include "model/trigger.h"

#include "model/thresholds.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* An iteration of the window below this share of the best one is no iteration of the job. */
#define WHOLE_ITERATION_FRAC 0.7

/* Smaller factors are printed as percentages: "1.0x" is no slowdown to a reader. */
#define FACTOR_LEAST 1.095

static bool has_pace(const struct report_trigger *trigger)
{
	return isfinite(trigger->baseline_iteration_ms) &&
	       isfinite(trigger->current_iteration_ms) && trigger->baseline_iteration_ms > 0 &&
	       trigger->current_iteration_ms > 0;
}

bool trigger_is_slow(const struct report_trigger *trigger)
{
	if (!trigger->present)
		return false;
	return strcmp(trigger->kind, "slowdown") == 0 || trigger->since_step > 0;
}

bool trigger_is_checkup(const struct report_trigger *trigger)
{
	return trigger->present && strcmp(trigger->kind, "checkup") == 0;
}

bool trigger_is_over(const struct report_trigger *trigger, double window_iteration_ms)
{
	double best = trigger->baseline_iteration_ms, slow = trigger->current_iteration_ms;

	return has_pace(trigger) && slow > best && isfinite(window_iteration_ms) &&
	       window_iteration_ms >= WHOLE_ITERATION_FRAC * best &&
	       window_iteration_ms <= best + (slow - best) / 2;
}

bool trigger_is_far(const struct report_trigger *trigger, double window_iteration_ms, double factor)
{
	double least = factor * trigger->baseline_iteration_ms;

	return trigger->present && !trigger_is_slow(trigger) && has_pace(trigger) &&
	       trigger->current_iteration_ms >= least && window_iteration_ms >= least;
}

bool trigger_is_slight(const struct report_trigger *trigger)
{
	return has_pace(trigger) &&
	       trigger->current_iteration_ms < SLOW_SURE_FACTOR * trigger->baseline_iteration_ms;
}

void trigger_append_factor(struct str *out, double before, double now)
{
	double pct = 100 * (now / before - 1);

	if (before <= 0 || now <= 0 || !isfinite(pct))
		return;
	if (now / before >= FACTOR_LEAST)
		str_printf(out, " (%.1fx)", now / before);
	else if (fabs(pct) >= 0.5)
		str_printf(out, " (%+.0f %%)", pct);
}

void trigger_describe(const struct report_trigger *trigger, struct str *out)
{
	double before = trigger->baseline_iteration_ms, now = trigger->current_iteration_ms;
	double unit = now >= 10000 ? 1000 : 1;

	if (has_pace(trigger))
		str_printf(out, "%.1f -> %.1f %s", before / unit, now / unit,
			   unit > 1 ? "s" : "ms");
	else
		str_append(out, "iterations became longer");
	if (trigger->since_step > 0)
		str_printf(out, " since step %" PRId64, trigger->since_step);
	if (has_pace(trigger))
		trigger_append_factor(out, before, now);
}
