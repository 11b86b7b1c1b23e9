/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The report as one page: the verdict, the facts, the findings, pictures of the window,
 * missing data, and the numbers of each worker.
 * Source: PerfTracker figures 7 and 13.
 */
#include "base/str.h"
#include "model/rankset.h"
#include "report/absent.h"
#include "report/breakdown.h"
#include "report/costphrase.h"
#include "report/formats.h"
#include "report/html/chart.h"
#include "report/html/document.h"
#include "report/html/evidencelinks.h"
#include "report/html/html_finding.h"
#include "report/html/markup.h"
#include "report/phrase.h"
#include "report/stacks/hangtree.h"
#include "report/whenwhere.h"

#include <errno.h>
#include <math.h>

#define TABLE_ROWS_MAX EVIDENCELINKS_ROWS_MAX /* workers with numbers */
#define LIST_MAX 200			      /* notes, failures */
#define HOSTS_MAX 4			      /* named in the facts */

static void page_head(struct str *out, const struct report *report)
{
	struct document page = { .word = verdict_words(report->verdict),
				 .tone = verdict_name(report->verdict),
				 .skip = "findings" };
	struct str sentence = { 0 };

	phrase_verdict(&sentence, report);
	document_open(out, &page, &sentence);
}

static void fact_open(struct str *out, const char *name)
{
	str_printf(out, "<div><dt>%s</dt><dd>", name);
}

static void fact_close(struct str *out)
{
	str_append(out, "</dd></div>\n");
}

static void fact_job(struct str *out, const struct report *report)
{
	bool named = report->job_id != NULL && report->job_id[0] != '\0';

	fact_open(out, "Job");
	str_append(out, "<bdi>");
	markup_text_short(out, named ? report->job_id : "unnamed", 80);
	str_printf(out, "</bdi><small>%d worker%s</small>", report->world_size,
		   plural(report->world_size));
	fact_close(out);
}

static void small_phrase(struct str *out, struct str *phrase)
{
	if (phrase->len > 0) {
		str_append(out, "<small>");
		markup_take(out, phrase);
		str_append(out, "</small>");
	}
	str_done(phrase);
}

static void fact_hosts(struct str *out, const struct report *report)
{
	struct str names = { 0 };
	size_t cnt = report->origin.host_cnt;

	if (cnt == 0)
		return;
	fact_open(out, "Hosts");
	str_printf(out, "%zu", cnt);
	phrase_host_names(&names, &report->origin, HOSTS_MAX);
	small_phrase(out, &names);
	fact_close(out);
}

static void fact_when(struct str *out, const struct report *report)
{
	struct str span = { 0 }, steps = { 0 };

	phrase_span(&span, &report->origin);
	phrase_steps(&steps, &report->origin);
	if (span.len + steps.len > 0) {
		fact_open(out, "Window");
		markup_take(out, &span);
		small_phrase(out, &steps);
		fact_close(out);
	}
	str_done(&span);
	str_done(&steps);
}

static void fact_maker(struct str *out, const struct report *report)
{
	struct str maker = { 0 };

	fact_open(out, "Report");
	phrase_maker(&maker, &report->origin);
	str_append(out, "<small>");
	markup_take(out, &maker);
	str_append(out, "</small>");
	fact_close(out);
}

/* The command of the job, over the whole width. */
static void fact_command(struct str *out, const struct report *report)
{
	const char *command = report->origin.command;

	if (command == NULL || command[0] == '\0')
		return;
	str_append(out, "<p class=\"command\"><code>");
	markup_text_short(out, command, 1000);
	str_append(out, "</code></p>\n");
}

static void fact_iteration(struct str *out, const struct report *report)
{
	struct str ms = { 0 }, loop = { 0 };

	if (!isfinite(report->iterations) || report->iterations <= 0.0)
		return;
	fact_open(out, "Iteration");
	phrase_ms(&ms, report->iteration_ms);
	markup_take(out, &ms);
	str_printf(out, "<small>median, %g in the window</small>", report->iterations);
	phrase_loop(&loop, &report->loop);
	if (loop.len > 0) {
		str_append(out, "<small>");
		markup_take(out, &loop);
		str_append(out, "</small>");
	}
	str_done(&loop);
	fact_close(out);
}

