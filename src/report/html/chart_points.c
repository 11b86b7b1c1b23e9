/* SPDX-License-Identifier: Apache-2.0 */
/* The function of a finding on all workers, as dots. */
#include "base/str.h"
#include "report/html/chart.h"
#include "report/html/markup.h"
#include "report/html/plot.h"
#include "report/phrase.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

#define WIDTH 510.0
#define HEIGHT 316.0
#define STRIP_WIDTH 1024.0 /* alone over the ranks */
#define STRIP_HEIGHT 240.0
#define GRID_X 60
#define GRID_Y 40
#define GRID_CNT (GRID_X * GRID_Y)

/* A dimension of the picture. */
enum dimension { DIMENSION_BETA, DIMENSION_MU, DIMENSION_SIGMA, DIMENSION_TIME, DIMENSION_RANK };

struct scatter {
	const struct finding *finding;
	enum dimension x, y;
	struct plot plot;
	size_t accused_cnt;
};

static double point_value(const struct finding_point *point, enum dimension dimension)
{
	switch (dimension) {
	case DIMENSION_BETA:
		return point->beta_frac * 100.0;
	case DIMENSION_MU:
		return point->mu_frac * 100.0;
	case DIMENSION_SIGMA:
		return point->sigma_frac * 100.0;
	case DIMENSION_TIME:
		return point->time_ms;
	case DIMENSION_RANK:
		return point->rank;
	}
	return (double)NAN;
}

static const char *dimension_name(enum dimension dimension)
{
	static const char *const names[] = {
		"share of the window spent in it, %",
		"how busy the resource was meanwhile, %",
		"how much that varied (standard deviation), %",
		"ms per iteration",
		"rank",
	};

	return names[dimension];
}

/* The same, with the name of the resource: "how busy PCIe Tx was meanwhile, %". */
static void append_name(struct str *out, const struct finding *finding, enum dimension dimension)
{
	if (dimension != DIMENSION_MU || finding->resource == NULL ||
	    finding->resource[0] == '\0') {
		str_append(out, dimension_name(dimension));
		return;
	}
	str_append(out, "how busy ");
	phrase_resource(out, finding->resource);
	str_append(out, " was meanwhile, %");
}

static bool has_dimension(const struct finding *finding, enum dimension dimension)
{
	for (size_t i = 0; i < finding->point_cnt; i++) {
		if (isfinite(point_value(&finding->points[i], dimension)))
			return true;
	}
	return false;
}

static bool drawable(const struct scatter *scatter, const struct finding_point *point)
{
	return isfinite(point_value(point, scatter->x)) && isfinite(point_value(point, scatter->y));
}

static struct scale dimension_scale(const struct finding *finding, enum dimension dimension)
{
	double min = (double)INFINITY, max = -(double)INFINITY;

	for (size_t i = 0; i < finding->point_cnt; i++) {
		double value = point_value(&finding->points[i], dimension);

		if (isfinite(value)) {
			min = MIN(min, value);
			max = MAX(max, value);
		}
	}
	if (dimension == DIMENSION_RANK && isfinite(min))
		return scale_whole(min, max, 8);
	return scale_make(min, max, 5, true);
}

static void point_tip(struct str *tip, const struct scatter *scatter,
		      const struct finding_point *point)
{
	str_printf(tip, "rank %d%s", point->rank, point->accused ? ", flagged" : "");
	str_append(tip, ": ");
	phrase_ms(tip, point->time_ms);
	str_append(tip, ", share ");
	phrase_pct(tip, point->beta_frac * 100.0);
	if (scatter->y == DIMENSION_TIME)
		return;
	str_append(tip, ", busy ");
	phrase_pct(tip, point->mu_frac * 100.0);
	str_append(tip, ", deviation ");
	phrase_pct(tip, point->sigma_frac * 100.0);
}

static void draw_point(const struct scatter *scatter, const struct finding_point *point)
{
	struct str *out = scatter->plot.out;
	double x = plot_x(&scatter->plot, point_value(point, scatter->x));
	double y = plot_y(&scatter->plot, point_value(point, scatter->y));
	_cleanup_(str_done) struct str tip = { 0 };

	point_tip(&tip, scatter, point);
	if (point->accused)
		svg_diamond(out, "dot bad", x, y, 6.5, markup_borrow(out, &tip));
	else
		svg_circle(out, "dot peer", x, y, 4.5, markup_borrow(out, &tip));
}

