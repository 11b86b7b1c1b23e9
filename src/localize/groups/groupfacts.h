/* SPDX-License-Identifier: Apache-2.0 */
/* What an accusation of a process group or of a pipeline stage is based on. Zeroed: neither. */
#pragma once

#include "base/base.h"

#include <stddef.h>

struct group_facts {
	size_t sister_cnt;		/* process groups that do the same collectives */
	double sister_factor;		/* its transfers take so many times as long as in these */
	bool uneven_stages;		/* a stage of a pipeline has more to do than the others: */
	double stage_ns, stage_mean_ns; /* per iteration: compute of this stage, of the mean one */
};
