/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/pages/timelinepicture.h"

#include "base/text/clean.h"
#include "report/html/chart.h"
#include "report/html/markup.h"
#include "report/html/plot.h"
#include "report/phrase.h"

#include <stdio.h>
#include <string.h>

#define WIDTH 1040.0
#define LEFT 200.0
#define RIGHT 8.0
#define TOP 6.0
#define ROW_HEIGHT 15.0
#define ROW_GAP 3.0
#define RANK_GAP 12.0
#define TIPS_MAX 4000u	  /* shapes: with more than that the page would be over a megabyte */
#define SHAPES_MAX 10000u /* without tips */
#define TIP_CELLS 60
#define LEVELS 4
#define ROWS_BUDGET 240u /* of all ranks */
#define ROWS_LEAST 3u

struct drawing {
	struct str *out;
	const json_t *bins, *names;
	double column_width, y, part_ms;
	long columns;
	size_t rows_max; /* of a rank */
	bool tips;
};

static const char *name_of(const json_t *names, const json_t *number)
{
	const char *name =
		json_string_value(json_array_get(names, (size_t)json_integer_value(number)));

	return name != NULL ? name : "";
}

/* --- colors --- */

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

/* A class of the style sheet for what took most of a column. */
static const char *color_of(const char *category, const char *name)
{
	static const struct {
		const char *category, *color;
	} colors[] = {
		{ "collective", "comm" }, { "nccl", "comm" },	    { "network", "comm" },
		{ "kernel", "compute" },  { "gpu", "compute" },	    { "gpu_memop", "memory" },
		{ "iteration", "alike" }, { "syscall", "waiting" }, { "sync", "waiting" },
		{ "gil", "waiting" },
	};

	if (begins(name, "nccl") || begins(name, "gloo:") || begins(name, "c10d::"))
		return "comm";
	if (strstr(name, "Synchronize") != NULL)
		return "waiting";
	for (size_t i = 0; i < ARRAY_SIZE(colors); i++) {
		if (strcmp(category, colors[i].category) == 0)
			return colors[i].color;
	}
	return "host";
}

/* --- the picture --- */

static void put_ms(struct str *out, double ms)
{
	phrase_ms(out, ms);
}

static void draw_span(struct drawing *d, const json_t *span, const char *rank_name)
{
	double column = json_number_value(json_array_get(span, 0));
	double cnt = json_number_value(json_array_get(span, 1));
	const char *name = name_of(d->names, json_array_get(span, 2));
	const char *category = name_of(d->names, json_array_get(span, 3));
	double level = json_number_value(json_array_get(span, 4)) / LEVELS;
	bool flagged = json_is_true(json_array_get(span, 5));
	_cleanup_(str_done) struct str tip = { 0 };
	double height = ROW_HEIGHT * MIN(MAX(level, 0.25), 1.0);
	struct svg_box box = { LEFT + column * d->column_width, d->y + ROW_HEIGHT - height,
			       cnt * d->column_width, height };

	if (!(column >= 0.0 && cnt > 0.0 && column + cnt <= (double)d->columns))
		return;
	if (d->tips) {
		str_printf(&tip, "%s%s: ", flagged ? "\xe2\x97\x86 " : "", rank_name);
		clean_append_short(&tip, name, TIP_CELLS);
		str_append(&tip, ", at +");
		put_ms(&tip, column * d->part_ms / (double)d->columns);
		str_append(&tip, ", mostly for ");
		put_ms(&tip, cnt * d->part_ms / (double)d->columns);
	}
	svg_rect(d->out, flagged ? "t-bad" : color_of(category, name), box,
		 d->tips ? markup_borrow(d->out, &tip) : NULL);
}