static size_t grid_index(const struct scatter *scatter, const struct finding_point *point)
{
	const struct plot *plot = &scatter->plot;
	double x = (plot_x(plot, point_value(point, scatter->x)) - plot->left) / plot->width;
	double y = (plot_y(plot, point_value(point, scatter->y)) - plot->top) / plot->height;
	size_t column = MIN((size_t)(x * GRID_X), (size_t)GRID_X - 1);
	size_t row = MIN((size_t)(y * GRID_Y), (size_t)GRID_Y - 1);

	return row * GRID_X + column;
}

/* A dot for cnt workers: the more, the stronger. */
static void draw_cell(const struct scatter *scatter, size_t cell, size_t cnt, bool accused)
{
	const struct plot *plot = &scatter->plot;
	size_t column = cell % GRID_X, row = cell / GRID_X;
	double x = plot->left + plot->width * ((double)column + 0.5) / GRID_X;
	double y = plot->top + plot->height * ((double)row + 0.5) / GRID_Y;
	int level = MIN((int)log2((double)cnt), 4);
	char tip[40], class[24];

	(void)snprintf(tip, sizeof(tip), "%zu %s", cnt, accused ? "flagged" : "peers");
	(void)snprintf(class, sizeof(class), "many d%d", level);
	if (accused)
		svg_diamond(plot->out, "dot bad", x, y, scatter->accused_cnt > 20 ? 4.5 : 6.5, tip);
	else
		svg_circle(plot->out, class, x, y, 3.4, tip);
}

/* Thousands of dots become one per occupied cell of a grid; peers first, the accused on top. */
static void draw_grid(const struct scatter *scatter)
{
	_cleanup_free_ size_t *cells = NULL;

	for (int accused = 0; accused < 2; accused++) {
		free(cells);
		cells = calloc(GRID_CNT, sizeof(*cells));
		if (cells == NULL) {
			scatter->plot.out->error = -ENOMEM;
			return;
		}
		for (size_t i = 0; i < scatter->finding->point_cnt; i++) {
			const struct finding_point *point = &scatter->finding->points[i];

			if (point->accused == (accused != 0) && drawable(scatter, point))
				cells[grid_index(scatter, point)]++;
		}
		for (size_t i = 0; i < GRID_CNT; i++) {
			if (cells[i] > 0)
				draw_cell(scatter, i, cells[i], accused != 0);
		}
	}
}

static void draw_points(const struct scatter *scatter)
{
	for (int accused = 0; accused < 2; accused++) {
		for (size_t i = 0; i < scatter->finding->point_cnt; i++) {
			const struct finding_point *point = &scatter->finding->points[i];

			if (point->accused == (accused != 0) && drawable(scatter, point))
				draw_point(scatter, point);
		}
	}
}

/* The expected upper limit of a dimension; NULL when it is compared with peers. */
static const struct finding_value *expectation(const struct finding *finding,
					       enum dimension dimension)
{
	const struct finding_value *value = dimension == DIMENSION_BETA	   ? &finding->beta
					    : dimension == DIMENSION_MU	   ? &finding->mu
					    : dimension == DIMENSION_SIGMA ? &finding->sigma
									   : NULL;

	if (value == NULL || !value->present || value->reference_kind != REFERENCE_EXPECTED)
		return NULL;
	return isfinite(value->reference) ? value : NULL;
}

static void draw_expected(const struct scatter *scatter)
{
	const struct plot *plot = &scatter->plot;
	const struct finding_value *value = expectation(scatter->finding, scatter->x);
	double x;
	bool right;

	if (value == NULL)
		return;
	x = plot_x(plot, value->reference * 100.0);
	right = x > plot->left + plot->width / 2;
	svg_line(plot->out, "expected", x, plot->top, x, plot->top + plot->height);
	svg_text(plot->out, "tick", right ? x - 5 : x + 5, plot->top + 12,
		 right ? SVG_END : SVG_START, "expected");
}

