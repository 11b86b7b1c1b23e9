/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The report for a terminal: the verdict, the coverage, a table as in the paper's figure 7,
 * then each finding with the ranks that waited, the evidence and the advice.
 * Source: PerfTracker figure 7.
 */
#include "base/text/clean.h"
#include "model/rankset.h"
#include "report/breakdown.h"
#include "report/finding_fields.h"
#include "report/formats.h"
#include "report/phrase.h"
#include "report/seecommand.h"
#include "report/stacks/hangtree.h"
#include "report/text_parts.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define NAME_CELLS 60	/* of the longest name in a row; with less room it has a line of its own */
#define DETAIL_CELLS 17 /* "    utilization  " */
#define FULL_FINDINGS 5 /* printed in full unless verbose */
#define WIDTH_MAX 160
#define SHARE_CELLS 23	/* "    33.8 ms  62 %      " */
#define SHARES_SHOWN 10 /* functions that hold the window */

static void line_end(struct text_writer *w)
{
	str_append_char(w->page.out, '\n');
}

static void detail(struct text_writer *w, const char *name, struct str *text)
{
	page_paragraph(&w->page, 4, name, DETAIL_CELLS, text);
}

/* The phrase, shortened to the width of its column. */
static void cell_text(struct str *out, const struct finding *finding,
		      const struct finding_field *column)
{
	_cleanup_(str_done) struct str text = { 0 };

	column->phrase(&text, finding, column->cells);
	if (str_error(&text) < 0)
		out->error = str_error(&text);
	clean_append_short(out, str_borrow(&text), MAX(column->cells, (size_t)8));
}

/* A cell and, unless it is the last one, its padding. */
static void write_cell(struct text_writer *w, enum page_style style, const char *text, size_t cells,
		       bool last)
{
	size_t len = strlen(text), used = clean_cells(text, len);

	page_span(&w->page, style, text, len);
	if (!last)
		page_pad(&w->page, used < cells ? cells - used + 2 : 2);
}

static void table_cells(struct text_writer *w, const struct finding *finding, bool utilization)
{
	const struct finding_field *column = finding_fields_column(NULL, utilization), *next;

	for (; column != NULL; column = next) {
		_cleanup_(str_done) struct str cell = { 0 };

		next = finding_fields_column(column, utilization);
		cell_text(&cell, finding, column);
		if (str_error(&cell) < 0)
			w->page.out->error = str_error(&cell);
		write_cell(w, PAGE_PLAIN, str_borrow(&cell), column->cells, next == NULL);
	}
	line_end(w);
}

static void table_row(struct text_writer *w, size_t i, size_t name_cells, bool one_line,
		      bool utilization)
{
	const struct finding *finding = &w->report->findings[i];
	_cleanup_(str_done) struct str name = { 0 };

	clean_append_short(&name, finding->name, name_cells);
	str_printf(w->page.out, "%2zu  ", i + 1);
	write_cell(w, PAGE_BOLD, str_borrow(&name), name_cells, !one_line);
	if (!one_line) {
		line_end(w);
		page_pad(&w->page, 4);
	}
	table_cells(w, finding, utilization);
}

static void table_head(struct text_writer *w, size_t name_cells, bool one_line, bool utilization)
{
	const struct finding_field *column = finding_fields_column(NULL, utilization), *next;

	page_span(&w->page, PAGE_DIM, " #  ", 4);
	write_cell(w, PAGE_DIM, "Function", name_cells, !one_line);
	if (!one_line) {
		line_end(w);
		page_pad(&w->page, 4);
	}
	for (; column != NULL; column = next) {
		next = finding_fields_column(column, utilization);
		write_cell(w, PAGE_DIM, column->title, column->cells, next == NULL);
	}
	line_end(w);
}

