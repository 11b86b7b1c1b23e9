/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The timeline of a report: all ranks of its window on one clock, of what its folder keeps. The part that is
 * shown is in the address. Links zoom and move without a script; the script does the same by keyboard and mouse.
 */
#include "report/html/markup.h"
#include "serve/pages/pageparts.h"
#include "serve/pages/timelinepicture.h"
#include "serve/pages/webfiles.h"
#include "serve/timelineask.h"

#include <errno.h>
#include <math.h>
#include <microhttpd.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define REFRESH_S 1u
#define MANY_RANKS 16
#define MANY_COLUMNS "120"
#define LEAST_US 100.0 /* of a part */

/* What is drawn, in microseconds after the first record. */
struct view {
	struct call *call;
	const struct timelineask *asked;
	double from, to, length, window_from, window_to;
	bool has_window;
};

static double us_of(const json_t *object, const char *key)
{
	return round(json_number_value(json_object_get(object, key)) * 1e3);
}

static struct view view_of(struct call *call, const struct timelineask *asked, const json_t *bins)
{
	const json_t *window = json_object_get(bins, "window");

	return (struct view){ .call = call,
			      .asked = asked,
			      .from = us_of(bins, "from_ms"),
			      .to = us_of(bins, "to_ms"),
			      .length = us_of(bins, "length_ms"),
			      .window_from = us_of(window, "from_ms"),
			      .window_to = us_of(window, "to_ms"),
			      .has_window = json_is_object(window) };
}

/* --- links --- */

static void put_ranks_query(struct str *out, const struct timelineask *asked)
{
	if (asked->ranks == NULL)
		return;
	str_append(out, "&amp;ranks=");
	pageparts_url(out, asked->ranks);
}

/* A link to another part; plain text where it would show the same. */
static void put_move(struct str *out, const struct view *v, const char *words, double from,
		     double to)
{
	double width = MIN(MAX(to - from, LEAST_US), v->length);

	from = MIN(MAX(from, 0.0), v->length - width);
	to = from + width;
	if (fabs(from - v->from) < 1.0 && fabs(to - v->to) < 1.0) {
		str_printf(out, "<span>%s</span>\n", words);
		return;
	}
	str_append(out, "<a href=\"/reports/");
	pageparts_url(out, v->call->part);
	str_printf(out, "/timeline?from=%.0f&amp;to=%.0f", from, to);
	put_ranks_query(out, v->asked);
	str_printf(out, "\">%s</a>\n", words);
}

static void put_moves(struct str *out, const struct view *v)
{
	double width = v->to - v->from, middle = (v->from + v->to) / 2;

	str_append(out, "<nav class=\"parts moves\" aria-label=\"Part of the timeline\">");
	put_move(out, v, "Earlier", v->from - width / 2, v->to - width / 2);
	put_move(out, v, "Later", v->from + width / 2, v->to + width / 2);
	put_move(out, v, "Zoom in", middle - width / 4, middle + width / 4);
	put_move(out, v, "Zoom out", middle - width, middle + width);
	if (v->has_window)
		put_move(out, v, "The report's window", v->window_from, v->window_to);
	put_move(out, v, "All that is kept", 0.0, v->length);
	str_append(out, "</nav>\n");
}

static void put_form(struct str *out, const struct view *v)
{
	str_append(out, "<form class=\"filter\" method=\"get\"><label for=\"ranks\">Ranks</label>"
			"<input id=\"ranks\" name=\"ranks\" placeholder=\"all, or a set such as "
			"0-3,7\" value=\"");
	markup_text_short(out, v->asked->ranks, 200);
	str_printf(out,
		   "\"><input type=\"hidden\" name=\"from\" value=\"%.0f\"><input type=\"hidden\" "
		   "name=\"to\" value=\"%.0f\"><button>Show</button></form>\n",
		   v->from, v->to);
}

/* --- words --- */

static void put_moment(struct str *out, double unix_ms)
{
	time_t s = (time_t)(unix_ms / 1e3);
	struct tm tm = { 0 };
	char text[32];

	(void)gmtime_r(&s, &tm);
	(void)strftime(text, sizeof(text), "%H:%M:%S", &tm);
	str_printf(out, "%s.%03d", text, (int)fmod(unix_ms, 1e3));
}

