/* SPDX-License-Identifier: Apache-2.0 */
/* The ranks of a job, sampled from outside all at the same times. */
#pragma once

#include "base/err.h"
#include "base/vec.h"
#include "stacks/sampling/jobprocs.h"
#include "stacks/sampling/sampling.h"

#include <signal.h>

struct attachsample {
	VEC(struct sampling) readers;
	VEC(struct sampled_rank) ranks; /* those that were read; borrowed from the readers */
	VEC(const struct sampled_rank *) failed;
	struct sampled_job job;
	bool interrupted;
};

/*
 * Samples for round_cnt rounds, or until *stop. Returns 0, or -errno with a line in err if no rank
 * could be read. attachsample_done() in either case.
 */
_must_check_ int attachsample_take(struct attachsample *sample, const struct jobranks *ranks,
				   int64_t period_ns, uint32_t round_cnt,
				   const volatile sig_atomic_t *stop, struct err *err);
void attachsample_done(struct attachsample *sample);
