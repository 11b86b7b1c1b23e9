/* SPDX-License-Identifier: Apache-2.0 */
/* The first page: what is wrong now, all jobs, and the reports in folders. */
#include "base/clock.h"
#include "report/html/markup.h"
#include "serve/jobwords.h"
#include "serve/pages/pageparts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define ROWS_PRESET 200u
#define REPORTS_MAX 200u
#define WORST_TEXT 700

struct jobs_page {
	struct str rows;
	size_t cnt, running_cnt, bad_cnt;
	char worst_key[STORE_KEY_BYTES],
		worst[WORST_TEXT]; /* the newest that runs and is in trouble */
	char worst_word[64];
};

/* By its state: the verdict is that of its last report, which may be long ago. */
static bool is_bad(const char *state)
{
	return strcmp(state, "slow") == 0 || strcmp(state, "blocked") == 0;
}

static void note_state(struct jobs_page *page, const struct store_job *job, const char *state)
{
	bool runs = job->ended_ns == 0 && strcmp(state, "lost") != 0;

	page->cnt++;
	page->running_cnt += runs;
	if (!runs || !is_bad(state))
		return;
	if (page->bad_cnt++ > 0)
		return;
	(void)snprintf(page->worst_key, sizeof(page->worst_key), "%s", job->key);
	(void)snprintf(page->worst_word, sizeof(page->worst_word), "%s", state);
	(void)snprintf(page->worst, sizeof(page->worst),
		       "job %s is %s, %.1f ms per iteration, at best %.1f ms%s%s%s%s", job->name,
		       state, (double)job->now_ns / NSEC_PER_MSEC,
		       (double)job->best_ns / NSEC_PER_MSEC,
		       job->verdict != NULL ? "; last report: " : "",
		       job->verdict != NULL ? job->verdict : "",
		       job->reason != NULL && job->reason[0] != '\0' ? ", " : "",
		       job->reason != NULL ? job->reason : "");
}

static void cell(struct str *out, const char *class, const char *name, const char *text)
{
	str_printf(out, "<td class=\"%s\" data-name=\"%s\">", class, name);
	markup_text_short(out, text, 80);
	str_append(out, "</td>");
}

static int take_row(void *arg, const struct store_job *job)
{
	struct jobs_page *page = arg;
	struct str *out = &page->rows;
	char state[32], started[32], number[48];

	jobwords_state(job, state);
	jobwords_time(job->started_ns, started);
	note_state(page, job, state);
	str_append(out, "<tr><td class=\"name\"><a href=\"/jobs/");
	markup_text(out, job->key);
	str_append(out, "\">");
	markup_text_short(out, job->name[0] != '\0' ? job->name : job->key, 60);
	str_append(out, "</a></td>");
	str_printf(out, "<td data-name=\"State\"><span class=\"state %s\">", pageparts_tone(state));
	markup_text_short(out, state, 40);
	str_append(out, "</span></td>");
	str_printf(out, "<td data-name=\"Last report\"><span class=\"state %s\">",
		   job->verdict != NULL ? pageparts_tone(job->verdict) : "open");
	markup_text_short(out, job->verdict != NULL ? job->verdict : "-", 40);
	str_append(out, "</span></td>");
	(void)snprintf(number, sizeof(number), "%.1f", (double)job->now_ns / NSEC_PER_MSEC);
	cell(out, "n", "Now, ms", number);
	(void)snprintf(number, sizeof(number), "%.1f", (double)job->best_ns / NSEC_PER_MSEC);
	cell(out, "n", "Best, ms", number);
	(void)snprintf(number, sizeof(number), "%" PRIu64, job->step);
	cell(out, "n", "Step", number);
	(void)snprintf(number, sizeof(number), "%" PRIu32, job->workers);
	cell(out, "n", "Ranks", number);
	cell(out, "", "Host", job->host);
	cell(out, "", "Owner", job->owner);
	cell(out, "t", "Started (UTC)", started);
	str_append(out, "</tr>\n");
	return str_error(out);
}