static void draw_row(struct drawing *d, const json_t *row, const char *rank_name)
{
	const char *name = json_string_value(json_object_get(row, "name"));
	const json_t *spans = json_object_get(row, "spans");
	static const char sampled[] = "python (sampled), "; /* there is little room */
	_cleanup_(str_done) struct str label = { 0 };

	if (name != NULL && begins(name, sampled))
		name += strlen(sampled);
	str_append(&label, name != NULL ? name : "");
	if (label.len > 26 && str_error(&label) == 0) {
		label.len = 25;
		str_append(&label, "\xe2\x80\xa6");
	}
	svg_text(d->out, "tick", LEFT - 8, d->y + 12, SVG_END, markup_borrow(d->out, &label));
	svg_rect(d->out, "t-row",
		 (struct svg_box){ LEFT, d->y, (double)d->columns * d->column_width, ROW_HEIGHT },
		 NULL);
	for (size_t i = 0; i < json_array_size(spans); i++)
		draw_span(d, json_array_get(spans, i), rank_name);
	d->y += ROW_HEIGHT + ROW_GAP;
}

static void draw_rank(struct drawing *d, const json_t *rank)
{
	const json_t *rows = json_object_get(rank, "rows");
	bool flagged = json_is_true(json_object_get(rank, "flagged"));
	const char *host = json_string_value(json_object_get(rank, "host"));
	_cleanup_(str_done) struct str label = { 0 };
	char name[32];

	(void)snprintf(name, sizeof(name), "rank %lld",
		       (long long)json_integer_value(json_object_get(rank, "rank")));
	str_printf(&label, "%s%s", flagged ? "\xe2\x97\x86 " : "", name);
	if (host != NULL && host[0] != '\0')
		str_printf(&label, " \xc2\xb7 %.40s", host);
	svg_text(d->out, flagged ? "rank bad" : "rank", 4, d->y + 12, SVG_START,
		 markup_borrow(d->out, &label));
	d->y += ROW_HEIGHT + 2;
	for (size_t i = 0; i < MIN(json_array_size(rows), d->rows_max); i++)
		draw_row(d, json_array_get(rows, i), name);
	d->y += RANK_GAP;
}

static void draw_axis(const struct drawing *d, double bottom)
{
	struct scale scale = scale_make(0.0, d->part_ms, 8, true);

	for (double ms = 0.0; ms <= d->part_ms * 1.0001 && scale.step > 0.0; ms += scale.step) {
		double x = LEFT + (WIDTH - LEFT - RIGHT) * ms / d->part_ms;
		_cleanup_(str_done) struct str label = { 0 };

		if (x > WIDTH - 30)
			break;
		str_printf(&label, "+%g ms", ms);
		svg_line(d->out, "grid", x, TOP, x, bottom);
		svg_text(d->out, "tick", x, bottom + 14, SVG_MIDDLE, markup_borrow(d->out, &label));
	}
}

static size_t count_spans(const json_t *ranks, size_t rows_max, size_t *ret_rows)
{
	size_t ret = 0;

	*ret_rows = 0;
	for (size_t i = 0; i < json_array_size(ranks); i++) {
		const json_t *rows = json_object_get(json_array_get(ranks, i), "rows");

		for (size_t k = 0; k < MIN(json_array_size(rows), rows_max); k++, ++*ret_rows)
			ret += json_array_size(json_object_get(json_array_get(rows, k), "spans"));
	}
	return ret;
}

static void put_legend(struct str *out)
{
	static const char *const items[][2] = {
		{ "t-bad", "named by a finding" },
		{ "host", "Python and operators" },
		{ "t-wait", "system calls, waiting for the GIL or the GPU" },
		{ "comm", "collectives" },
		{ "compute", "GPU" },
		{ "memory", "copies" },
	};

	str_append(out, "<ul class=\"legend\">");
	for (size_t i = 0; i < ARRAY_SIZE(items); i++)
		str_printf(out, "<li><i class=\"%s\"></i>%s</li>", items[i][0], items[i][1]);
	str_append(out, "</ul>\n");
}

