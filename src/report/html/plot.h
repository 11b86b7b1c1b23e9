/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The frame of a picture: two scales with round steps, axes, grid and labels, and the
 * conversion of values to coordinates.
 */
#pragma once

#include "base/base.h"
#include "base/str.h"

struct scale {
	double min, max;
	double first, step; /* of the ticks */
};

struct plot {
	struct str *out;
	double left, top, width, height; /* of the area inside the axes */
	struct scale x, y;
};

/*
 * A scale of about steps steps that covers min..max; from_zero includes 0.
 * A range that is empty or not finite becomes one around its value.
 */
struct scale scale_make(double min, double max, int steps, bool from_zero);

/* A scale for whole numbers min..max: half a step of air at both ends, ticks on numbers. */
struct scale scale_whole(double min, double max, int steps);

double plot_x(const struct plot *plot, double value);
double plot_y(const struct plot *plot, double value);

/* Grid, tick labels and the names of the axes. */
void plot_axes(const struct plot *plot, const char *x_name, const char *y_name);
