/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/pages/pageparts.h"

#include "model/verdict.h"
#include "report/html/markup.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#define EVIDENCE_MAX 12u
#define FINDINGS_MAX 50u
#define LINES_MAX 8
#define RANKS_SHOWN_MAX 24u

void pageparts_open(struct str *out, const char *title)
{
	pageparts_open_with(out, title, NULL);
}

void pageparts_open_with(struct str *out, const char *title, const char *script)
{
	str_append(out, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
			"<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
			"<link rel=\"icon\" href=\"/favicon.ico\">\n"
			"<link rel=\"stylesheet\" href=\"/style.css\">\n"
			"<script src=\"/page.js\" defer></script>\n");
	if (script != NULL)
		str_printf(out, "<script src=\"%s\" defer></script>\n", script);
	str_append(out, "<title>");
	markup_text_short(out, title, 120);
	str_append(
		out,
		" - PerfTracker</title></head>\n<body><a class=\"skip\" href=\"#main\">"
		"Skip to the content</a>\n<header class=\"top\"><nav aria-label=\"Pages\">"
		"<a class=\"brand\" href=\"/\">PerfTracker</a> <a href=\"/\">Jobs</a> "
		"<a href=\"/compare\">Compare</a> <a href=\"/hosts\">Hosts</a> <a href=\"/doctor\">Doctor</a> <a href=\"/api/v1/openapi.json\">API</a>"
		"</nav></header>\n<main id=\"main\" tabindex=\"-1\">\n");
}

void pageparts_close(struct str *out)
{
	str_append(
		out,
		"</main>\n<footer><p id=\"live\" role=\"status\"></p></footer>\n</body></html>\n");
}

void pageparts_card(struct str *out, const char *tone, const char *word, const char *sentence)
{
	str_printf(out, "<div class=\"verdict %s\"><p class=\"word\">", tone);
	markup_text_short(out, word, 60);
	str_append(out, "</p><h1>");
	markup_text_short(out, sentence, 600);
	str_append(out, "</h1></div>\n");
}

void pageparts_failure(struct str *out, const char *why)
{
	pageparts_open(out, "Not here");
	pageparts_card(out, "inconclusive", "Not here", why);
	str_append(out, "<p class=\"note\"><a href=\"/\">All jobs and reports</a></p>\n");
	pageparts_close(out);
}

static int verdict_of(const char *name)
{
	for (int i = 0; name != NULL && i < VERDICT_CNT; i++) {
		if (strcmp(verdict_name((enum verdict)i), name) == 0)
			return i;
	}
	return -1;
}

const char *pageparts_tone(const char *verdict)
{
	static const struct {
		const char *begin, *tone;
	} states[] = { { "failed", "failed" },	  { "ended by signal", "failed" },
		       { "blocked", "stuck" },	  { "lost", "incomplete" },
		       { "watching", "healthy" }, { "ended", "ended" } };
	int known = verdict_of(verdict);

	if (known >= 0)
		return verdict_name((enum verdict)known);
	for (size_t i = 0; verdict != NULL && i < ARRAY_SIZE(states); i++) {
		if (strncmp(verdict, states[i].begin, strlen(states[i].begin)) == 0)
			return states[i].tone;
	}
	return "open";
}

const char *pageparts_words(const char *verdict)
{
	int known = verdict_of(verdict);

	return known >= 0	 ? verdict_words((enum verdict)known)
	       : verdict != NULL ? verdict
				 : "unknown";
}

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text != NULL ? text : "";
}

/* "1.0 s of 2.0 s per iteration (24 %), estimate"; nothing when unknown. */
static void put_gain(struct str *out, const json_t *finding)
{
	double ms = json_number_value(json_object_get(finding, "gain_ms_per_iteration"));
	double pct = json_number_value(json_object_get(finding, "gain_pct"));

	if (!(ms > 0.0))
		return;
	str_append(out, "<div class=\"gain\"><dt>Gain of a repair</dt><dd>");
	str_printf(out, ms < 10.0 ? "%.1f ms" : "%.0f ms", ms);
	str_append(out, " per iteration");
	if (pct > 0.0)
		str_printf(out, "<small>%.1f %% of it</small>", pct);
	str_append(out, "</dd></div>\n");
}

static void put_advice(struct str *out, const json_t *finding)
{
	const char *advice = text_of(finding, "advice");

	if (advice[0] == '\0')
		return;
	str_append(out, "<p class=\"advice\"><b>What to do</b>");
	markup_text_short(out, advice, 1500);
	str_append(out, "</p>\n");
}

static void put_sentence(struct str *out, const json_t *report, const json_t *first)
{
	size_t cnt = json_array_size(json_object_get(report, "findings"));
	const char *reason = text_of(report, "reason");

	markup_text_short(out,
			  first != NULL	      ? text_of(first, "title")
			  : reason[0] != '\0' ? reason
					      : "nothing slow was found",
			  600);
	if (cnt > 1)
		str_printf(out, "; %zu more finding%s below", cnt - 1, plural((double)cnt - 1));
}

