/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mu and sigma of functions: how busy the resource that bounds a function was
 * during its critical durations, and how steadily.
 * Source: PerfTracker eq. 4 and 5. The paper's denominators sum over E_f; that is
 * a slip for E_{f,w}: only then mu stays in 0..1 per worker.
 */
#pragma once

#include "base/vec.h"
#include "model/event.h"

/* Sums over the executions of one function. */
struct utilize_sum {
	double weight_ns;   /* sum of |L(e)| */
	double mean_ns;	    /* sum of |L(e)| * avg_U(L(e)) */
	double resolved_ns; /* sum of |L(e)| of those that samples are fine enough for */
	double std_ns;	    /* of these, sum of |L(e)| * std_U(L(e)) */
};

struct utilize_scratch {
	VEC(double) values;
};

/*
 * Adds one execution [start, end). A sample is the mean over the time since the
 * sample before it, so an execution shorter than a sample takes its value. One of a device
 * stands for twice the usual distance of samples around it at most: before that nobody
 * looked, and what ran there has no weight. An
 * execution without any activity counts whole with 0: it held the time and used
 * nothing. It has a deviation when it is as long as the samples are apart, and L(e) is more
 * than one of them: a mean over other functions' time, too, tells none. Samples must be sorted.
 * Returns 0, also when no sample touches the interval (nothing is added); -ENOMEM.
 * O(log n + samples touched).
 */
_must_check_ int utilize_add(const struct track *track, int64_t start_ns, int64_t end_ns,
			     struct utilize_scratch *scratch, struct utilize_sum *sum);

/*
 * mu and sigma of a sum: NAN when nothing was added; sigma also when samples were too coarse for
 * most of the time. It is the mean over the executions that have one.
 */
double utilize_mu(const struct utilize_sum *sum);
double utilize_sigma(const struct utilize_sum *sum);

/* The track of a resource on a device and thread (-1: any); NULL when there is none. */
const struct track *utilize_find_track(const struct trace *trace, enum resource resource,
				       int64_t device, int64_t tid);
