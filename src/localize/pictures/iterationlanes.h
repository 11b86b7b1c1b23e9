/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One iteration of the culprit, beside the worker that waited longest for it and a typical one.
 * Fingerprints hold when collectives began and ended, and what ran between two of them, not in
 * which order. Clocks are aligned by the ends of common collectives (collective/shifts.h).
 */
#pragma once

#include "localize/job.h"
#include "localize/late/blame.h"
#include "model/report.h"

/*
 * Fills out->lanes; leaves it empty where the culprit (index of a worker) has no collectives.
 * blame may be NULL. Returns 0 or -ENOMEM.
 */
_must_check_ int iterationlanes_fill(const struct job *job, const struct blame *blame,
				     size_t culprit, struct report *out);