/* Width of the longest name of the table after shortening. */
static size_t longest_name(struct text_writer *w)
{
	size_t longest = 16;

	for (size_t i = 0; i < w->report->finding_cnt; i++) {
		_cleanup_(str_done) struct str name = { 0 };

		clean_append_short(&name, w->report->findings[i].name, NAME_CELLS);
		longest = MAX(longest, clean_cells(str_borrow(&name), name.len));
	}
	return longest;
}

static void table(struct text_writer *w)
{
	bool utilization = phrase_any_utilization(w->report), one_line;
	const struct finding_field *column = finding_fields_column(NULL, utilization);
	size_t used = 4, name_cells;

	for (; column != NULL; column = finding_fields_column(column, utilization))
		used += column->cells + 2;
	one_line = w->page.width >= used + longest_name(w);
	name_cells = one_line ? longest_name(w) : w->page.width - 4;
	line_end(w);
	table_head(w, name_cells, one_line, utilization);
	for (size_t i = 0; i < w->report->finding_cnt; i++)
		table_row(w, i, name_cells, one_line, utilization);
}

static void where_detail(struct text_writer *w, const struct finding *finding)
{
	struct str text = { 0 };
	size_t shown = w->verbose ? finding->host_cnt : MIN(finding->host_cnt, (size_t)LIST_MAX);

	phrase_subject(&text, finding);
	for (size_t i = 0; i < shown; i++) {
		str_append(&text, i == 0 ? " on " : ", ");
		clean_append_short(&text, finding->hosts[i], 64);
	}
	if (shown < finding->host_cnt)
		str_printf(&text, " and %zu more hosts", finding->host_cnt - shown);
	detail(w, "where", &text);
	if (finding->rank_cnt > 1 && (w->verbose || !finding->all_workers)) {
		struct str ranks = { 0 };

		phrase_rank_list(&ranks, finding->ranks, finding->rank_cnt,
				 w->verbose ? SIZE_MAX : 240);
		if (ranks.len <= 36) /* "where" has said them */
			str_done(&ranks);
		detail(w, "ranks", &ranks);
	}
}

static void stack_detail(struct text_writer *w, const struct finding *finding)
{
	size_t cnt = phrase_caller_cnt(finding);
	size_t shown = w->verbose ? cnt : MIN(cnt, (size_t)4);
	struct str text = { 0 };

	if (shown < cnt)
		str_append(&text, "... > ");
	for (size_t i = cnt - shown; i < cnt; i++) {
		str_append(&text, i > cnt - shown ? " > " : "");
		clean_append_short(&text, finding->stack[i], 120);
	}
	detail(w, "called by", &text);
}

static void measure_details(struct text_writer *w, const struct finding *finding)
{
	struct str time = { 0 }, share = { 0 }, mu = { 0 }, sigma = { 0 };

	if (isfinite(finding->time_ms_per_iteration)) {
		phrase_time(&time, finding);
		str_append(&time, " per iteration");
	}
	detail(w, "time", &time);
	if (finding->beta.present) {
		phrase_value(&share, &finding->beta);
		str_append(&share, finding->gain_at_most
					   ? " (of the window)"
					   : " (of the window, on the critical path)");
	}
	detail(w, "share", &share);
	if (finding->mu.present) {
		if (finding->resource != NULL && finding->resource[0] != '\0') {
			phrase_resource(&mu, finding->resource);
			str_append(&mu, " ");
		}
		phrase_value(&mu, &finding->mu);
	}
	detail(w, "utilization", &mu);
	if (finding->sigma.present)
		phrase_value(&sigma, &finding->sigma);
	detail(w, "deviation", &sigma);
}

static void gain_detail(struct text_writer *w, const struct finding *finding)
{
	struct str text = { 0 };

	if (isfinite(finding->gain_ms_per_iteration) && finding->gain_ms_per_iteration > 0.0) {
		str_append(&text, finding->gain_at_most ? "at most " : "");
		phrase_ms(&text, finding->gain_ms_per_iteration);
		str_append(&text, " (");
		phrase_pct(&text, finding->gain_pct);
		str_append(&text, ") per iteration");
	}
	detail(w, "recoverable", &text);
}