void timelinepicture_draw(struct str *out, const json_t *bins)
{
	const json_t *ranks = json_object_get(bins, "ranks");
	size_t cnt = json_array_size(ranks), rows;
	struct drawing d = { .out = out,
			     .bins = bins,
			     .names = json_object_get(bins, "names"),
			     .y = TOP,
			     .columns =
				     (long)json_integer_value(json_object_get(bins, "columns")) };
	double bottom;

	d.part_ms = json_number_value(json_object_get(bins, "to_ms")) -
		    json_number_value(json_object_get(bins, "from_ms"));
	if (cnt == 0 || d.columns <= 0 || !(d.part_ms > 0.0))
		return;
	d.column_width = (WIDTH - LEFT - RIGHT) / (double)d.columns;
	d.rows_max = MAX((size_t)ROWS_BUDGET / cnt, (size_t)ROWS_LEAST);
	while (d.rows_max > 1 && count_spans(ranks, d.rows_max, &rows) > SHAPES_MAX)
		d.rows_max--;
	d.tips = count_spans(ranks, d.rows_max, &rows) <= TIPS_MAX;
	bottom = TOP + (double)rows * (ROW_HEIGHT + ROW_GAP) +
		 (double)cnt * (ROW_HEIGHT + 2 + RANK_GAP);
	figure_open(out, "Each rank over time: what took most of each moment");
	put_legend(out);
	svg_open(out, WIDTH, bottom + 22, "timeline", "Timeline",
		 "Rows of each rank over time; the table below has the numbers");
	draw_axis(&d, bottom);
	for (size_t i = 0; i < cnt; i++)
		draw_rank(&d, json_array_get(ranks, i));
	svg_close(out);
	figure_close(out, d.tips ? "A shape is as high as the moment was filled; short "
				   "executions share one. Zoom in to see them."
				 : "So many shapes have no names here: zoom in, or choose ranks.");
}

/* --- tables --- */

static void put_total(struct str *out, const json_t *names, const json_t *total, bool first)
{
	_cleanup_(str_done) struct str ms = { 0 };
	bool flagged = json_is_true(json_object_get(total, "flagged"));

	str_append(out, first ? "" : ", ");
	str_append(out, flagged ? "<b>\xe2\x97\x86 <bdi>" : "<bdi>");
	markup_text_short(out, name_of(names, json_object_get(total, "name")), 120);
	str_append(out, "</bdi> ");
	put_ms(&ms, json_number_value(json_object_get(total, "ms")));
	str_append(out, markup_borrow(out, &ms));
	str_printf(out, " in %lld%s",
		   (long long)json_integer_value(json_object_get(total, "count")),
		   flagged ? "</b>" : "");
}

static void put_row(struct str *out, const json_t *names, const json_t *rank, const json_t *row)
{
	const json_t *totals = json_object_get(row, "totals");
	const char *name = json_string_value(json_object_get(row, "name"));

	str_printf(out, "<tr><td class=\"n\" data-name=\"Rank\">%s%lld</td><td data-name=\"Host\">",
		   json_is_true(json_object_get(rank, "flagged")) ? "\xe2\x97\x86 " : "",
		   (long long)json_integer_value(json_object_get(rank, "rank")));
	markup_text_short(out, json_string_value(json_object_get(rank, "host")), 60);
	str_append(out, "</td><td data-name=\"Row\">");
	markup_text_short(out, name, 60);
	str_append(out, "</td><td><div>");
	for (size_t i = 0; i < json_array_size(totals); i++)
		put_total(out, names, json_array_get(totals, i), i == 0);
	str_append(out, "</div></td></tr>\n");
}

void timelinepicture_tables(struct str *out, const json_t *bins)
{
	const json_t *ranks = json_object_get(bins, "ranks");

	if (json_array_size(ranks) == 0)
		return;
	str_append(
		out,
		"<details><summary>The same as numbers</summary><div class=\"scroll\" tabindex=\"0\" "
		"role=\"region\" aria-label=\"Numbers of the timeline\"><table class=\"findings\"><thead><tr>"
		"<th scope=\"col\" class=\"n\">Rank</th><th scope=\"col\">Host</th>"
		"<th scope=\"col\">Row</th><th scope=\"col\">What took most time by itself, "
		"in how many executions</th></tr></thead><tbody>\n");
	for (size_t i = 0; i < json_array_size(ranks); i++) {
		const json_t *rank = json_array_get(ranks, i);
		const json_t *rows = json_object_get(rank, "rows");

		for (size_t k = 0; k < json_array_size(rows); k++)
			put_row(out, json_object_get(bins, "names"), rank, json_array_get(rows, k));
	}
	str_append(out, "</tbody></table></div></details>\n");
}
