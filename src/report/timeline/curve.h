/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A curve of the timeline from samples that may be much denser than a picture: what lies within
 * TIMELINE_POINT_NS becomes one point with its mean, its lowest and its highest value, so that
 * no peak is lost. For the timeline's files alone.
 */
#pragma once

#include "base/vec.h"
#include "report/timeline/writer.h"

#define TIMELINE_POINT_NS (5 * NSEC_PER_MSEC)

struct curve_sample {
	int64_t time_ns;
	double value; /* finite */
};

typedef VEC(struct curve_sample) curve_sample_vec;

enum curve_meaning {
	CURVE_NOW,     /* a value holds from its moment on, to the next one's */
	CURVE_MEAN,    /* it holds since the one before */
	CURVE_COUNTER, /* it counts; drawn is by how much it grows in a second, since the one before */
};

struct curve {
	const char *name;
	enum curve_meaning meaning;
	double scale;	 /* what is drawn is multiplied by it */
	int64_t from_ns; /* what samples say of the time before is left out */
};

/*
 * Draws samples in the order of time; those that are not later than the one before are left out.
 * Returns until when they hold, curve->from_ns when nothing was drawn. O(samples).
 */
int64_t timeline_curve(struct place *to, const struct curve *curve,
		       const curve_sample_vec *samples);
