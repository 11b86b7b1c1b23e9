/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the pictures of a report show: who waited for whom, who was late in which iteration, one
 * iteration of the culprit beside others (iterationlanes.h), and call stacks (flame.h).
 */
#pragma once

#include "localize/job.h"
#include "localize/late/blame.h"
#include "model/report.h"

/* Lists who waited for whom. Returns 0 or -ENOMEM. */
_must_check_ int pictures_waits(const struct job *job, const struct blame *blame,
				struct report *out);

/*
 * Fills the rest; out has its findings. blame: NULL where it was not computed; then workers of job
 * may be some of those of the report. Returns 0 or -ENOMEM.
 */
_must_check_ int pictures_fill(const struct job *job, const struct blame *blame,
			       struct report *out);
