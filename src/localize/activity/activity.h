/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the time of a window went, for the report of any job (model/usage/reportuse.h), whether it
 * has findings or not.
 */
#pragma once

#include "localize/late/blame.h"
#include "model/report.h"

/* How a worker used its GPUs. iterations: analyzed, at least 1. */
struct report_use activity_use(const struct fingerprint *fp, double iterations);

/*
 * Share of the window in which the device had no work, also while the host was in a call of the
 * driver. Older fingerprints know only what the host did.
 */
double activity_idle_frac(const struct fingerprint *fp);

/* Lists kernels, copies and runtime calls in out->totals. Returns 0 or -ENOMEM. */
_must_check_ int activity_totals(const struct job *job, struct report *out);

/*
 * Lists collectives by operation, size of group and class of payload in out->collectives. Returns
 * 0 or -ENOMEM. O(n log n) in the executions.
 */
_must_check_ int activity_collectives(const struct job *job, const struct blame *blame,
				      struct report *out);