static void put_when(struct str *out, const struct view *v, const json_t *bins)
{
	double begin = json_number_value(json_object_get(bins, "begin_unix_ms"));

	str_append(out, "<p class=\"note\">");
	put_moment(out, begin + v->from / 1e3);
	str_append(out, " to ");
	put_moment(out, begin + v->to / 1e3);
	str_printf(out,
		   " UTC, %.6g ms of %.1f s that are kept. Clocks of the ranks are aligned by ",
		   (v->to - v->from) / 1e3, v->length / 1e6);
	str_append(out, "collectives where they have some in common.</p>\n");
}

static void put_count(struct str *out, const json_t *bins, const char *key, const char *words)
{
	long long cnt = json_integer_value(json_object_get(bins, key));

	if (cnt > 0)
		str_printf(out, "<p class=\"note\">%lld %s</p>\n", cnt, words);
}

static void put_left_out(struct str *out, const json_t *bins)
{
	put_count(
		out, bins, "ranks_hidden",
		"more ranks are not shown: name some above. Those that a finding names come first, "
		"the others evenly.");
	put_count(out, bins, "ranks_silent", "ranks recorded nothing in this part.");
	put_count(out, bins, "rows_left_out", "rows are left out.");
	put_count(out, bins, "names_left_out", "executions have names beyond the limit.");
}

static void put_how(struct str *out)
{
	str_append(
		out,
		"<p class=\"note\">A run keeps what its profiles recorded with <code>perftracker run "
		"--keep-traces</code>, in OUT/traces; what each rank recorded last is in OUT/flight "
		"when it has ended. <code>perftracker timeline OUT</code> draws either, also "
		"elsewhere.</p>\n");
}

/* The file, and what opens it. The button works with the script only, and nothing is asked before it is clicked. */
static void put_file(struct str *out, const struct view *v)
{
	str_append(out, "<h2>In Perfetto</h2>\n<p><a href=\"/reports/");
	pageparts_url(out, v->call->part);
	str_append(out,
		   "/timeline/trace\" download>Download the whole timeline</a> <button "
		   "id=\"perfetto\" type=\"button\" hidden>Open in Perfetto</button> <output "
		   "id=\"handing\"></output></p>\n"
		   "<p class=\"note\">The file opens in https://ui.perfetto.dev, and without a "
		   "network in the Performance panel of Chrome's developer tools. The button opens "
		   "that site in a new window and gives the file to it inside the browser: it is "
		   "sent nowhere.</p>\n");
}

/* --- the page --- */

static int load_bins(struct call *call, const struct str *text, json_t **ret)
{
	json_error_t wrong;
	json_t *root = json_loadb(str_borrow(text), text->len, 0, &wrong);

	if (json_is_object(root)) {
		*ret = root;
		return 0;
	}
	json_decref(root);
	return err_set(call->err, EIO, "the timeline: expected a JSON object, line %d: %s",
		       wrong.line, wrong.text);
}

/* Whether what is kept is of another time than the report. */
static bool is_elsewhere(const json_t *report, const struct view *v)
{
	return !v->has_window && v->asked->to_us == 0 &&
	       json_is_string(json_object_get(json_object_get(report, "origin"), "window_begin"));
}

static void put_elsewhere(struct str *out, const struct view *v)
{
	str_append(out, "<h2>Nothing of this report's window is kept</h2>\n<p class=\"note\">The "
			"folder of the run has records of another time only. <a href=\"/reports/");
	pageparts_url(out, v->call->part);
	str_printf(out, "/timeline?from=%.0f&amp;to=%.0f\">Show the last of them</a></p>\n",
		   MAX(v->length - 1e7, 0.0), v->length);
	put_how(out);
}

