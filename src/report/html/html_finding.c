/* SPDX-License-Identifier: Apache-2.0 */
#include "report/html/html_finding.h"

#include "base/text/clean.h"
#include "report/finding_fields.h"
#include "report/html/chart.h"
#include "report/html/evidencelinks.h"
#include "report/html/markup.h"
#include "report/html/meaning.h"
#include "report/phrase.h"
#include "report/seecommand.h"

#include <math.h>

#define PICTURES_MAX 8 /* findings with a picture */
#define NAME_CELLS 400
#define CELL_CELLS 40 /* of a set of ranks in the table */
#define HOSTS_MAX 16

static void table_row(struct str *out, size_t i, const struct finding *finding, bool utilization)
{
	const struct finding_field *column = finding_fields_column(NULL, utilization);

	str_printf(out,
		   "<tr><td class=\"n\">%zu</td><td class=\"name\"><a href=\"#finding-%zu\"><bdi>",
		   i + 1, i + 1);
	markup_text_short(out, finding->name, 160);
	str_append(out, "</bdi></a></td>");
	for (; column != NULL; column = finding_fields_column(column, utilization)) {
		struct str phrase = { 0 };

		column->phrase(&phrase, finding, CELL_CELLS);
		str_printf(out, "<td%s data-name=\"%s\">", column->is_number ? " class=\"n\"" : "",
			   column->title);
		markup_take(out, &phrase);
		str_append(out, "</td>");
	}
	str_append(out, "</tr>\n");
}

static void table(struct str *out, const struct report *report)
{
	bool utilization = phrase_any_utilization(report);
	const struct finding_field *column = finding_fields_column(NULL, utilization);

	str_append(out, "<div class=\"scroll\" tabindex=\"0\" role=\"region\" "
			"aria-label=\"Table of findings\"><table class=\"findings\"><thead><tr>"
			"<th scope=\"col\" class=\"n\">#</th><th scope=\"col\">Function</th>");
	for (; column != NULL; column = finding_fields_column(column, utilization))
		str_printf(out, "<th scope=\"col\"%s>%s</th>",
			   column->is_number ? " class=\"n\"" : "", column->title);
	str_append(out, "</tr></thead><tbody>\n");
	for (size_t i = 0; i < report->finding_cnt; i++)
		table_row(out, i, &report->findings[i], utilization);
	str_append(out, "</tbody></table></div>\n");
}

/* A number in large print; beside is small and may be empty. Both are freed. */
static void stat(struct str *out, const char *class, const char *name, struct str *value,
		 struct str *beside)
{
	str_printf(out, "<div class=\"%s\"><dt>%s</dt><dd>", class, name);
	markup_take(out, value);
	if (beside->len > 0) {
		str_append(out, "<small>");
		markup_take(out, beside);
		str_append(out, "</small>");
	}
	str_done(beside);
	str_append(out, "</dd></div>\n");
}

static void value_stat(struct str *out, const char *name, const struct finding_value *value,
		       const char *resource)
{
	struct str shown = { 0 }, beside = { 0 };

	if (!value->present || !isfinite(value->value))
		return;
	phrase_pct(&shown, value->value * 100.0);
	if (resource != NULL && resource[0] != '\0') {
		str_append(&shown, " ");
		phrase_resource(&shown, resource);
	}
	if (isfinite(value->reference)) {
		str_printf(&beside, "%s ", reference_name(value->reference_kind));
		phrase_pct(&beside, value->reference * 100.0);
	}
	stat(out, "value", name, &shown, &beside);
}

static void gain_stat(struct str *out, const struct finding *finding)
{
	struct str gain = { 0 }, pct = { 0 };

	if (!isfinite(finding->gain_ms_per_iteration) || finding->gain_ms_per_iteration <= 0.0)
		return;
	str_append(&gain, finding->gain_at_most ? "at most " : "");
	phrase_ms(&gain, finding->gain_ms_per_iteration);
	if (isfinite(finding->gain_pct)) {
		phrase_pct(&pct, finding->gain_pct);
		str_append(&pct, " of the iteration");
	}
	stat(out, "gain", "Recoverable per iteration", &gain, &pct);
}

static void time_stat(struct str *out, const struct finding *finding)
{
	struct str time = { 0 }, delta = { 0 };
	double ms = finding->delta_ms_per_iteration;

	if (!isfinite(finding->time_ms_per_iteration))
		return;
	phrase_ms(&time, finding->time_ms_per_iteration);
	if (isfinite(ms) && fabs(ms) >= 0.0005) {
		phrase_ms(&delta, fabs(ms));
		str_append(&delta, ms > 0.0 ? " more than " : " less than ");
		str_append(&delta, finding->all_workers ? "expected" : "the peers");
	}
	stat(out, "value", "Per iteration", &time, &delta);
}

static void stats(struct str *out, const struct finding *finding)
{
	str_append(out, "<dl class=\"stats\">\n");
	gain_stat(out, finding);
	time_stat(out, finding);
	value_stat(out, "Share of the window", &finding->beta, NULL);
	value_stat(out, "Utilization", &finding->mu, finding->resource);
	value_stat(out, "Deviation of utilization", &finding->sigma, NULL);
	str_append(out, "</dl>\n");
}

