/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A comparison as one page: the verdict, the facts, a picture of the largest changes,
 * and a table for each kind of change.
 */
#include "base/text/clean.h"
#include "report/comparison/comparison_phrase.h"
#include "report/comparison/formats.h"
#include "report/html/chart.h"
#include "report/html/document.h"
#include "report/html/markup.h"
#include "report/phrase.h"

#include <math.h>

#define BARS_MAX 14
#define ROWS_MAX 200 /* of a table */
#define BAR_STEP 26.0
#define PICTURE_WIDTH 1040.0
#define ZERO_X 620.0 /* names on the left, bars around it */
#define BAR_MAX 280.0

static void put_phrase(struct str *out, void (*phrase)(struct str *, const struct comparison *),
		       const struct comparison *c)
{
	struct str text = { 0 };

	phrase(&text, c);
	markup_take(out, &text);
}

static void page_head(struct str *out, const struct comparison *c)
{
	static const char *const tones[] = {
		[COMPARISON_SAME] = "healthy",
		[COMPARISON_SLOWER] = "abnormal",
		[COMPARISON_FASTER] = "healthy",
		[COMPARISON_UNCERTAIN] = "inconclusive",
	};
	struct document page = { .word = phrase_comparison_word(c),
				 .tone = tones[c->verdict],
				 .skip = "changes" };
	struct str sentence = { 0 };

	phrase_comparison(&sentence, c);
	document_open(out, &page, &sentence);
}

static void run_fact(struct str *out, const char *name, const struct comparison_side *side)
{
	struct str text = { 0 };

	str_printf(out, "<div><dt>%s</dt><dd><bdi>", name);
	markup_text_short(out, side->label, 80);
	str_append(out, "</bdi><small>");
	phrase_run(&text, side);
	markup_take(out, &text);
	str_append(out, "</small></dd></div>\n");
}

static void facts(struct str *out, const struct comparison *c)
{
	str_append(out, "<dl class=\"facts\">\n");
	run_fact(out, "Before", &c->before);
	run_fact(out, "After", &c->after);
	str_append(out, "<div><dt>Test</dt><dd><small>");
	put_phrase(out, phrase_test, c);
	str_append(out, "</small></dd></div>\n<div><dt>Sum of the changes</dt><dd><small>");
	put_phrase(out, phrase_sum, c);
	str_append(out, "</small></dd></div>\n</dl></header>\n<main id=\"main\">\n");
}

static void bar(struct str *out, const struct change *c, double y, double scale)
{
	struct str name = { 0 }, delta = { 0 };
	double length = fabs(c->delta_ms) * scale;
	struct svg_box box = { c->delta_ms < 0 ? ZERO_X - length : ZERO_X, y + 4, length,
			       BAR_STEP - 8 };

	clean_append_short(&name, c->name, 40);
	phrase_delta_ms(&delta, c->delta_ms);
	svg_text(out, "name", 0, y + 17, SVG_START, markup_borrow(out, &name));
	svg_rect(out, event_class_name(c->class), box, change_kind_name(c->kind));
	svg_text(out, "", c->delta_ms < 0 ? box.x - 6 : box.x + length + 6, y + 17,
		 c->delta_ms < 0 ? SVG_END : SVG_START, markup_borrow(out, &delta));
	str_done(&name);
	str_done(&delta);
}

static void picture(struct str *out, const struct comparison *c)
{
	size_t cnt = MIN(c->change_cnt, (size_t)BARS_MAX);
	double height = BAR_STEP * (double)cnt + 4;

	if (cnt == 0 || c->changes[0].delta_ms == 0)
		return;
	str_append(out,
		   "<section class=\"window\"><h2>The largest changes</h2>\n<figure tabindex=\"0\">"
		   "<figcaption>Time per iteration on the critical path</figcaption>");
	figure_legend(out);
	svg_open(out, PICTURE_WIDTH, height, "changes", "The largest changes",
		 "Bars to the right: more time per iteration than before. The table below has "
		 "the numbers.");
	svg_line(out, "axis", ZERO_X, 0, ZERO_X, height);
	for (size_t i = 0; i < cnt; i++)
		bar(out, &c->changes[i], BAR_STEP * (double)i,
		    BAR_MAX / fabs(c->changes[0].delta_ms));
	svg_close(out);
	str_append(out, "</figure></section>\n");
}

