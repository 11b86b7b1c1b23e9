/* SPDX-License-Identifier: Apache-2.0 */
#include "report/flame/flamepicture.h"

#include "base/text/clean.h"
#include "report/html/markup.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define ROW_HEIGHT 20.0
#define CELL_WIDTH 6.7 /* of a letter */
#define LEAST_CELLS 8
#define LEAST_WIDTH 1.5 /* without a script */
#define LEAST_WIDTH_SCRIPTED 0.05

struct place {
	double x, width; /* width below 0: not drawn */
	double next;	 /* where the next child begins */
	uint32_t row;
};

struct drawing {
	const struct flamepicture *of;
	struct place *places;
	double least;
	uint32_t rows;
	struct flamepicture_left left;
};

static bool has_parent(const struct flamebox *box, size_t idx)
{
	return box->parent != FLAMEBOX_ROOT && box->parent < idx;
}

static void place_box(struct drawing *d, size_t idx, double *root_next)
{
	const struct flamebox *box = &d->of->boxes[idx];
	const bool child = has_parent(box, idx);
	const struct place *parent = child ? &d->places[box->parent] : NULL;
	double *next = child ? &d->places[box->parent].next : root_next;
	const double end = child ? parent->x + parent->width : FLAMEPICTURE_WIDTH;
	double width = isfinite(box->width) && box->width > 0
			       ? box->width * FLAMEPICTURE_WIDTH / d->of->total
			       : 0;

	width = MAX(MIN(width, end - *next), 0.0);
	d->places[idx] = (struct place){
		.x = *next, .width = width, .next = *next, .row = child ? parent->row + 1 : 0
	};
	*next += width;
	if (child && parent->width < 0) {
		d->places[idx].width = -1;
	} else if (d->of->depth_max > 0 && d->places[idx].row >= d->of->depth_max) {
		d->left.deep += width >= d->least;
		d->places[idx].width = -1;
	} else if (width < d->least) {
		d->left.narrow++;
		d->places[idx].width = -1;
	}
}

static int by_width(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x < y) - (x > y);
}

/* Leaves out the narrowest, so that at most FLAMEPICTURE_BOXES_MAX are drawn. */
static int limit_boxes(struct drawing *d)
{
	_cleanup_free_ double *widths = NULL;
	size_t cnt = 0;
	double least;

	for (size_t i = 0; i < d->of->cnt; i++)
		cnt += d->places[i].width >= 0;
	if (cnt <= FLAMEPICTURE_BOXES_MAX)
		return 0;
	widths = calloc(cnt, sizeof(*widths));
	if (widths == NULL)
		return -ENOMEM;
	cnt = 0;
	for (size_t i = 0; i < d->of->cnt; i++) {
		if (d->places[i].width >= 0)
			widths[cnt++] = d->places[i].width;
	}
	qsort(widths, cnt, sizeof(*widths), by_width);
	least = widths[FLAMEPICTURE_BOXES_MAX];
	for (size_t i = 0; i < d->of->cnt; i++) {
		if (d->places[i].width >= 0 && d->places[i].width <= least) {
			d->places[i].width = -1;
			d->left.narrow++;
		}
	}
	return 0;
}

static void draw_label(struct str *out, const struct flamebox *box, const struct place *place)
{
	const double room = (place->width - 8) / CELL_WIDTH;
	_cleanup_(str_done) struct str label = { 0 };

	if (room < LEAST_CELLS)
		return;
	clean_append_short(&label, box->label, (size_t)room);
	svg_text(out, box->on ? "cell on" : "cell", place->x + 4, ROW_HEIGHT * place->row + 13,
		 SVG_START, markup_borrow(out, &label));
}

/* A group with the whole label, which the script fits to the width after zooming. */
static void draw_scripted(struct str *out, const struct flamebox *box, const struct place *place)
{
	str_printf(out,
		   "<g class=\"box\" role=\"treeitem\" tabindex=\"-1\" data-x=\"%.3f\" "
		   "data-w=\"%.3f\" data-r=\"%u\" data-l=\"",
		   place->x, place->width, place->row);
	markup_text(out, box->label);
	str_printf(out,
		   "\"><rect class=\"%s\" x=\"%.2f\" y=\"%.0f\" width=\"%.2f\" height=\"%.0f\">"
		   "<title>",
		   box->class, place->x, ROW_HEIGHT * place->row, MAX(place->width, 0.3),
		   ROW_HEIGHT - 2);
	markup_text(out, box->tip);
	str_append(out, "</title></rect>");
	draw_label(out, box, place);
	str_append(out, "</g>\n");
}

static void draw_box(const struct drawing *d, size_t idx, struct str *out)
{
	const struct flamebox *box = &d->of->boxes[idx];
	const struct place *place = &d->places[idx];

	if (d->of->scripted) {
		draw_scripted(out, box, place);
		return;
	}
	svg_rect(
		out, box->class,
		(struct svg_box){ place->x, ROW_HEIGHT * place->row, place->width, ROW_HEIGHT - 2 },
		box->tip);
	draw_label(out, box, place);
}

int flamepicture_draw(const struct flamepicture *picture, struct str *out,
		      struct flamepicture_left *ret)
{
	_cleanup_free_ struct place *places = calloc(picture->cnt + 1, sizeof(*places));
	struct drawing d = { .of = picture,
			     .places = places,
			     .least = picture->scripted ? LEAST_WIDTH_SCRIPTED : LEAST_WIDTH };
	const size_t start = out->len;
	double root_next = 0;

	if (places == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < picture->cnt && picture->total > 0; i++)
		place_box(&d, i, &root_next);
	if (limit_boxes(&d) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < picture->cnt; i++) {
		if (places[i].width >= 0)
			d.rows = MAX(d.rows, places[i].row + 1);
	}
	svg_open(out, FLAMEPICTURE_WIDTH, ROW_HEIGHT * MAX(d.rows, 1u), picture->id, picture->title,
		 picture->desc);
	for (size_t i = 0; i < picture->cnt && picture->total > 0; i++) {
		if (places[i].width >= 0)
			draw_box(&d, i, out);
	}
	svg_close(out);
	*ret = d.left;
	return str_finish(out, start);
}