static void about_where(struct str *out, const struct finding *finding)
{
	struct str subject = { 0 };
	size_t shown = MIN(finding->host_cnt, (size_t)HOSTS_MAX);

	str_append(out, "<dt>Where</dt><dd>");
	phrase_subject(&subject, finding);
	markup_take(out, &subject);
	for (size_t i = 0; i < shown; i++) {
		str_append(out, i == 0 ? " on <bdi>" : ", <bdi>");
		markup_text_short(out, finding->hosts[i], 64);
		str_append(out, "</bdi>");
	}
	if (shown < finding->host_cnt)
		str_printf(out, " and %zu more hosts", finding->host_cnt - shown);
	str_append(out, "</dd>\n");
}

static void about_victims(struct str *out, const struct finding *finding)
{
	struct str ranks = { 0 };

	if (finding->victim_cnt == 0)
		return;
	str_append(out, "<dt>Who waited</dt><dd>");
	str_append(out, finding->victim_cnt > 1 ? "ranks " : "rank ");
	phrase_rank_list(&ranks, finding->victims, finding->victim_cnt, 240);
	markup_take(out, &ranks);
	str_append(out, " (not slow themselves)</dd>\n");
}

static void about_stack(struct str *out, const struct finding *finding)
{
	size_t cnt = phrase_caller_cnt(finding);

	if (cnt == 0)
		return;
	str_append(out, "<dt>Called by</dt><dd><code>");
	for (size_t i = 0; i < cnt; i++) {
		str_append(out, i > 0 ? " \xe2\x80\xba <bdi>" : "<bdi>");
		markup_text_short(out, finding->stack[i], 200);
		str_append(out, "</bdi>");
	}
	str_append(out, "</code></dd>\n");
}

static void about(struct str *out, const struct report *report, const struct finding *finding)
{
	str_append(out, "<dl class=\"about\"><dt>Function</dt><dd><code>");
	markup_text_short(out, finding->name, NAME_CELLS);
	str_append(out, "</code></dd>\n");
	about_stack(out, finding);
	about_where(out, finding);
	about_victims(out, finding);
	if (finding->evidence_cnt > 0)
		str_append(out, "<dt>Evidence</dt><dd><ul class=\"evidence\">");
	for (size_t i = 0; i < finding->evidence_cnt; i++) {
		str_append(out, "<li><bdi>");
		evidencelinks_line(out, report, finding, finding->evidence[i]);
		str_append(out, "</bdi></li>");
	}
	if (finding->evidence_cnt > 0)
		str_append(out, "</ul></dd>\n");
	evidencelinks_places(out, report, finding);
	str_append(out, "</dl>\n");
}

static void commands(struct str *out, const struct report *report, const struct finding *finding)
{
	struct str command = { 0 };

	phrase_see_command(&command, report, finding);
	if (command.len > 0) {
		str_append(out, "<p class=\"commands\">See it on a timeline:<code>");
		markup_take(out, &command);
		str_append(out, "</code></p>\n");
	}
	str_done(&command);
}

static void card(struct str *out, size_t i, const struct report *report)
{
	const struct finding *finding = &report->findings[i];

	str_printf(out, "<article class=\"finding\" id=\"finding-%zu\"><h3>%zu. ", i + 1, i + 1);
	markup_text_short(out, finding->title, 200);
	str_append(out, "</h3>\n<p class=\"tags\"><span>");
	markup_text_short(out, finding->id, 32);
	str_append(out, "</span><span>");
	markup_text_short(out, finding->cause, 64);
	str_printf(out, "</span><span>%s</span><span>confidence %s</span></p>\n",
		   event_class_name(finding->class), confidence_name(finding->confidence));
	if (meaning_of(finding->id) != NULL)
		str_printf(out, "<p class=\"meaning\">%s: %s.</p>\n", finding->id,
			   meaning_of(finding->id));
	stats(out, finding);
	about(out, report, finding);
	if (finding->advice != NULL && finding->advice[0] != '\0') {
		str_append(out, "<p class=\"advice\"><b>What to do</b>");
		markup_text_short(out, finding->advice, 1000);
		str_append(out, "</p>\n");
	}
	commands(out, report, finding);
	if (i < PICTURES_MAX)
		chart_finding(finding, i, out);
	str_append(out, "</article>\n");
}

void html_findings(const struct report *report, struct str *out)
{
	if (report->finding_cnt == 0)
		return;
	str_append(out, "<section><h2>Findings</h2>\n");
	table(out, report);
	str_append(out, "</section>\n<section><h2>Details</h2>\n");
	for (size_t i = 0; i < report->finding_cnt; i++)
		card(out, i, report);
	if (report->finding_cnt > PICTURES_MAX)
		str_printf(out, "<p class=\"note\">Pictures of the first %d findings.</p>\n",
			   PICTURES_MAX);
	str_append(out, "</section>\n");
}