void pageparts_answer(struct str *out, const json_t *report, const char *name, const char *link)
{
	const json_t *first = json_array_get(json_object_get(report, "findings"), 0);
	const char *verdict = text_of(report, "verdict");

	str_printf(out, "<div class=\"verdict %s\"><p class=\"word\">", pageparts_tone(verdict));
	markup_text_short(out, pageparts_words(verdict), 60);
	str_append(out, " <bdi class=\"about-job\">");
	markup_text_short(out, name, 160);
	str_append(out, "</bdi></p><h1>");
	put_sentence(out, report, first);
	str_append(out, "</h1>\n");
	if (first != NULL) {
		str_append(out, "<dl class=\"stats\">\n");
		put_gain(out, first);
		pageparts_fact(out, "Ranks", text_of(first, "ranks"));
		pageparts_fact(out, "Hosts", text_of(first, "hosts"));
		pageparts_fact(out, "Confidence", text_of(first, "confidence"));
		str_append(out, "</dl>\n");
		put_advice(out, first);
	}
	if (link != NULL) {
		str_append(out, "<p class=\"more\"><a href=\"");
		markup_text(out, link);
		str_append(out, "\">The whole report, with pictures</a></p>\n");
	}
	str_append(out, "</div>\n");
}

int pageparts_read_report(struct call *call, json_t **ret)
{
	struct str text = { 0 };
	json_error_t wrong = { .text = "" };
	json_t *root = NULL;
	int error =
		archive_get_report(&call->routes->archive, call->part, "json", &text, call->err);

	if (error == 0)
		root = json_loadb(str_borrow(&text), text.len, 0, &wrong);
	str_done(&text);
	if (error < 0)
		return error;
	if (json_is_object(root)) {
		*ret = root;
		return 0;
	}
	json_decref(root);
	return err_set(call->err, ENOENT, "report %.60s: expected a JSON object, line %d: %s",
		       call->part, wrong.line, wrong.text);
}

static void put_nav_link(struct str *out, const char *href, const char *id, const char *end,
			 const char *words, bool here)
{
	str_printf(out, " <a href=\"%s", href);
	markup_text(out, id);
	str_printf(out, "%s\"%s>%s</a>", end, here ? " aria-current=\"page\"" : "", words);
}

/* The timeline of the ranks that the first finding names, as long as that is a short set. */
static void put_accused(struct str *out, const char *id, const json_t *report)
{
	const json_t *first = json_array_get(json_object_get(report, "findings"), 0);
	const char *ranks = text_of(first, "ranks");

	if (ranks[0] == '\0' || strlen(ranks) > RANKS_SHOWN_MAX ||
	    strcmp(text_of(first, "scope"), "all") == 0)
		return;
	str_append(out, " <a href=\"/reports/");
	pageparts_url(out, id);
	str_append(out, "/timeline?ranks=");
	pageparts_url(out, ranks);
	str_append(out, "\">Rank ");
	markup_text(out, ranks);
	str_append(out, " over time</a>");
}

void pageparts_report_nav(struct str *out, const char *id, const json_t *report, const char *here)
{
	char job[STORE_KEY_BYTES];
	uint64_t number;
	bool stored = archive_parse_id(id, job, &number) == 0;

	str_append(out, "<nav class=\"parts\" aria-label=\"Report\">");
	put_nav_link(out, stored ? "/jobs/" : "/", stored ? job : "", "",
		     stored ? "Back to the job" : "Back to all jobs", false);
	put_nav_link(out, "/reports/", id, "", "Report", strcmp(here, "report") == 0);
	if (json_array_size(json_object_get(json_object_get(report, "stacks"), "functions")) > 1)
		put_nav_link(out, "/reports/", id, "/flame", "Call stacks, with search",
			     strcmp(here, "flame") == 0);
	put_nav_link(out, "/reports/", id, "/timeline", "Timeline", strcmp(here, "timeline") == 0);
	put_accused(out, id, report);
	put_nav_link(out, "/compare?b=", id, "", "Compare", false);
	put_nav_link(out, "/api/v1/reports/", id, "", "JSON", false);
	str_append(out, "</nav>\n");
}

void pageparts_fact(struct str *out, const char *name, const char *value)
{
	if (value == NULL || value[0] == '\0')
		return;
	str_printf(out, "<div><dt>%s</dt><dd>", name);
	markup_text_short(out, value, 300);
	str_append(out, "</dd></div>\n");
}

static void put_evidence(struct str *out, const json_t *evidence)
{
	size_t cnt = json_array_size(evidence);

	if (cnt == 0)
		return;
	str_append(out, "<ul class=\"evidence\">\n");
	for (size_t i = 0; i < MIN(cnt, (size_t)EVIDENCE_MAX); i++) {
		const char *line = json_string_value(json_array_get(evidence, i));

		str_append(out, "<li>");
		markup_text_short(out, line != NULL ? line : "", 600);
		str_append(out, "</li>\n");
	}
	if (cnt > EVIDENCE_MAX)
		str_printf(out, "<li>%zu more in the report</li>\n", cnt - EVIDENCE_MAX);
	str_append(out, "</ul>\n");
}