static void detail(struct str *out, struct str *phrase)
{
	bool any = phrase->len > 0;

	if (any)
		str_append(out, "<div class=\"note\"><bdi>");
	markup_take(out, phrase);
	if (any)
		str_append(out, "</bdi></div>");
}

static void number_cell(struct str *out, struct str *phrase)
{
	str_append(out, "</td><td class=\"n\">");
	markup_take(out, phrase);
}

static void change_row(struct str *out, const struct change *c)
{
	struct str before = { 0 }, place = { 0 }, extent = { 0 };
	struct str a = { 0 }, b = { 0 }, delta = { 0 }, pct = { 0 }, chance = { 0 };

	str_append(out, "<tr><td><code>");
	markup_text_short(out, c->name, 200);
	str_append(out, "</code>");
	phrase_before(&before, c, true);
	detail(out, &before);
	phrase_place(&place, c, true);
	detail(out, &place);
	phrase_extent(&extent, c);
	detail(out, &extent);
	phrase_ms(&a, c->before.ms);
	number_cell(out, &a);
	phrase_ms(&b, c->after.ms);
	number_cell(out, &b);
	phrase_delta_ms(&delta, c->delta_ms);
	number_cell(out, &delta);
	phrase_delta_pct(&pct, c->delta_pct);
	number_cell(out, &pct);
	phrase_chance(&chance, c->q);
	number_cell(out, &chance);
	str_printf(out, "</td><td>%s</td></tr>\n", confidence_name(c->confidence));
}

static void table(struct str *out, const struct comparison *c, enum change_kind kind)
{
	size_t cnt = 0;

	str_printf(out, "<section><h2>%s</h2>\n", phrase_kind(kind));
	str_append(out,
		   "<div class=\"scroll\" tabindex=\"0\" role=\"region\" "
		   "aria-label=\"Changes\"><table><thead><tr><th scope=\"col\">Function</th>"
		   "<th scope=\"col\" class=\"n\">Before</th><th scope=\"col\" class=\"n\">After"
		   "</th><th scope=\"col\" class=\"n\">Change</th><th scope=\"col\" class=\"n\">"
		   "Of the iteration</th><th scope=\"col\" class=\"n\">Chance</th>"
		   "<th scope=\"col\">Confidence</th></tr></thead><tbody>\n");
	for (size_t i = 0; i < c->change_cnt; i++) {
		if (c->changes[i].kind == kind && cnt++ < ROWS_MAX)
			change_row(out, &c->changes[i]);
	}
	str_append(out, "</tbody></table></div>");
	if (cnt > ROWS_MAX)
		str_printf(out, "<p class=\"note\">The largest %d of %zu; JSON has all.</p>",
			   ROWS_MAX, cnt);
	str_append(out, "</section>\n");
}

static void tables(struct str *out, const struct comparison *c)
{
	bool printed[CHANGE_KIND_CNT] = { false };

	for (size_t i = 0; i < c->change_cnt; i++) {
		if (!printed[c->changes[i].kind])
			table(out, c, c->changes[i].kind);
		printed[c->changes[i].kind] = true;
	}
	if (c->change_cnt == 0)
		str_printf(out, "<p>No function changed by %g %% of an iteration.</p>\n",
			   c->min_change_pct);
}

static void notes(struct str *out, const struct comparison *c)
{
	if (c->note_cnt == 0)
		return;
	str_append(out, "<section><h2>Notes</h2><ul>\n");
	for (size_t i = 0; i < c->note_cnt; i++) {
		str_append(out, "<li><bdi>");
		markup_text_short(out, c->notes[i], 400);
		str_append(out, "</bdi></li>\n");
	}
	str_append(out, "</ul></section>\n");
}

int comparison_html(const struct comparison *comparison, struct str *out)
{
	size_t start = out->len;

	page_head(out, comparison);
	facts(out, comparison);
	picture(out, comparison);
	tables(out, comparison);
	notes(out, comparison);
	document_close(out, "Times are means of the workers. Chance: the probability of such a "
			    "change without a cause, among all changes (Benjamini-Hochberg).");
	return str_finish(out, start);
}
