/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A comparison for a terminal: the verdict, the two runs, the confidence, and the changes
 * in sections by kind. The section of the largest change comes first.
 */
#include "base/text/clean.h"
#include "report/comparison/comparison_phrase.h"
#include "report/comparison/formats.h"
#include "report/page.h"
#include "report/phrase.h"

#include <math.h>
#include <string.h>

#define LABEL_CELLS 10
#define ROWS_MAX 12 /* of a section, unless verbose */
#define NUMBER_CNT 4
#define WIDTH_MAX 160

struct text_writer {
	struct page page;
	const struct comparison *comparison;
	bool verbose;
};

static const struct {
	const char *title;
	size_t cells;
} numbers[NUMBER_CNT] = { { "Before", 9 }, { "After", 9 }, { "Change", 10 }, { "Chance", 6 } };

static void label_line(struct text_writer *w, const char *name, struct str *text)
{
	page_paragraph(&w->page, 0, name, LABEL_CELLS, text);
}

static void verdict_line(struct text_writer *w)
{
	static const struct {
		const char *word;
		enum page_style style;
	} words[] = {
		[COMPARISON_SAME] = { "SAME:", PAGE_GOOD },
		[COMPARISON_SLOWER] = { "SLOWER:", PAGE_BAD },
		[COMPARISON_FASTER] = { "FASTER:", PAGE_GOOD },
		[COMPARISON_UNCERTAIN] = { "UNCERTAIN:", PAGE_WARN },
	};
	struct str text = { 0 };

	phrase_comparison(&text, w->comparison);
	page_verdict(&w->page, words[w->comparison->verdict].style,
		     words[w->comparison->verdict].word, &text);
}

static void run_line(struct text_writer *w, const char *name, const struct comparison_side *side)
{
	struct str text = { 0 };

	clean_append_short(&text, side->label, 120);
	str_append(&text, ": ");
	phrase_run(&text, side);
	label_line(w, name, &text);
}

static void head_lines(struct text_writer *w)
{
	struct str test = { 0 }, sum = { 0 };

	verdict_line(w);
	run_line(w, "Before", &w->comparison->before);
	run_line(w, "After", &w->comparison->after);
	phrase_test(&test, w->comparison);
	label_line(w, "Test", &test);
	phrase_sum(&sum, w->comparison);
	label_line(w, "Sum", &sum);
	for (size_t i = 0; i < w->comparison->note_cnt; i++) {
		struct str note = { 0 };

		clean_append_short(&note, w->comparison->notes[i], 400);
		label_line(w, i == 0 ? "Notes" : "", &note);
	}
}

static size_t numbers_cells(void)
{
	size_t cells = 0;

	for (size_t i = 0; i < NUMBER_CNT; i++)
		cells += numbers[i].cells + 2;
	return cells;
}

static size_t name_cells(const struct text_writer *w)
{
	return w->page.width - numbers_cells() - 2;
}

static void number_cell(struct text_writer *w, enum page_style style, size_t column,
			const char *text)
{
	size_t len = strlen(text);

	page_pad(&w->page, 2 + (numbers[column].cells > len ? numbers[column].cells - len : 0));
	page_span(&w->page, style, text, len);
}

/* "  name" padded to its column. */
static void name_cell(struct text_writer *w, enum page_style style, const char *name)
{
	_cleanup_(str_done) struct str text = { 0 };
	size_t cells = name_cells(w), used;

	clean_append_short(&text, name, cells);
	used = clean_cells(str_borrow(&text), text.len);
	page_pad(&w->page, 2);
	page_span(&w->page, style, str_borrow(&text), text.len);
	page_pad(&w->page, used < cells ? cells - used : 0);
}

static void number_phrase(struct str *out, const struct change *c, size_t column)
{
	if (column == 0)
		phrase_ms(out, c->before.ms);
	else if (column == 1)
		phrase_ms(out, c->after.ms);
	else if (column == 2)
		phrase_delta_ms(out, c->delta_ms);
	else
		phrase_chance(out, c->q);
}

static void detail_line(struct text_writer *w, struct str *text)
{
	if (text->len > 0) {
		page_pad(&w->page, 4);
		page_wrap(&w->page, PAGE_DIM, 4, 6, str_borrow(text));
	}
	page_finish_text(&w->page, text);
}

static void change_row(struct text_writer *w, const struct change *c)
{
	struct str place = { 0 }, before = { 0 }, extent = { 0 };

	name_cell(w, PAGE_BOLD, c->name);
	for (size_t i = 0; i < NUMBER_CNT; i++) {
		struct str text = { 0 };

		number_phrase(&text, c, i);
		number_cell(w, i == 3 && !c->significant ? PAGE_DIM : PAGE_PLAIN, i,
			    str_borrow(&text));
		page_finish_text(&w->page, &text);
	}
	str_append_char(w->page.out, '\n');
	phrase_before(&before, c, w->verbose);
	detail_line(w, &before);
	phrase_place(&place, c, w->verbose);
	detail_line(w, &place);
	phrase_extent(&extent, c);
	detail_line(w, &extent);
}

static void section_head(struct text_writer *w, enum change_kind kind)
{
	const char *title = phrase_kind(kind);
	size_t len = strlen(title), cells = name_cells(w) + 2;

	str_append_char(w->page.out, '\n');
	page_span(&w->page, PAGE_BOLD, title, len);
	page_pad(&w->page, cells > len ? cells - len : 0);
	for (size_t i = 0; i < NUMBER_CNT; i++)
		number_cell(w, PAGE_DIM, i, numbers[i].title);
	str_append_char(w->page.out, '\n');
}

static void section(struct text_writer *w, enum change_kind kind)
{
	size_t shown = 0, cnt = 0;

	section_head(w, kind);
	for (size_t i = 0; i < w->comparison->change_cnt; i++) {
		if (w->comparison->changes[i].kind != kind)
			continue;
		cnt++;
		if (w->verbose || shown < ROWS_MAX) {
			change_row(w, &w->comparison->changes[i]);
			shown++;
		}
	}
	if (shown < cnt) {
		struct str rest = { 0 };

		str_printf(&rest, "and %zu more (JSON has all)", cnt - shown);
		detail_line(w, &rest);
	}
}

static void sections(struct text_writer *w)
{
	bool printed[CHANGE_KIND_CNT] = { false };

	for (size_t i = 0; i < w->comparison->change_cnt; i++) {
		enum change_kind kind = w->comparison->changes[i].kind;

		if (!printed[kind])
			section(w, kind);
		printed[kind] = true;
	}
	if (w->comparison->change_cnt == 0)
		str_printf(w->page.out,
			   "\nNo function changed by %g %% of an iteration (--min-change).\n",
			   w->comparison->min_change_pct);
}

int comparison_text(const struct comparison *comparison, const struct report_text_options *options,
		    struct str *out)
{
	size_t width = (size_t)MAX(options->width, REPORT_TEXT_WIDTH_MIN), start = out->len;
	struct text_writer w = {
		.page = { .out = out,
			  .width = MIN(width, (size_t)WIDTH_MAX),
			  .color = options->color },
		.comparison = comparison,
		.verbose = options->verbose,
	};

	head_lines(&w);
	sections(&w);
	if (comparison->change_cnt > 0)
		str_append(out, "\nms per iteration on the critical path, mean of the workers. "
				"Chance: its probability without a cause.\n");
	return str_finish(out, start);
}