static void fact_coverage(struct str *out, const struct report *report)
{
	struct str missing = { 0 };

	fact_open(out, "Coverage");
	str_printf(out, "%d of %d worker%s analyzed", report->workers_analyzed,
		   report->workers_expected, plural(report->workers_expected));
	if (report->rank_source != NULL && report->rank_source[0] != '\0') {
		str_append(out, "<small>ranks from ");
		markup_text_short(out, report->rank_source, 80);
		str_append(out, "</small>");
	}
	if (report->missing_cnt > 0) {
		str_append(out, "<small class=\"lack\">no data of ");
		str_append(out, report->missing_cnt > 1 ? "ranks " : "rank ");
		phrase_rank_list(&missing, report->missing, report->missing_cnt, 60);
		markup_take(out, &missing);
		str_append(out, "</small>");
	}
	fact_close(out);
}

static void fact_trigger(struct str *out, const struct report *report)
{
	struct str phrase = { 0 }, slowdown = { 0 };

	if (!report->trigger.present)
		return;
	fact_open(out, "Trigger");
	phrase_trigger(&phrase, &report->trigger);
	markup_take(out, &phrase);
	str_append(out, "<small>");
	phrase_slowdown(&slowdown, &report->trigger);
	markup_take(out, &slowdown);
	str_append(out, "</small>");
	fact_close(out);
}

static void fact_threads(struct str *out, const struct own_cpu *own)
{
	struct str phrase = { 0 };

	if (own->rank_ns == 0)
		return;
	str_append(out, "<small>");
	phrase_threads(&phrase, own);
	markup_take(out, &phrase);
	str_append(out, "</small>");
}

static void fact_overhead(struct str *out, const struct report *report)
{
	struct str phrase = { 0 };

	if (!report->overhead.present)
		return;
	fact_open(out, "Overhead");
	str_append(out, "<small>");
	phrase_overhead(&phrase, &report->overhead);
	markup_take(out, &phrase);
	str_append(out, "</small>");
	fact_threads(out, &report->overhead.own);
	fact_close(out);
}

static void facts(struct str *out, const struct report *report)
{
	str_append(out, "<dl class=\"facts\">\n");
	fact_job(out, report);
	fact_hosts(out, report);
	fact_when(out, report);
	fact_iteration(out, report);
	fact_coverage(out, report);
	fact_trigger(out, report);
	fact_overhead(out, report);
	fact_maker(out, report);
	str_append(out, "</dl>\n");
	fact_command(out, report);
	str_append(out, "</header>\n<main id=\"main\">\n");
}

static void pace_part(struct str *out, const struct report *report)
{
	if (report->pace.point_cnt < 2)
		return;
	str_append(out, "<section class=\"window\"><h2>The run</h2>\n");
	chart_pace(report, out);
	str_append(out, "</section>\n");
}

static void window_part(struct str *out, const struct report *report)
{
	if (report->worker_cnt == 0)
		return;
	str_append(out, "<section class=\"window\"><h2>The window</h2>\n");
	chart_lanes(report, out);
	chart_heat(report, out);
	chart_waits(report, out);
	chart_flame(report, out);
	chart_shares(report, out);
	chart_iterations(report, out);
	str_append(out, "</section>\n");
}

static void pair_row(struct str *out, const char *kind, const char *what, const char *why)
{
	str_printf(out, "<tr><td>%s</td><td><bdi>", kind);
	markup_text_short(out, what, 200);
	str_append(out, "</bdi></td><td><bdi>");
	markup_text_short(out, why, 400);
	str_append(out, "</bdi></td></tr>\n");
}

static void rest_row(struct str *out, const char *kind, size_t cnt)
{
	if (cnt > LIST_MAX)
		str_printf(out, "<tr><td>%s</td><td colspan=\"2\">and %zu more</td></tr>\n", kind,
			   cnt - LIST_MAX);
}

static void missing_row(struct str *out, const struct report *report)
{
	struct str ranks = { 0 };

	if (report->missing_cnt == 0)
		return;
	phrase_rank_list(&ranks, report->missing, report->missing_cnt, 240);
	pair_row(out, "No data", "ranks", markup_borrow(out, &ranks));
	str_done(&ranks);
}

