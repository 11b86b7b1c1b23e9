/* SPDX-License-Identifier: Apache-2.0 */
/* The page of one job: its latest answer, its pace, findings, reports and events. */
#include "base/clock.h"
#include "model/report.h"
#include "report/html/chart.h"
#include "report/html/markup.h"
#include "serve/historyjson.h"
#include "serve/jobwords.h"
#include "serve/pages/livepart.h"
#include "serve/pages/pacemarks.h"
#include "serve/pages/pageparts.h"
#include "serve/pages/trafficpart.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define PACE_POINTS_MAX 720u
#define EVENTS_MAX 200u
#define REPORT_BYTES_MAX ((size_t)32 << 20)

struct job_page {
	struct call *call;
	const char *key;
	struct str facts, reports, events, name, state, folder;
	bool ended;
	VEC(struct report_pace_point) points;
	VEC(struct pacemarks_point) times;
	struct pacemarks marks;
	double best_ms;
	char latest_made[32];
	uint64_t latest, report_cnt, event_cnt;
};

static int take_job(void *arg, const struct store_job *job)
{
	struct job_page *page = arg;
	struct str *out = &page->facts;
	char text[96], started[32], span[16];

	jobwords_state(job, text);
	str_append(&page->name, job->name[0] != '\0' ? job->name : job->key);
	str_append(&page->state, text);
	page->best_ms = (double)job->best_ns / NSEC_PER_MSEC;
	str_append(&page->folder, job->folder);
	page->ended = job->ended_ns != 0;
	pageparts_fact(out, "State", text);
	(void)snprintf(text, sizeof(text), "%.1f ms, at best %.1f ms",
		       (double)job->now_ns / NSEC_PER_MSEC, page->best_ms);
	pageparts_fact(out, "Iteration", text);
	(void)snprintf(text, sizeof(text), "%" PRIu64, job->step);
	pageparts_fact(out, "Step", text);
	(void)snprintf(text, sizeof(text), "%" PRIu32 "%s", job->workers,
		       job->restarts > 0 ? ", restarted" : "");
	pageparts_fact(out, "Ranks", text);
	jobwords_time(job->started_ns, started);
	jobwords_span(jobwords_until_ns(job) - job->started_ns, span);
	(void)snprintf(text, sizeof(text), "%s UTC, ran for %s", started, span);
	pageparts_fact(out, "Started", text);
	pageparts_fact(out, "Host", job->host);
	pageparts_fact(out, "Owner", job->owner);
	pageparts_fact(out, "Key", job->key);
	pageparts_fact(out, "Folder", job->folder);
	pageparts_fact(out, "Command", job->command);
	if (job->lost > 0) {
		(void)snprintf(text, sizeof(text), "%" PRIu64 " records could not be kept",
			       job->lost);
		pageparts_fact(out, "Gaps", text);
	}
	return str_error(out);
}

static int take_report(void *arg, const struct store_report *report, size_t finding_cnt)
{
	struct job_page *page = arg;
	struct str *out = &page->reports;
	char made[32], id[ARCHIVE_ID_BYTES];

	page->latest = report->number;
	pacemarks_note_report(&page->marks, report, finding_cnt);
	jobwords_time(report->made_ns, page->latest_made);
	page->report_cnt++;
	archive_print_id(report->job, report->number, id);
	jobwords_time(report->made_ns, made);
	str_printf(out,
		   "<tr><td class=\"t\"><a href=\"/reports/%s\">%s</a></td><td data-name=\"Why\">",
		   id, made);
	markup_text_short(out, report->why, 40);
	str_printf(out, "</td><td data-name=\"Verdict\"><span class=\"state %s\">",
		   pageparts_tone(report->verdict));
	markup_text_short(out, report->verdict, 40);
	str_append(out, "</span></td><td data-name=\"Reason\">");
	markup_text_short(out, report->reason, 240);
	str_printf(out, "</td><td class=\"n\" data-name=\"Findings\">%zu</td></tr>\n", finding_cnt);
	return str_error(out);
}

static int take_event(void *arg, const struct store_event *event)
{
	struct job_page *page = arg;
	char at[32];

	pacemarks_note_event(&page->marks, event);
	if (page->event_cnt++ >= EVENTS_MAX)
		return 0;
	jobwords_time(event->at_ns, at);
	str_printf(&page->events, "<tr><td class=\"t\">%s</td><td data-name=\"Kind\">", at);
	markup_text_short(&page->events, event->kind, 40);
	str_append(&page->events, "</td><td data-name=\"What\">");
	markup_text_short(&page->events, event->text, 400);
	str_append(&page->events, "</td></tr>\n");
	return str_error(&page->events);
}

static int take_pace(void *arg, const struct store_pace *pace)
{
	struct job_page *page = arg;

	if (pace->cnt == 0)
		return 0;
	if (vec_push(&page->times,
		     (struct pacemarks_point){ .at_s = pace->at_s, .step = pace->step }) < 0)
		return -ENOMEM;
	return vec_push(&page->points,
			(struct report_pace_point){
				.step = pace->step,
				.min_ms = (double)pace->min_ns / NSEC_PER_MSEC,
				.mean_ms = (double)pace->sum_ns / (double)pace->cnt / NSEC_PER_MSEC,
				.max_ms = (double)pace->max_ns / NSEC_PER_MSEC });
}

static int read_pace(struct job_page *page, struct store *store)
{
	int64_t slowest_ns;
	size_t cnt;
	int tier_s, ret = historyjson_choose_tier(store, page->key, PACE_POINTS_MAX, &tier_s,
						  &slowest_ns, &cnt, page->call->err);

	if (ret == 0 && cnt > 0)
		ret = store_list_pace(store, page->key, tier_s, take_pace, page, page->call->err);
	return ret;
}