/* To the timeline of the ranks of a finding; id: of the report. */
static void put_over_time(struct str *out, const json_t *finding, const char *id)
{
	const char *ranks = text_of(finding, "ranks");

	if (id == NULL)
		return;
	str_append(out, "<p class=\"more\"><a href=\"/reports/");
	pageparts_url(out, id);
	str_append(out, "/timeline");
	if (strcmp(text_of(finding, "scope"), "all") != 0 && ranks[0] != '\0') {
		str_append(out, "?ranks=");
		pageparts_url(out, ranks);
	}
	str_append(out, "\">These ranks over time</a></p>\n");
}

static void put_finding(struct str *out, const json_t *finding, const char *id)
{
	str_append(out, "<section class=\"finding\"><h3>");
	markup_text_short(out, text_of(finding, "title"), 400);
	str_append(out, "</h3>\n<p class=\"tags\"><span>");
	markup_text_short(out, text_of(finding, "id"), 20);
	str_append(out, "</span><span>");
	markup_text_short(out, text_of(finding, "cause"), 60);
	str_append(out, "</span></p>\n<dl class=\"stats\">\n");
	put_gain(out, finding);
	pageparts_fact(out, "Ranks", text_of(finding, "ranks"));
	pageparts_fact(out, "Hosts", text_of(finding, "hosts"));
	pageparts_fact(out, "Function", text_of(json_object_get(finding, "function"), "name"));
	pageparts_fact(out, "Confidence", text_of(finding, "confidence"));
	str_append(out, "</dl>\n");
	put_evidence(out, json_object_get(finding, "evidence"));
	put_advice(out, finding);
	put_over_time(out, finding, id);
	str_append(out, "</section>\n");
}

void pageparts_findings(struct str *out, const json_t *report, const char *id)
{
	const json_t *findings = json_object_get(report, "findings");
	size_t cnt = json_array_size(findings);

	if (cnt == 0)
		return;
	str_append(out, "<h2>Findings</h2>\n");
	for (size_t i = 0; i < MIN(cnt, (size_t)FINDINGS_MAX); i++)
		put_finding(out, json_array_get(findings, i), id);
	if (cnt > FINDINGS_MAX)
		str_printf(out, "<p class=\"note\">%zu more in the report</p>\n",
			   cnt - FINDINGS_MAX);
}

void pageparts_lines(struct str *out, const struct str *why)
{
	static const char name[] = "perftracker: ";
	const char *at = str_borrow(why);

	for (int i = 0; i < LINES_MAX && *at != '\0'; i++) {
		size_t len = strcspn(at, "\n");
		size_t skip = strncmp(at, name, strlen(name)) == 0 ? strlen(name) : 0;
		struct str line = { 0 };

		str_append_len(&line, at + skip, len - skip);
		str_append(out, "<p class=\"note\">");
		markup_text(out, markup_borrow(out, &line));
		str_append(out, "</p>\n");
		str_done(&line);
		at += len + (at[len] == '\n');
	}
}

void pageparts_url(struct str *out, const char *text)
{
	for (const char *p = text; *p != '\0'; p++) {
		if (isalnum((unsigned char)*p) || strchr("-_.~", *p) != NULL)
			str_append_char(out, *p);
		else
			str_printf(out, "%%%02X", (unsigned)(unsigned char)*p);
	}
}

/* --- pages that were made elsewhere --- */

/*
 * A report's page has its style inside, and comes from a file that anything could be: nothing in it
 * runs, loads or submits.
 */
const char pageparts_document_policy[] =
	"default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'; "
	"base-uri 'none'; form-action 'none'; sandbox";

/* The style of the links below: the page has its own, and no other one may be loaded. */
static const char nav_style[] =
	"<style>nav.parts{max-width:1120px;margin:14px auto -14px;padding:0 24px;display:flex;"
	"flex-wrap:wrap;gap:4px 20px}nav.parts a[aria-current]{font-weight:700;text-decoration:none}"
	"@media (max-width:600px){nav.parts{padding:0 14px}}@media print{nav.parts{display:none}}"
	"</style>\n";

void pageparts_document(struct str *out, const struct str *page, const struct str *nav)
{
	static const char skip_end[] = "</a>\n<header>"; /* document.c: behind the skip link */
	const char *body = strstr(str_borrow(page), skip_end);
	size_t head = body != NULL ? (size_t)(body - page->data) + strlen("</a>\n") : 0;

	str_append_len(out, str_borrow(page), head);
	if (body != NULL) {
		str_append(out, nav_style);
		str_append(out, str_borrow(nav));
	}
	str_append_len(out, str_borrow(page) + head, page->len - head);
}