/* One row for each reason. */
static void absence_rows(struct str *out, const struct report *report)
{
	size_t shown = 0;

	for (size_t i = 0; i < report->absence_cnt && shown < LIST_MAX; i++) {
		struct str text = { 0 };

		if (!absent_is_first(report, i))
			continue;
		shown++;
		absent_phrase(&text, report, i);
		str_append(out, "<tr><td>No data</td><td colspan=\"2\"><bdi>");
		markup_take(out, &text);
		str_append(out, "</bdi></td></tr>\n");
	}
	rest_row(out, "No data", absent_cnt(report));
}

static void gaps_part(struct str *out, const struct report *report)
{
	if (report->missing_cnt + report->failure_cnt + report->absence_cnt + report->note_cnt == 0)
		return;
	str_append(out, "<section><h2>Missing data and notes</h2>\n"
			"<div class=\"scroll\" tabindex=\"0\" role=\"region\" "
			"aria-label=\"Missing data and notes\"><table><tbody>\n");
	missing_row(out, report);
	for (size_t i = 0; i < MIN(report->failure_cnt, (size_t)LIST_MAX); i++)
		pair_row(out, "Failed", report->failures[i].source, report->failures[i].why);
	rest_row(out, "Failed", report->failure_cnt);
	absence_rows(out, report);
	for (size_t i = 0; i < MIN(report->note_cnt, (size_t)LIST_MAX); i++) {
		str_append(out, "<tr><td>Note</td><td colspan=\"2\"><bdi>");
		markup_text_short(out, report->notes[i], 400);
		str_append(out, "</bdi></td></tr>\n");
	}
	rest_row(out, "Note", report->note_cnt);
	str_append(out, "</tbody></table></div></section>\n");
}

static double mean_iteration_ms(const struct report_worker *worker)
{
	double sum = 0.0;

	for (size_t i = 0; i < worker->iteration_cnt; i++)
		sum += worker->iteration_ms[i];
	return worker->iteration_cnt > 0 ? sum / (double)worker->iteration_cnt : (double)NAN;
}

static void worker_row(struct str *out, const struct report_worker *worker, bool flagged)
{
	struct str ms = { 0 };

	str_printf(out, "<tr id=\"rank-%d\"><td class=\"n\">%s%d</td><td><bdi>", worker->rank,
		   flagged ? "\xe2\x97\x86 " : "", worker->rank);
	markup_text_short(out, worker->host, 64);
	str_append(out, "</bdi></td><td><bdi>");
	markup_text_short(out, worker->source, 64);
	str_append(out, "</bdi></td><td class=\"n\">");
	phrase_ms(&ms, mean_iteration_ms(worker));
	markup_take(out, &ms);
	for (int class = CLASS_CNT - 1; class >= 0; class --) {
		struct str share = { 0 };

		str_append(out, "</td><td class=\"n\">");
		phrase_pct(&share, worker->class_frac[class] * 100.0);
		markup_take(out, &share);
	}
	str_append(out, "</td></tr>\n");
}

/* The numbers of the pictures as a table, also for screen readers. */
static void workers_part(struct str *out, const struct report *report)
{
	size_t shown = MIN(report->worker_cnt, (size_t)TABLE_ROWS_MAX);

	if (shown == 0)
		return;
	str_append(out,
		   "<section id=\"workers\"><details><summary>Numbers of each worker</summary>"
		   "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Workers\">"
		   "<table><thead><tr><th scope=\"col\" class=\"n\">Rank</th>"
		   "<th scope=\"col\">Host</th><th scope=\"col\">Source</th>"
		   "<th scope=\"col\" class=\"n\">Mean iteration</th>");
	for (int class = CLASS_CNT - 1; class >= 0; class --)
		str_printf(out, "<th scope=\"col\" class=\"n\">%s</th>",
			   event_class_name((enum event_class) class));
	str_append(out, "</tr></thead><tbody>\n");
	for (size_t i = 0; i < shown; i++)
		worker_row(out, &report->workers[i],
			   chart_flagged(report, report->workers[i].rank));
	str_append(out, "</tbody></table></div>");
	if (shown < report->worker_cnt)
		str_printf(
			out,
			"<p class=\"note\">The first %zu of %zu workers; the JSON report has all."
			"</p>",
			shown, report->worker_cnt);
	str_append(out, "</details></section>\n");
}

