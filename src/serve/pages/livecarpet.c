/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/pages/livecarpet.h"

#include "base/clock.h"
#include "report/html/chart.h"
#include "report/html/markup.h"
#include "serve/jobwords.h"

#include <stdio.h>
#include <string.h>

#define WIDTH 1040.0
#define LEFT 96.0
#define TOP 26.0
#define ROWS_MAX 64u
#define COLUMNS_MAX 120u
#define TALLEST 22.0
#define PICTURE_HEIGHT 420.0

struct kind {
	char letter;
	const char *class, *word;
};

/* Classes of page.css; the tips name each state, too: color alone never says it. */
static const struct kind kinds[] = {
	{ '.', "c-ok", "watching" },
	{ 'l', "c-learning", "learning" },
	{ 'p', "c-profile", "profiling" },
	{ 's', "c-slow", "slow" },
	{ 'r', "c-behind", "behind the others" },
	{ 'q', "c-silent", "silent: its step stands still" },
	{ 'b', "c-blocked", "blocked" },
	{ 'e', "c-ended", "ended" },
	{ 'o', "c-off", "not watched" },
};

struct carpet_picture {
	struct str *out;
	double begin_ms, column_ms, cell_width, cell_height;
	size_t column_cnt;
	bool used[ARRAY_SIZE(kinds)];
};

static const struct kind *kind_of(char letter, size_t *ret_idx)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (kinds[i].letter == letter) {
			*ret_idx = i;
			return &kinds[i];
		}
	}
	return NULL;
}

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text != NULL ? text : "";
}

/* "12:30:05" of the day, UTC. */
static void print_time(double ms, char ret[static 32])
{
	char whole[32];

	jobwords_time((int64_t)(ms * NSEC_PER_MSEC), whole);
	(void)snprintf(ret, 32, "%s", strlen(whole) > 11 ? whole + 11 : whole);
}

static void put_box(const struct carpet_picture *p, const struct kind *kind, const char *ranks,
		    size_t from, size_t end, double y)
{
	const struct svg_box box = { LEFT + (double)from * p->cell_width, y,
				     (double)(end - from) * p->cell_width, p->cell_height };
	struct str tip = { 0 };
	char a[32], b[32];

	print_time(p->begin_ms + (double)from * p->column_ms, a);
	print_time(p->begin_ms + (double)end * p->column_ms, b);
	str_printf(&tip, "rank %.24s: %s, %s to %s UTC", ranks, kind->word, a, b);
	svg_rect(p->out, kind->class, box, markup_borrow(p->out, &tip));
	str_done(&tip);
}

static void put_row(struct carpet_picture *p, const json_t *row, size_t number, bool named)
{
	const char *cells = text_of(row, "cells"), *ranks = text_of(row, "ranks");
	size_t cnt = MIN(strlen(cells), (size_t)COLUMNS_MAX), end, kind = 0;
	double y = TOP + (double)number * p->cell_height;
	char name[40];

	(void)snprintf(name, sizeof(name), "rank %.24s", ranks);
	if (named)
		svg_text(p->out, "rank", LEFT - 8, y + p->cell_height / 2 + 4, SVG_END, name);
	for (size_t from = 0; from < cnt; from = end) {
		const struct kind *of = kind_of(cells[from], &kind);

		for (end = from + 1; end < cnt && cells[end] == cells[from]; end++)
			;
		if (of == NULL)
			continue;
		p->used[kind] = true;
		put_box(p, of, ranks, from, end, y);
	}
}

static void put_legend(const struct carpet_picture *p)
{
	str_append(p->out, "<ul class=\"legend\">");
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (p->used[i])
			str_printf(p->out, "<li><i class=\"%s\"></i>%s</li>", kinds[i].class,
				   kinds[i].word);
	}
	str_append(p->out, "</ul>\n");
}

static void put_times(const struct carpet_picture *p)
{
	for (size_t i = 0; i <= 4; i++) {
		double part = (double)i / 4, x = LEFT + part * (WIDTH - LEFT);
		char at[32];

		print_time(p->begin_ms + part * (double)p->column_cnt * p->column_ms, at);
		svg_text(p->out, "tick", x, TOP - 10, i == 4 ? SVG_END : SVG_START, at);
	}
}

static void put_note(struct carpet_picture *p, const json_t *rows)
{
	struct str note = { 0 };

	str_printf(&note, "A column is %.0f s; times are UTC.", p->column_ms / 1e3);
	if (strchr(text_of(json_array_get(rows, 0), "ranks"), '-') != NULL)
		str_append(&note, " A row is some neighboring ranks: the worst of them.");
	str_append(&note, " Who waits for whom is known of profiles only: see the reports.");
	figure_close(p->out, markup_borrow(p->out, &note));
	str_done(&note);
}

static void put_rows(struct carpet_picture *p, const json_t *rows)
{
	size_t cnt = MIN(json_array_size(rows), (size_t)ROWS_MAX);
	size_t every = (size_t)(16.0 / p->cell_height) + 1;

	for (size_t i = 0; i < cnt; i++)
		put_row(p, json_array_get(rows, i), i, i % every == 0);
}

void livecarpet_put(struct str *out, const json_t *live)
{
	const json_t *carpet = json_object_get(live, "carpet"),
		     *rows = json_object_get(carpet, "rows");
	struct carpet_picture p = {
		.out = out,
		.begin_ms = json_number_value(json_object_get(carpet, "begin_ms")),
		.column_ms = json_number_value(json_object_get(carpet, "column_ms"))
	};
	size_t cnt = MIN(json_array_size(rows), (size_t)ROWS_MAX);
	struct str picture = { 0 };

	p.column_cnt = MIN(strlen(text_of(json_array_get(rows, 0), "cells")), (size_t)COLUMNS_MAX);
	if (cnt == 0 || p.column_cnt == 0)
		return;
	p.cell_width = (WIDTH - LEFT) / (double)p.column_cnt;
	p.cell_height = MIN(TALLEST, PICTURE_HEIGHT / (double)cnt);
	p.out = &picture;
	svg_open(&picture, WIDTH, TOP + (double)cnt * p.cell_height + 4, "carpet", "Ranks by time",
		 "The state of each rank over the run; the table of ranks has it of now.");
	put_times(&p);
	put_rows(&p, rows);
	svg_close(&picture);
	p.out = out;
	str_append(out, "<section class=\"window\">");
	figure_open(out, "Ranks by time");
	put_legend(&p);
	str_append_len(out, str_borrow(&picture), picture.len);
	put_note(&p, rows);
	str_append(out, "</section>\n");
	str_done(&picture);
}