static int read_job(struct job_page *page)
{
	struct store *store = page->call->routes->archive.store;
	struct err *err = page->call->err;
	int ret = store_get_job(store, page->key, take_job, page, err);

	if (ret == 0)
		ret = store_list_reports(store, page->key, take_report, page, err);
	if (ret == 0)
		ret = store_list_events(store, page->key, take_event, page, err);
	return ret == 0 ? read_pace(page, store) : ret;
}

/* The latest report; NULL when it is not kept any more or is too large for a page. */
static json_t *read_report(struct job_page *page, const char *id)
{
	struct str text = { 0 };
	struct err ignored;
	json_error_t wrong;
	json_t *ret = NULL;

	if (archive_get_report(&page->call->routes->archive, id, "json", &text, &ignored) == 0 &&
	    text.len <= REPORT_BYTES_MAX)
		ret = json_loadb(str_borrow(&text), text.len, 0, &wrong);
	str_done(&text);
	return ret;
}

static void put_answer(struct job_page *page, struct str *out, const json_t *report, const char *id)
{
	char link[64];
	struct str about = { 0 };

	/* The answer is of that time; what the job does now is in its state. */
	(void)snprintf(link, sizeof(link), "/reports/%s", id);
	str_printf(&about, "%s, report of %s UTC; now: %s", str_borrow(&page->name),
		   page->latest_made, str_borrow(&page->state));
	if (report != NULL)
		pageparts_answer(out, report, str_borrow(&about), link);
	else

		pageparts_card(out, pageparts_tone(str_borrow(&page->state)),
			       str_borrow(&page->state), str_borrow(&page->name));
	str_done(&about);
}

/* A copy of the points as the picture of a report takes them. */
static void put_pace(struct job_page *page, struct str *out, const json_t *live)
{
	struct report *report;

	if (page->points.cnt < 2)
		return;
	report = calloc(1, sizeof(*report));
	if (report == NULL)
		return;
	report->pace = (struct report_pace){ .points = page->points.data,
					     .point_cnt = page->points.cnt,
					     .best_ms = page->best_ms,
					     .baseline_ms = json_number_value(
						     json_object_get(live, "baseline_ms")),
					     .marks = page->marks.placed };
	report->pace.mark_cnt = pacemarks_place(&page->marks, page->times.data, page->times.cnt);
	str_append(out, "<section class=\"window\">");
	chart_pace(report, out);
	str_append(out, "</section>\n");
	free(report);
}

static void put_table(struct str *out, const char *title, const char *columns,
		      const struct str *rows)
{
	if (rows->len == 0)
		return;
	str_printf(
		out,
		"<h2>%s</h2>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" "
		"aria-label=\"%s\"><table class=\"findings\"><thead><tr>%s</tr></thead><tbody>\n",
		title, title, columns);
	str_append_len(out, str_borrow(rows), rows->len);
	str_append(out, "</tbody></table></div>\n");
}

static void put_page(struct job_page *page, struct str *out)
{
	char id[ARCHIVE_ID_BYTES];
	json_t *report = NULL, *live = NULL;

	archive_print_id(page->key, page->latest, id);
	if (page->report_cnt > 0)
		report = read_report(page, id);
	pageparts_open(out, str_borrow(&page->name));
	put_answer(page, out, report, id);
	str_printf(out, "<dl class=\"facts\" data-job=\"%s\">\n", page->key);
	str_append(out, str_borrow(&page->facts));
	str_append(out, "</dl>\n");
	if (!page->ended)
		live = livepart_read(page->call, page->key, str_borrow(&page->folder));
	if (live != NULL)
		livepart_put_now(out, live, page->key);
	put_pace(page, out, live);
	if (live != NULL)
		livepart_put_ranks(out, live, page->key);
	trafficpart_put(out, report, id);
	pageparts_findings(out, report, report != NULL ? id : NULL);
	put_table(out, "Reports",
		  "<th scope=\"col\">Made (UTC)</th><th scope=\"col\">Why</th><th "
		  "scope=\"col\">Verdict</th><th scope=\"col\">Reason</th><th scope=\"col\" "
		  "class=\"n\">Findings</th>",
		  &page->reports);
	put_table(out, "What happened",
		  "<th scope=\"col\">At (UTC)</th><th scope=\"col\">Kind</th><th "
		  "scope=\"col\">What</th>",
		  &page->events);
	if (page->event_cnt > EVENTS_MAX)
		str_printf(out, "<p class=\"note\">%" PRIu64 " more: /api/v1/jobs/%s/history</p>\n",
			   page->event_cnt - EVENTS_MAX, page->key);
	pageparts_close(out);
	json_decref(report);
	json_decref(live);
}

int page_job(struct call *call, struct answer *ret)
{
	char key[STORE_KEY_BYTES];
	struct job_page page = { .call = call, .key = key };
	int error = routes_find_job(call, key);

	if (error < 0)
		return error;
	error = read_job(&page);
	if (error == 0)
		put_page(&page, &ret->body);
	else if (error != -ENOENT)
		archive_drop_store(&call->routes->archive);
	str_done(&page.facts);
	str_done(&page.reports);
	str_done(&page.events);
	str_done(&page.name);
	str_done(&page.state);
	str_done(&page.folder);
	vec_done(&page.points);
	vec_done(&page.times);
	return error < 0 ? error : str_error(&ret->body);
}