static void put_timeline(struct str *out, const struct view *v, const json_t *bins)
{
	str_printf(out,
		   "<section class=\"window\" id=\"view\" data-from=\"%.0f\" data-to=\"%.0f\" "
		   "data-length=\"%.0f\" data-least=\"%.0f\" data-home=\"%.0f %.0f\">\n",
		   v->from, v->to, v->length, LEAST_US, v->has_window ? v->window_from : 0.0,
		   v->has_window ? v->window_to : v->length);
	put_moves(out, v);
	put_form(out, v);
	put_when(out, v, bins);
	str_append(out,
		   "<p class=\"note keys\" hidden>Keys: W and S zoom, A and D move, Home shows the "
		   "window, 0 all. Drag over a part to zoom into it; Ctrl and the wheel zoom, too. "
		   "<output id=\"drawing\"></output></p>\n"
		   "<div class=\"scroll picture\" tabindex=\"0\" role=\"region\" "
		   "aria-label=\"Timeline\">");
	timelinepicture_draw(out, bins);
	str_append(out, "</div>\n");
	if (json_array_size(json_object_get(bins, "ranks")) == 0)
		str_append(out, "<p class=\"note\">Nothing was recorded in this part.</p>\n");
	put_left_out(out, bins);
	timelinepicture_tables(out, bins);
	str_append(out, "</section>\n");
}

static int put_state(const struct timelineask *asked, struct call *call, const json_t *report,
		     int state, struct str *texts[2], struct answer *ret)
{
	struct str *out = &ret->body;
	json_t *bins = NULL;
	struct view v;
	int error;

	if (state == CHILDTEXT_WAITS) {
		str_append(out, "<h2>The timeline is being drawn</h2>\n<p class=\"note\">This page "
				"asks again each second.</p>\n");
		ret->status = MHD_HTTP_ACCEPTED;
		ret->refresh_s = REFRESH_S;
		return 0;
	}
	if (state == CHILDTEXT_FAILED) {
		str_append(out, "<h2>This report keeps no traces</h2>\n");
		pageparts_lines(out, texts[1]);
		put_how(out);
		ret->status = MHD_HTTP_UNPROCESSABLE_CONTENT;
		return 0;
	}
	error = load_bins(call, texts[0], &bins);
	if (error < 0)
		return error;
	v = view_of(call, asked, bins);
	if (is_elsewhere(report, &v)) {
		put_elsewhere(out, &v);
	} else {
		put_timeline(out, &v, bins);
		pageparts_lines(out, texts[1]);
		put_file(out, &v);
	}
	json_decref(bins);
	return 0;
}

static int put_page(struct call *call, const struct timelineask *asked, const json_t *report,
		    struct answer *ret)
{
	const json_t *job = json_object_get(report, "job");
	bool many = json_integer_value(json_object_get(job, "world_size")) > MANY_RANKS;
	struct str bins = { 0 }, why = { 0 };
	int state = timelineask_part(
		call, asked, many && asked->ranks == NULL ? MANY_COLUMNS : TIMELINE_COLUMNS_PRESET,
		&bins, &why);

	if (state == -ENODATA) {
		str_printf(&why, "%s", call->err->text);
		state = CHILDTEXT_FAILED;
	}
	if (state >= 0) {
		pageparts_open_with(&ret->body, "Timeline", "/timeline.js");
		pageparts_report_nav(&ret->body, call->part, report, "timeline");
		pageparts_answer(&ret->body, report, json_string_value(json_object_get(job, "id")),
				 NULL);
		state = put_state(asked, call, report, state, (struct str *[2]){ &bins, &why },
				  ret);
		pageparts_close(&ret->body);
		ret->opens_windows = true;
	}
	str_done(&bins);
	str_done(&why);
	return state < 0 ? state : str_error(&ret->body);
}

int page_timeline(struct call *call, struct answer *ret)
{
	struct timelineask asked;
	json_t *report = NULL;
	int error = timelineask_read(call, &asked);

	if (error == 0)
		error = pageparts_read_report(call, &report);
	if (error == 0)
		error = put_page(call, &asked, report, ret);
	json_decref(report);
	return error;
}

int file_timeline(struct call *call _unused_, struct answer *ret)
{
	str_append(&ret->body, webfiles_timeline_js);
	return str_error(&ret->body);
}