static void victims_detail(struct text_writer *w, const struct finding *finding)
{
	struct str text = { 0 };

	if (finding->victim_cnt > 0) {
		str_append(&text, finding->victim_cnt > 1 ? "ranks " : "rank ");
		phrase_rank_list(&text, finding->victims, finding->victim_cnt,
				 w->verbose ? SIZE_MAX : 120);
		str_append(&text, finding->victim_cnt > 1 ? " (not slow themselves)"
							  : " (not slow itself)");
	}
	detail(w, "who waited", &text);
}

static void scores_detail(struct text_writer *w, const struct finding *finding)
{
	struct str text = { 0 };

	if (w->verbose)
		str_printf(&text, "distance from expectation %.3g, from peers %.3g, threshold %.3g",
			   finding->expectation_distance, finding->differential_distance,
			   finding->threshold);
	detail(w, "scores", &text);
}

static void evidence_details(struct text_writer *w, const struct finding *finding)
{
	for (size_t i = 0; i < finding->evidence_cnt; i++) {
		struct str text = { 0 };

		clean_append_short(&text, finding->evidence[i], 400);
		detail(w, i == 0 ? "evidence" : "", &text);
	}
}

static void finding_cause(struct text_writer *w, const struct finding *finding)
{
	struct str text = { 0 };

	clean_append_short(&text, finding->id, 32);
	str_append(&text, " ");
	clean_append_short(&text, finding->cause, 64);
	str_printf(&text, ", confidence %s", confidence_name(finding->confidence));
	detail(w, "finding", &text);
}

static void finding_title(struct text_writer *w, size_t i, enum page_style style)
{
	const struct finding *finding = &w->report->findings[i];
	_cleanup_(str_done) struct str text = { 0 };

	clean_append_short(&text, finding->title, 200);
	if (str_error(&text) < 0)
		w->page.out->error = str_error(&text);
	str_printf(w->page.out, "%2zu  ", i + 1);
	page_wrap(&w->page, style, 4, 4, str_borrow(&text));
}

/* " 6  PT-302 unexplained-difference: This function ..." */
static void finding_short(struct text_writer *w, size_t i)
{
	const struct finding *finding = &w->report->findings[i];
	_cleanup_(str_done) struct str text = { 0 };

	clean_append_short(&text, finding->id, 32);
	str_append(&text, " ");
	clean_append_short(&text, finding->cause, 64);
	str_append(&text, ": ");
	clean_append_short(&text, finding->title, 200);
	if (str_error(&text) < 0)
		w->page.out->error = str_error(&text);
	str_printf(w->page.out, "%2zu  ", i + 1);
	page_wrap(&w->page, PAGE_PLAIN, 4, 4, str_borrow(&text));
}

static void finding_full(struct text_writer *w, size_t i)
{
	const struct finding *finding = &w->report->findings[i];
	struct str name = { 0 }, advice = { 0 }, command = { 0 };

	line_end(w);
	finding_title(w, i, PAGE_BOLD);
	finding_cause(w, finding);
	clean_append_short(&name, finding->name, 400);
	str_printf(&name, " (%s)", event_class_name(finding->class));
	detail(w, "function", &name);
	stack_detail(w, finding);
	where_detail(w, finding);
	victims_detail(w, finding);
	measure_details(w, finding);
	gain_detail(w, finding);
	scores_detail(w, finding);
	evidence_details(w, finding);
	clean_append_short(&advice, finding->advice, 1000);
	detail(w, "what to do", &advice);
	phrase_see_command(&command, w->report, finding);
	page_command(&w->page, 4, "timeline", DETAIL_CELLS, &command);
}