/* A row of what takes time; frees words, which are clean. */
static void time_row(struct str *out, double iteration_ms, double window_pct, struct str *words)
{
	struct str ms = { 0 }, pct = { 0 };

	phrase_ms(&ms, iteration_ms);
	phrase_pct(&pct, window_pct);
	str_append(out, "<tr><td class=\"n\">");
	markup_take(out, &ms);
	str_append(out, "</td><td class=\"n\">");
	markup_take(out, &pct);
	str_append(out, "</td><td><bdi>");
	markup_take(out, words);
	str_append(out, "</bdi></td></tr>\n");
}

/* The heading of a section with such rows. time: of what the first column is. */
static void time_table(struct str *out, const char *title, const char *label, const char *time,
		       const char *column)
{
	str_printf(out,
		   "<section><h2>%s</h2>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" "
		   "aria-label=\"%s\"><table><thead>"
		   "<tr><th scope=\"col\" class=\"n\">%s</th>"
		   "<th scope=\"col\" class=\"n\">Share</th><th scope=\"col\">%s</th>"
		   "</tr></thead><tbody>\n",
		   title, label, time, column);
}

static void class_row(struct str *out, const struct breakdown *breakdown,
		      const struct report *report, enum event_class class)
{
	struct str words = { 0 };

	if (!(breakdown->classes[class].most_pct > 0))
		return;
	breakdown_phrase_class(&words, breakdown, report, class);
	time_row(out, breakdown->classes[class].ms, breakdown->classes[class].pct, &words);
}

static void breakdown_part(struct str *out, const struct report *report)
{
	struct str iterations = { 0 };
	struct breakdown breakdown;

	if (report->worker_cnt == 0)
		return;
	if (breakdown_init(&breakdown, report) < 0) {
		out->error = -ENOMEM;
		return;
	}
	time_table(out, breakdown.iteration_cnt > 0 ? PHRASE_BREAKDOWN : PHRASE_BREAKDOWN_WHOLE,
		   "Classes of time",
		   breakdown.iteration_cnt > 0 ? "Per iteration" : "In the window", "What");
	for (int class = CLASS_CNT - 1; class >= 0; class --)
		class_row(out, &breakdown, report, (enum event_class) class);
	str_append(out, "</tbody></table></div>\n");
	breakdown_phrase_iterations(&iterations, &breakdown);
	if (iterations.len > 0) {
		str_append(out, "<p class=\"note\">Iterations: ");
		markup_take(out, &iterations);
		str_append(out, "</p>\n");
	}
	str_append(out, "</section>\n");
	breakdown_done(&breakdown);
}

static void shares_part(struct str *out, const struct report *report)
{
	if (report->share_cnt == 0)
		return;
	time_table(out, PHRASE_SHARES, "Functions",
		   report->iterations > 0 ? "Per iteration" : "In the window", "Function");
	for (size_t i = 0; i < report->share_cnt; i++) {
		struct str name = { 0 };

		phrase_share(&name, &report->shares[i]);
		time_row(out, report->shares[i].ms_per_iteration, report->shares[i].frac * 100.0,
			 &name);
	}
	str_append(out, "</tbody></table></div></section>\n");
}

int report_html(const struct report *report, struct str *out)
{
	size_t start = out->len;

	page_head(out, report);
	facts(out, report);
	html_findings(report, out);
	hangtree_html(out, report);
	pace_part(out, report);
	/* Without a verdict what was not seen matters more than what was. */
	if (verdict_is_open(report->verdict))
		gaps_part(out, report);
	breakdown_part(out, report);
	window_part(out, report);
	shares_part(out, report);
	if (!verdict_is_open(report->verdict))
		gaps_part(out, report);
	workers_part(out, report);
	document_close(out,
		       "findings.md in PerfTracker's documents explains each finding; programs "
		       "read the JSON report.");
	return str_finish(out, start);
}