static void draw(struct str *out, const struct finding *finding, enum dimension x, enum dimension y,
		 const char *id)
{
	double width = x == DIMENSION_RANK ? STRIP_WIDTH : WIDTH;
	double height = x == DIMENSION_RANK ? STRIP_HEIGHT : HEIGHT;
	struct scatter scatter = {
		.finding = finding,
		.x = x,
		.y = y,
		.plot = { .out = out,
			  .left = 56,
			  .top = 34,
			  .width = width - 72,
			  .height = height - 76 },
	};
	_cleanup_(str_done) struct str title = { 0 }, x_name = { 0 }, y_name = { 0 };

	append_name(&x_name, finding, x);
	append_name(&y_name, finding, y);
	for (size_t i = 0; i < finding->point_cnt; i++)
		scatter.accused_cnt += finding->points[i].accused;
	scatter.plot.x = dimension_scale(finding, x);
	scatter.plot.y = dimension_scale(finding, y);
	str_printf(&title, "%s against %s", markup_borrow(out, &y_name),
		   markup_borrow(out, &x_name));
	svg_open(out, width, height, id, markup_borrow(out, &title),
		 "One dot per worker. Diamonds are flagged, circles are their peers.");
	plot_axes(&scatter.plot, markup_borrow(out, &x_name), markup_borrow(out, &y_name));
	draw_expected(&scatter);
	if (finding->point_cnt > CHART_POINTS_MAX)
		draw_grid(&scatter);
	else
		draw_points(&scatter);
	svg_close(out);
}

/* Notes the number of points without a value of the first picture. */
static size_t count_hidden(const struct finding *finding, enum dimension x, enum dimension y)
{
	struct scatter scatter = { .x = x, .y = y };
	size_t hidden = 0;

	for (size_t i = 0; i < finding->point_cnt; i++)
		hidden += !drawable(&scatter, &finding->points[i]);
	return hidden;
}

static void finding_note(struct str *note, const struct finding *finding, size_t hidden)
{
	str_append(note, "\xe2\x97\x86 flagged, \xe2\x97\x8b peers. ");
	if (finding->point_cnt > CHART_POINTS_MAX)
		str_printf(note, "%zu workers: those that lie close together are one dot. ",
			   finding->point_cnt);
	if (hidden > 0)
		str_printf(note, "%zu worker%s without a value not shown. ", hidden,
			   plural(hidden));
}

/*
 * Whether there is something to compare: a flagged worker and a peer; of a finding about all
 * workers, two. One dot in empty axes is no picture.
 */
static bool is_comparison(const struct finding *finding, enum dimension x, enum dimension y)
{
	struct scatter scatter = { .x = x, .y = y };
	size_t flagged = 0, peers = 0;

	for (size_t i = 0; i < finding->point_cnt; i++) {
		if (!drawable(&scatter, &finding->points[i]))
			continue;
		flagged += finding->points[i].accused;
		peers += !finding->points[i].accused;
	}
	return finding->all_workers ? flagged + peers > 1 : flagged > 0 && peers > 0;
}

void chart_finding(const struct finding *finding, size_t index, struct str *out)
{
	bool samples = has_dimension(finding, DIMENSION_MU);
	enum dimension time =
		has_dimension(finding, DIMENSION_TIME) ? DIMENSION_TIME : DIMENSION_BETA;
	enum dimension x = samples ? DIMENSION_BETA : DIMENSION_RANK;
	enum dimension y = samples ? DIMENSION_MU : time;
	_cleanup_(str_done) struct str note = { 0 };
	char id[32];

	if (!is_comparison(finding, x, y))
		return;
	figure_open(out, samples ? "The function on each rank" : "Time in the function, per rank");
	str_append(out, samples ? "<div class=\"pair\">" : "<div>");
	(void)snprintf(id, sizeof(id), "finding%zu-a", index + 1);
	draw(out, finding, x, y, id);
	(void)snprintf(id, sizeof(id), "finding%zu-b", index + 1);
	if (samples && is_comparison(finding, DIMENSION_MU, DIMENSION_SIGMA))
		draw(out, finding, DIMENSION_MU, DIMENSION_SIGMA, id);
	str_append(out, "</div>");
	finding_note(&note, finding, count_hidden(finding, x, y));
	figure_close(out, markup_borrow(out, &note));
}