static void findings_part(struct text_writer *w)
{
	size_t cnt = w->report->finding_cnt,
	       full = w->verbose ? cnt : MIN(cnt, (size_t)FULL_FINDINGS);

	if (cnt == 0)
		return;
	table(w);
	for (size_t i = 0; i < full; i++)
		finding_full(w, i);
	if (full == cnt)
		return;
	line_end(w);
	page_wrap(&w->page, PAGE_DIM, 0, 0,
		  "Other findings in brief (--verbose prints all in full):");
	for (size_t i = full; i < cnt; i++)
		finding_short(w, i);
}

/* A row of what takes time; frees words, which are clean. */
static void time_line(struct text_writer *w, double iteration_ms, double window_pct,
		      struct str *words)
{
	struct str cells = { 0 };

	phrase_ms(&cells, iteration_ms);
	str_append(&cells, "  ");
	phrase_pct(&cells, window_pct);
	page_paragraph(&w->page, 4, str_borrow(&cells), SHARE_CELLS, words);
	page_finish_text(&w->page, &cells);
}

static void class_line(struct text_writer *w, const struct breakdown *breakdown,
		       enum event_class class)
{
	struct str words = { 0 };

	if (!(breakdown->classes[class].most_pct > 0))
		return;
	breakdown_phrase_class(&words, breakdown, w->report, class);
	time_line(w, breakdown->classes[class].ms, breakdown->classes[class].pct, &words);
}

/* Where the time of a window went in which no fault was found: a finding has its own function. */
static void breakdown_part(struct text_writer *w)
{
	const struct report *report = w->report;
	struct str text = { 0 };
	struct breakdown breakdown;

	if (report->worker_cnt == 0 || (!w->verbose && report->verdict == VERDICT_ABNORMAL))
		return;
	if (breakdown_init(&breakdown, report) < 0) {
		w->page.out->error = -ENOMEM;
		return;
	}
	line_end(w);
	page_wrap(&w->page, PAGE_BOLD, 0, 0,
		  breakdown.iteration_cnt > 0 ? PHRASE_BREAKDOWN : PHRASE_BREAKDOWN_WHOLE);
	for (int class = CLASS_CNT - 1; class >= 0; class --)
		class_line(w, &breakdown, (enum event_class) class);
	breakdown_phrase_iterations(&text, &breakdown);
	page_paragraph(&w->page, 4, "iterations", SHARE_CELLS, &text);
	breakdown_done(&breakdown);
}

/* The functions that held it. */
static void shares_part(struct text_writer *w)
{
	const struct report *report = w->report;
	size_t shown = MIN(report->share_cnt, w->verbose ? SIZE_MAX : (size_t)SHARES_SHOWN);

	if (shown == 0 || (!w->verbose && report->verdict == VERDICT_ABNORMAL))
		return;
	line_end(w);
	page_wrap(&w->page, PAGE_BOLD, 0, 0, PHRASE_SHARES);
	for (size_t i = 0; i < shown; i++) {
		struct str name = { 0 };

		phrase_share(&name, &report->shares[i]);
		time_line(w, report->shares[i].ms_per_iteration, report->shares[i].frac * 100.0,
			  &name);
	}
}

int report_text(const struct report *report, const struct report_text_options *options,
		struct str *out)
{
	int width = MIN(MAX(options->width, REPORT_TEXT_WIDTH_MIN), WIDTH_MAX);
	struct text_writer w = {
		.page = { .out = out, .width = (size_t)width, .color = options->color },
		.report = report,
		.verbose = options->verbose,
	};
	size_t start = out->len;

	text_head(&w);
	findings_part(&w);
	hangtree_text(out, report, (size_t)width);
	breakdown_part(&w);
	shares_part(&w);
	text_use(&w);
	if (isfinite(report->elapsed_ms) && report->elapsed_ms > 0.0) {
		struct str text = { 0 };

		line_end(&w);
		str_append(&text, "analysis took ");
		phrase_ms(&text, report->elapsed_ms);
		page_wrap(&w.page, PAGE_DIM, 0, 0, str_borrow(&text));
		str_done(&text);
	}
	return str_finish(out, start);
}
