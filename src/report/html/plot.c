/* SPDX-License-Identifier: Apache-2.0 */
#include "report/html/plot.h"

#include "report/html/markup.h"

#include <math.h>
#include <stdio.h>

/* The smallest of 1, 2, 5 times a power of ten that is at least rough. */
static double round_step(double rough)
{
	double power = pow(10.0, floor(log10(rough)));
	double lead = rough / power;

	if (lead <= 1.0 + 1e-9)
		return power;
	return (lead <= 2.0 ? 2.0 : lead <= 5.0 ? 5.0 : 10.0) * power;
}

struct scale scale_make(double min, double max, int steps, bool from_zero)
{
	struct scale scale;

	if (!isfinite(min) || !isfinite(max)) {
		min = 0.0;
		max = 1.0;
	}
	if (from_zero) {
		min = MIN(min, 0.0);
		max = MAX(max, 0.0);
	}
	if (max - min < 1e-9 * MAX(fabs(max), 1e-3)) {
		min -= from_zero ? 0.0 : MAX(fabs(min) * 0.05, 0.5);
		max += MAX(fabs(max) * 0.05, 0.5);
	}
	scale.step = round_step((max - min) / steps);
	scale.min = floor(min / scale.step + 1e-9) * scale.step;
	scale.max = ceil(max / scale.step - 1e-9) * scale.step;
	scale.first = scale.min;
	return scale;
}

struct scale scale_whole(double min, double max, int steps)
{
	double step = max - min > steps ? round_step((max - min) / steps) : 1.0;

	return (struct scale){ min - 0.5, max + 0.5, ceil(min / step) * step, step };
}

static double part(const struct scale *scale, double value)
{
	double frac = (value - scale->min) / (scale->max - scale->min);

	return MIN(MAX(frac, 0.0), 1.0);
}

double plot_x(const struct plot *plot, double value)
{
	return plot->left + plot->width * part(&plot->x, value);
}

double plot_y(const struct plot *plot, double value)
{
	return plot->top + plot->height * (1.0 - part(&plot->y, value));
}

static void tick_text(char buf[static 24], double value, double step)
{
	/* Sums of steps miss zero by a rounding error. */
	(void)snprintf(buf, 24, "%.6g", fabs(value) < step / 1000.0 ? 0.0 : value);
}

static int tick_count(const struct scale *scale)
{
	return (int)floor((scale->max - scale->first) / scale->step + 1e-6);
}

static void y_ticks(const struct plot *plot)
{
	for (int i = 0; i <= tick_count(&plot->y); i++) {
		double value = plot->y.first + i * plot->y.step, y = plot_y(plot, value);
		char label[24];

		tick_text(label, value, plot->y.step);
		svg_line(plot->out, "grid", plot->left, y, plot->left + plot->width, y);
		svg_text(plot->out, "tick", plot->left - 6, y + 4, SVG_END, label);
	}
}

static void x_ticks(const struct plot *plot)
{
	double bottom = plot->top + plot->height;

	for (int i = 0; i <= tick_count(&plot->x); i++) {
		double value = plot->x.first + i * plot->x.step, x = plot_x(plot, value);
		char label[24];

		tick_text(label, value, plot->x.step);
		svg_line(plot->out, "axis", x, bottom, x, bottom + 4);
		svg_text(plot->out, "tick", x, bottom + 17, SVG_MIDDLE, label);
	}
}

void plot_axes(const struct plot *plot, const char *x_name, const char *y_name)
{
	double bottom = plot->top + plot->height;

	y_ticks(plot);
	x_ticks(plot);
	svg_line(plot->out, "axis", plot->left, bottom, plot->left + plot->width, bottom);
	svg_text(plot->out, "name", plot->left + plot->width, bottom + 34, SVG_END, x_name);
	svg_text(plot->out, "name", plot->left - 40, plot->top - 20, SVG_START, y_name);
}
