/* SPDX-License-Identifier: Apache-2.0 */
#include "model/slowdown.h"

#include "model/thresholds.h"

#include <math.h>

double slowdown_unexplained_ms(const struct report *report)
{
	const struct report_trigger *trigger = &report->trigger;
	double now = fmin(trigger->current_iteration_ms, report->iteration_ms);
	double slower = now - trigger->baseline_iteration_ms, gain_ms = 0;

	if (!trigger_is_slow(trigger) || !(trigger->baseline_iteration_ms > 0) || !(slower > 0) ||
	    trigger_is_over(trigger, report->iteration_ms))
		return 0;
	for (size_t i = 0; i < report->finding_cnt; i++)
		gain_ms += report->findings[i].gain_ms_per_iteration;
	return gain_ms < SLOWDOWN_EXPLAINED * slower ? slower : 0;
}
