/* SPDX-License-Identifier: Apache-2.0 */
/* The head of the text report: the verdict, then who, when, where, and what is missing. */
#include "base/str.h"
#include "base/text/clean.h"
#include "report/absent.h"
#include "report/costphrase.h"
#include "report/phrase.h"
#include "report/text_parts.h"
#include "report/whenwhere.h"

#include <stdint.h>

#define LABEL_CELLS 10 /* "Coverage  " */
#define HOSTS_MAX 4    /* named unless verbose */

static void head_line(struct text_writer *w, const char *name, struct str *text)
{
	page_paragraph(&w->page, 0, name, LABEL_CELLS, text);
}

static void verdict_line(struct text_writer *w)
{
	enum verdict verdict = w->report->verdict;
	enum page_style style = verdict_is_bad(verdict)	   ? PAGE_BAD
				: verdict_is_open(verdict) ? PAGE_WARN
							   : PAGE_GOOD;
	struct str word = { 0 }, text = { 0 };

	/* "JOB FAILED (exit 1) after 60 steps" is one sentence. */
	str_printf(&word, "%s%s", verdict_words(verdict), verdict == VERDICT_FAILED ? "" : ":");
	phrase_verdict(&text, w->report);
	page_verdict(&w->page, style, str_borrow(&word), &text);
	page_finish_text(&w->page, &word);
}

/* How many items of a list are printed: without verbose LIST_MAX. */
static size_t list_shown(const struct text_writer *w, size_t cnt)
{
	return w->verbose ? cnt : MIN(cnt, (size_t)LIST_MAX);
}

static void list_rest(struct text_writer *w, size_t shown, size_t cnt)
{
	struct str text = { 0 };

	if (shown < cnt)
		str_printf(&text, "and %zu more (--verbose and JSON have all)", cnt - shown);
	head_line(w, "", &text);
}

static void pair_line(struct text_writer *w, const char *name, const char *what, const char *why)
{
	struct str text = { 0 };

	clean_append_short(&text, what, 200);
	str_append(&text, ": ");
	clean_append_short(&text, why, 400);
	head_line(w, name, &text);
}

static void failure_lines(struct text_writer *w)
{
	const struct report *report = w->report;
	size_t shown = list_shown(w, report->failure_cnt);

	for (size_t i = 0; i < shown; i++)
		pair_line(w, i == 0 ? "Failed" : "", report->failures[i].source,
			  report->failures[i].why);
	list_rest(w, shown, report->failure_cnt);
}

/* Sources that are missing for the same reason share a line. */
static void absence_lines(struct text_writer *w)
{
	const struct report *report = w->report;
	size_t shown = 0, cnt = absent_cnt(report), max = list_shown(w, cnt);

	for (size_t i = 0; i < report->absence_cnt && shown < max; i++) {
		struct str text = { 0 };

		if (!absent_is_first(report, i))
			continue;
		absent_phrase(&text, report, i);
		head_line(w, shown++ == 0 ? "No data" : "", &text);
	}
	list_rest(w, shown, cnt);
}

static void note_lines(struct text_writer *w)
{
	size_t shown = list_shown(w, w->report->note_cnt);

	for (size_t i = 0; i < shown; i++) {
		struct str text = { 0 };

		clean_append_short(&text, w->report->notes[i], 400);
		head_line(w, i == 0 ? "Notes" : "", &text);
	}
	list_rest(w, shown, w->report->note_cnt);
}

/* "ddp.py: load_cache on rank 1: 0 ms -> 24 ms per iteration" */
static void growth_lines(struct text_writer *w)
{
	const struct report *report = w->report;
	size_t shown = list_shown(w, report->growth_cnt);

	for (size_t i = 0; i < shown; i++) {
		const struct report_growth *growth = &report->growth[i];
		struct str text = { 0 };

		clean_append_short(&text, growth->function, 200);
		str_append(&text, growth->rank_cnt > 1 ? " on ranks " : " on rank ");
		phrase_rank_list(&text, growth->ranks, growth->rank_cnt, 120);
		str_append(&text, ": ");
		phrase_growth(&text, growth);
		head_line(w, i == 0 ? "Grew" : "", &text);
	}
	list_rest(w, shown, report->growth_cnt);
}

static void trigger_line(struct text_writer *w)
{
	struct str text = { 0 }, slowdown = { 0 };

	if (!w->report->trigger.present)
		return;
	phrase_trigger(&text, &w->report->trigger);
	phrase_slowdown(&slowdown, &w->report->trigger);
	if (str_error(&slowdown) < 0)
		w->page.out->error = str_error(&slowdown);
	if (slowdown.len > 0) {
		str_append(&text, ": ");
		str_append(&text, str_borrow(&slowdown));
	}
	str_done(&slowdown);
	head_line(w, "Trigger", &text);
}

/* Who ran it, where, when, and what made this report. */
static void origin_lines(struct text_writer *w)
{
	const struct report_origin *origin = &w->report->origin;
	struct str command = { 0 }, hosts = { 0 }, when = { 0 };

	clean_append_short(&command, origin->command, w->verbose ? 4000 : 300);
	head_line(w, "Command", &command);
	phrase_hosts(&hosts, origin, w->verbose ? SIZE_MAX : (size_t)HOSTS_MAX);
	head_line(w, origin->host_cnt > 1 ? "Hosts" : "Host", &hosts);
	phrase_when(&when, origin);
	head_line(w, "Window", &when);
}

static void maker_line(struct text_writer *w)
{
	struct str text = { 0 };

	phrase_maker(&text, &w->report->origin);
	head_line(w, "Report", &text);
}

static void job_lines(struct text_writer *w)
{
	struct str job = { 0 }, loop = { 0 }, coverage = { 0 }, missing = { 0 }, overhead = { 0 },
		   threads = { 0 };
	const char *id = w->report->job_id;

	if (id != NULL && id[0] != '\0') {
		clean_append_short(&job, id, 80);
		str_append(&job, ": ");
	}
	phrase_job(&job, w->report);
	head_line(w, "Job", &job);
	origin_lines(w);
	phrase_loop(&loop, &w->report->loop);
	head_line(w, "Iteration", &loop);
	trigger_line(w);
	phrase_coverage(&coverage, w->report);
	head_line(w, "Coverage", &coverage);
	if (w->report->missing_cnt > 0) {
		str_append(&missing, w->report->missing_cnt > 1 ? "ranks " : "rank ");
		phrase_rank_list(&missing, w->report->missing, w->report->missing_cnt,
				 w->verbose ? SIZE_MAX : 240);
	}
	head_line(w, "Missing", &missing);
	if (w->report->overhead.present)
		phrase_overhead(&overhead, &w->report->overhead);
	head_line(w, "Overhead", &overhead);
	phrase_threads(&threads, &w->report->overhead.own);
	head_line(w, "Threads", &threads);
	maker_line(w);
	failure_lines(w);
	absence_lines(w);
	growth_lines(w);
	note_lines(w);
}

void text_head(struct text_writer *w)
{
	verdict_line(w);
	str_append_char(w->page.out, '\n');
	job_lines(w);
}
