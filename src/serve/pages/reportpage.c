/* SPDX-License-Identifier: Apache-2.0 */
/* The page of a report, as it was made; one without a page is shown from its JSON. Also hosts. */
#include "report/flame/flamescript.h"
#include "report/html/markup.h"
#include "report/html/style.h"
#include "serve/hostledger.h"
#include "serve/pages/pageparts.h"
#include "serve/pages/webfiles.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void put_document(struct call *call, struct str *out, const struct str *page)
{
	struct err ignored = { "" };
	struct err *err = call->err;
	json_t *report = NULL;
	struct str nav = { 0 };

	call->err = &ignored; /* the page is complete without it */
	if (pageparts_read_report(call, &report) < 0)
		report = NULL;
	call->err = err;
	pageparts_report_nav(&nav, call->part, report, "report");
	json_decref(report);
	pageparts_document(out, page, &nav);
	str_done(&nav);
}

static int from_json(struct call *call, struct answer *ret)
{
	json_t *report = NULL;
	int error = pageparts_read_report(call, &report);

	if (error < 0)
		return error;
	pageparts_open(&ret->body, "Report");
	pageparts_report_nav(&ret->body, call->part, report, "report");
	pageparts_answer(&ret->body, report,
			 json_string_value(json_object_get(json_object_get(report, "job"), "id")),
			 NULL);
	pageparts_findings(&ret->body, report, call->part);
	pageparts_close(&ret->body);
	json_decref(report);
	return str_error(&ret->body);
}

int page_report(struct call *call, struct answer *ret)
{
	struct str page = { 0 };
	int error =
		archive_get_report(&call->routes->archive, call->part, "html", &page, call->err);

	if (error == 0) {
		put_document(call, &ret->body, &page);
		ret->policy = pageparts_document_policy;
	}
	str_done(&page);
	if (error == -ENOENT)
		return from_json(call, ret);
	return error < 0 ? error : str_error(&ret->body);
}

/* --- hosts --- */

static void put_host(struct str *out, const struct hostledger_host *host)
{
	str_append(out, "<tr><td class=\"name\">");
	markup_text_short(out, host->name, 80);
	str_printf(out,
		   "</td><td class=\"n\" data-name=\"Jobs\">%zu</td><td class=\"n\" "
		   "data-name=\"Of the machine\">%zu</td><td class=\"n\" "
		   "data-name=\"Findings\">%zu</td><td><ul class=\"evidence\">\n",
		   host->job_cnt, host->machine_jobs.cnt, host->finding_cnt);
	vec_foreach(accusation, &host->accusations) {
		str_append(out, "<li><a href=\"/reports/");
		markup_text(out, accusation->report);
		str_append(out, "\">");
		markup_text_short(out, accusation->title, 160);
		str_append(out, "</a>, ");
		markup_text_short(out, accusation->job, 60);
		str_append(out, accusation->made[0] != '\0' ? ", " : "");
		markup_text_short(out, accusation->made, 40);
		str_append(out, "</li>\n");
	}
	if (host->finding_cnt > host->accusations.cnt)
		str_printf(out, "<li>%zu earlier</li>\n",
			   host->finding_cnt - host->accusations.cnt);
	str_append(out, "</ul></td></tr>\n");
}

static void put_hosts(struct str *out, const struct hostledger *ledger)
{
	struct str sentence = { 0 };
	const struct hostledger_host *first = ledger->hosts.cnt > 0 ? ledger->hosts.data : NULL;

	if (first == NULL)
		str_append(&sentence, "no report accuses a host");
	else
		str_printf(&sentence, "host %s was accused in %zu job%s%s", first->name,
			   first->job_cnt, plural((double)first->job_cnt),
			   first->machine_jobs.cnt > 1 ? ": look at its hardware" : "");
	pageparts_card(out, first != NULL && first->job_cnt > 1 ? "abnormal" : "open", "Hosts",
		       str_borrow(&sentence));
	str_done(&sentence);
	if (first == NULL)
		return;
	str_append(
		out,
		"<h2>Accused hosts</h2>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" "
		"aria-label=\"Hosts\"><table class=\"findings\"><thead><tr><th "
		"scope=\"col\">Host</th><th scope=\"col\" class=\"n\">Jobs</th><th scope=\"col\" "
		"class=\"n\">Of the machine</th><th scope=\"col\" class=\"n\">Findings</th><th scope=\"col\">The latest</th></tr></thead><tbody>\n");
	vec_foreach(host, &ledger->hosts)
		put_host(out, host);
	str_append(out, "</tbody></table></div>\n");
}

int page_hosts(struct call *call, struct answer *ret)
{
	struct hostledger ledger = { 0 };
	int error = hostledger_read(&call->routes->archive, &ledger, call->err);

	if (error == 0) {
		pageparts_open(&ret->body, "Hosts");
		put_hosts(&ret->body, &ledger);
		pageparts_close(&ret->body);
	}
	hostledger_done(&ledger);
	return error < 0 ? error : str_error(&ret->body);
}

/* --- files --- */

int file_style(struct call *call _unused_, struct answer *ret)
{
	str_append(&ret->body, report_style);
	str_append(&ret->body, webfiles_page_css);
	str_append(&ret->body, flamescript_style);
	return str_error(&ret->body);
}

/* Browsers ask for it by themselves. */
int file_icon(struct call *call _unused_, struct answer *ret)
{
	str_append(&ret->body, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 16 16\">"
			       "<path fill=\"#2f6fc4\" d=\"M1 9h3v6H1zM6 5h3v10H6z\"/>"
			       "<path fill=\"#c22f2a\" d=\"M11 1h3v14h-3z\"/></svg>\n");
	return str_error(&ret->body);
}

int file_script(struct call *call _unused_, struct answer *ret)
{
	str_append(&ret->body, webfiles_page_js);
	return str_error(&ret->body);
}