/* The newest report in the folders, as the answer. */
static void put_newest(struct str *out, const struct catalog_report *report)
{
	str_printf(out, "<a class=\"cover\" href=\"/reports/%s\">", report->id);
	str_printf(out, "<div class=\"verdict %s\"><p class=\"word\">",
		   pageparts_tone(report->verdict));
	markup_text_short(out, pageparts_words(report->verdict), 60);
	str_append(out, " <bdi class=\"about-job\">");
	markup_text_short(out, report->job, 80);
	str_append(out, "</bdi></p><h1>");
	markup_text_short(out, report->title != NULL ? report->title : report->reason, 600);
	str_append(out, "</h1>\n");
	if (report->gain_ms > 0.0)
		str_printf(
			out,
			"<dl class=\"stats\"><div class=\"gain\"><dt>Gain of a "
			"repair</dt><dd>%.1f ms per iteration<small>%.1f %% of it</small></dd></div>"
			"</dl>\n",
			report->gain_ms, report->gain_pct);
	if (report->advice != NULL) {
		str_append(out, "<p class=\"advice\"><b>What to do</b>");
		markup_text_short(out, report->advice, 1500);
		str_append(out, "</p>\n");
	}
	str_append(out, "</div></a>\n");
}

static void put_head(struct str *out, const struct jobs_page *page, const char *why,
		     const struct catalog *catalog)
{

	struct str sentence = { 0 };

	if (page->bad_cnt > 0) {
		str_printf(out, "<a class=\"cover\" href=\"/jobs/%s\">", page->worst_key);
		pageparts_card(out, pageparts_tone(page->worst_word), page->worst_word,
			       page->worst);
		str_append(out, "</a>");
		if (page->bad_cnt > 1)
			str_printf(out,
				   "<p class=\"note\">%zu more running job%s below in trouble</p>",
				   page->bad_cnt - 1, plural((double)page->bad_cnt - 1));
		return;
	}
	if (page->running_cnt == 0 && catalog_borrow(catalog, 0) != NULL) {
		put_newest(out, catalog_borrow(catalog, 0));
		return;
	}
	if (why != NULL)
		str_append(&sentence, why);
	else if (page->running_cnt > 0)
		str_printf(&sentence, "%zu job%s run%s, none of them is known to be slow",
			   page->running_cnt, plural((double)page->running_cnt),
			   page->running_cnt == 1 ? "s" : "");
	else
		str_append(&sentence, "no job runs");
	pageparts_card(out, page->running_cnt > 0 ? "healthy" : "open", "Now",
		       str_borrow(&sentence));
	str_done(&sentence);
}

static void put_form(struct str *out, const struct archive_filter *filter)
{
	str_append(out, "<form class=\"filter\" role=\"search\" action=\"/\" method=\"get\">"
			"<label for=\"filter\">Filter jobs</label>"
			"<input id=\"filter\" name=\"filter\" type=\"search\" autocomplete=\"off\" "
			"placeholder=\"name, host, owner, state, verdict\" value=\"");
	markup_text_short(out, filter->text != NULL ? filter->text : "", 200);
	str_append(out, "\"><button>Filter</button></form>\n");
}

static void put_jobs(struct str *out, const struct jobs_page *page,
		     const struct archive_filter *filter, const char *next)
{
	put_form(out, filter);
	if (page->cnt == 0) {
		str_append(out, "<p class=\"note\">No job of the store fits.</p>\n");
		return;
	}
	str_append(out, "<div class=\"scroll\" tabindex=\"0\" role=\"region\" "
			"aria-label=\"Jobs\"><table class=\"findings jobs\"><thead><tr><th "
			"scope=\"col\">Job</th><th scope=\"col\">State</th><th scope=\"col\">Last "
			"report</th><th scope=\"col\" class=\"n\">Now, ms</th><th scope=\"col\" "
			"class=\"n\">Best, ms</th><th scope=\"col\" class=\"n\">Step</th><th "
			"scope=\"col\" class=\"n\">Ranks</th><th scope=\"col\">Host</th><th "
			"scope=\"col\">Owner</th><th scope=\"col\">Started (UTC)</th></tr></thead>"
			"<tbody>\n");
	str_append_len(out, str_borrow(&page->rows), page->rows.len);
	str_append(out, "</tbody></table></div>\n");
	if (next[0] == '\0')
		return;
	str_printf(out, "<p class=\"note\"><a href=\"/?cursor=%s&amp;filter=", next);
	pageparts_url(out, filter->text != NULL ? filter->text : "");
	str_append(out, "\">Older jobs</a></p>\n");
}

