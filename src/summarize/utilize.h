/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mu and sigma of functions: how busy the limiting resource of a function was during its critical
 * durations, and how steadily.
 * Source: PerfTracker eq. 4 and 5. The paper's denominators sum over E_f, an error for E_{f,w}:
 * only then mu stays in 0..1 per worker.
 */
#pragma once

#include "base/vec.h"
#include "model/event.h"

/* Sums over the executions of one function. */
struct utilize_sum {
	double weight_ns;   /* sum of |L(e)| */
	double mean_ns;	    /* sum of |L(e)| * avg_U(L(e)) */
	double resolved_ns; /* sum of |L(e)| of executions with fine enough samples */
	double std_ns;	    /* of these, sum of |L(e)| * std_U(L(e)) */
};

struct utilize_scratch {
	VEC(double) values;
};

/*
 * Adds one execution [start, end). A sample is the mean over the time since the previous sample, so
 * an execution shorter than a sample gets its value. A device sample covers at most twice the usual
 * distance of nearby samples: time before that was not sampled and has no weight. An execution
 * without any activity counts fully with 0: it took the time and used nothing. An execution has a
 * deviation if it is at least as long as the distance of samples, and L(e) is more than one sample:
 * a mean that includes other functions' time has none. Samples must be sorted. Returns 0, also when
 * no sample touches the interval (nothing is added); -ENOMEM. O(log n + samples touched).
 */
_must_check_ int utilize_add(const struct track *track, int64_t start_ns, int64_t end_ns,
			     struct utilize_scratch *scratch, struct utilize_sum *sum);

/*
 * mu and sigma of a sum: NAN when nothing was added; sigma also when samples were too coarse for
 * most of the time. sigma is the mean over the executions that have a deviation.
 */
double utilize_mu(const struct utilize_sum *sum);
double utilize_sigma(const struct utilize_sum *sum);

/* The track of a resource on a device and thread (-1: any); NULL when there is none. */
const struct track *utilize_find_track(const struct trace *trace, enum resource resource,
				       int64_t device, int64_t tid);