/* Of its job; a report of files has none, but its folder does. */
static const char *report_name(const struct catalog_report *report)
{
	const char *slash = report->folder != NULL ? strrchr(report->folder, '/') : NULL;

	if (report->job != NULL && report->job[0] != '\0')
		return report->job;
	return slash != NULL && slash[1] != '\0' ? slash + 1 : "unnamed";
}

static void put_report_row(struct str *out, const struct catalog_report *report)
{
	char gain[32] = "";

	if (report->gain_ms > 0.0)
		(void)snprintf(gain, sizeof(gain), "%.0f ms", report->gain_ms);
	str_printf(out, "<tr><td class=\"name\"><a href=\"/reports/%s\">", report->id);
	markup_text_short(out, report_name(report), 60);
	str_append(out, "</a></td>");
	str_printf(out, "<td data-name=\"Verdict\"><span class=\"state %s\">",
		   pageparts_tone(report->verdict));
	markup_text_short(out, report->verdict, 40);
	str_append(out, "</span></td><td class=\"finds\" data-name=\"Finding\">");
	markup_text_short(out, report->title != NULL ? report->title : report->reason, 200);
	str_append(out, "</td>");
	cell(out, "n", "Gain", gain);
	str_append(out, "<td class=\"file\" data-name=\"File\"><code>");
	markup_text_short(out, report->path, 90);
	str_append(out, "</code></td></tr>\n");
}

static void put_reports(struct str *out, const struct catalog *catalog)
{
	const struct catalog_report *report;
	size_t i = 0;

	if (catalog_borrow(catalog, 0) == NULL)
		return;
	str_append(
		out,
		"<h2>Reports in folders</h2>\n<div class=\"scroll\" tabindex=\"0\" "
		"role=\"region\" aria-label=\"Reports\"><table class=\"findings reports\"><thead><tr>"
		"<th scope=\"col\">Job</th><th scope=\"col\">Verdict</th><th "
		"scope=\"col\">Finding</th><th scope=\"col\" class=\"n\">Gain</th><th "
		"scope=\"col\">File</th></tr></thead><tbody>\n");
	for (; i < REPORTS_MAX && (report = catalog_borrow(catalog, i)) != NULL; i++)
		put_report_row(out, report);
	str_append(out, "</tbody></table></div>\n");
	if (catalog_borrow(catalog, i) != NULL)
		str_printf(out, "<p class=\"note\">Older ones: /api/v1/reports?cursor=%zu</p>\n",
			   i);
}

int page_jobs(struct call *call, struct answer *ret)
{
	struct archive *archive = &call->routes->archive;
	struct jobs_page page = { .cnt = 0 };
	struct archive_filter filter;
	struct store_job_place last;
	char next[48] = "";
	bool more = false;
	int error = routes_read_filter(call, ROWS_PRESET, &filter);

	if (error < 0)
		return error;
	error = archive_list_jobs(archive, &filter, take_row, &page, &more, &last, call->err);
	if ((error < 0 && error != -ENOENT) ||
	    catalog_refresh(archive->catalog, clock_mono_ns()) < 0) {
		str_done(&page.rows);
		return error < 0 ? error : -ENOMEM;
	}
	if (more)
		archive_print_place(&last, next);
	pageparts_open(&ret->body, "Jobs");
	put_head(&ret->body, &page, error == -ENOENT ? call->err->text : NULL, archive->catalog);
	if (error == 0)
		put_jobs(&ret->body, &page, &filter, next);
	put_reports(&ret->body, archive->catalog);
	pageparts_close(&ret->body);
	str_done(&page.rows);
	return str_error(&ret->body);
}
