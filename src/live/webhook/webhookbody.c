/* SPDX-License-Identifier: Apache-2.0 */
#include "live/webhook/webhookbody.h"

#include "base/clock.h"
#include "report/phrase.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

static void print_time(int64_t at_ns, char ret[static 32])
{
	time_t at_s = at_ns / NSEC_PER_SEC;
	struct tm tm;

	(void)gmtime_r(&at_s, &tm);
	ret[strftime(ret, 32, "%Y-%m-%dT%H:%M:%SZ", &tm)] = '\0';
}

static void print_name(const struct webhookbody_about *about, char ret[static 64])
{
	if (about->number == 0)
		(void)snprintf(ret, 64, "%.16s/end", about->key);
	else
		(void)snprintf(ret, 64, "%.16s/%" PRIu64, about->key, about->number);
}

static void put_sentence(struct json_writer *w, json_t *to, const char *key,
			 const struct report *report)
{
	struct str text = { 0 };

	phrase_verdict(&text, report);
	jsonwriter_put_text(w, to, key, str_borrow(&text));
	str_done(&text);
}

static json_t *findings_of(struct json_writer *w, const struct report *report)
{
	json_t *ret = json_array();

	for (size_t i = 0; i < MIN(report->finding_cnt, (size_t)WEBHOOKBODY_FINDINGS_MAX); i++) {
		const struct finding *finding = &report->findings[i];
		json_t *object = json_object();

		jsonwriter_put_text(w, object, "id", finding->id);
		jsonwriter_put_text(w, object, "cause", finding->cause);
		jsonwriter_put_text(w, object, "title", finding->title);
		jsonwriter_put_text(w, object, "confidence", confidence_name(finding->confidence));
		jsonwriter_put(w, object, "gain_ms_per_iteration",
			       jsonwriter_number(finding->gain_ms_per_iteration));
		jsonwriter_push(w, ret, object);
	}
	return ret;
}

static json_t *own_form(struct json_writer *w, const struct report *report,
			const struct webhookbody_about *about)
{
	json_t *root = json_object();
	char text[64];

	jsonwriter_put_text(w, root, "schema", "perftracker.webhook.v1");
	jsonwriter_put_text(w, root, "job", about->job);
	jsonwriter_put_text(w, root, "key", about->key);
	jsonwriter_put_text(w, root, "host", about->host);
	print_name(about, text);
	jsonwriter_put_text(w, root, "report", text);
	print_time(about->made_ns, text);
	jsonwriter_put_text(w, root, "made", text);
	jsonwriter_put_text(w, root, "verdict", verdict_name(report->verdict));
	put_sentence(w, root, "sentence", report);
	jsonwriter_put(w, root, "iteration_ms", jsonwriter_number(report->iteration_ms));
	jsonwriter_put(w, root, "workers", json_integer(report->workers_analyzed));
	jsonwriter_put(w, root, "findings", findings_of(w, report));
	jsonwriter_put_text(w, root, "folder", about->folder);
	return root;
}

/* &, < and > begin links and mentions there. */
static void append_escaped(struct str *out, const char *text)
{
	for (const char *c = text; *c != '\0'; c++) {
		if (*c == '&')
			str_append(out, "&amp;");
		else if (*c == '<')
			str_append(out, "&lt;");
		else if (*c == '>')
			str_append(out, "&gt;");
		else
			str_append_char(out, *c);
	}
}

static json_t *slack_form(struct json_writer *w, const struct report *report,
			  const struct webhookbody_about *about)
{
	struct str sentence = { 0 }, plain = { 0 }, text = { 0 };
	json_t *root = json_object();
	char name[64];

	print_name(about, name);
	phrase_verdict(&sentence, report);
	str_printf(&plain, "PerfTracker: job %s on %s is %s: %s", about->job, about->host,
		   verdict_name(report->verdict), str_borrow(&sentence));
	if (report->finding_cnt > 0)
		str_printf(&plain, "\nAdvice: %s",
			   report->findings[0].advice != NULL ? report->findings[0].advice : "");
	str_printf(&plain, "\n`perftracker report %s` on %s, or %s", name, about->host,
		   about->folder);
	append_escaped(&text, str_borrow(&plain));
	jsonwriter_put_text(w, root, "text", str_borrow(&text));
	str_done(&sentence);
	str_done(&plain);
	str_done(&text);
	return root;
}

/* Labels are the alert's identity: those of one job and cause are one alert, however often it is sent. */
static json_t *alert_of(struct json_writer *w, const struct report *report,
			const struct webhookbody_about *about, const char *cause)
{
	json_t *alert = json_object(), *labels = json_object(), *notes = json_object();
	char text[64];

	jsonwriter_put_text(w, labels, "alertname", "PerfTracker");
	jsonwriter_put_text(w, labels, "severity",
			    verdict_is_bad(report->verdict) ? "warning" : "info");
	jsonwriter_put_text(w, labels, "job_name", about->job);
	jsonwriter_put_text(w, labels, "job_key", about->key);
	jsonwriter_put_text(w, labels, "instance", about->host);
	jsonwriter_put_text(w, labels, "verdict", verdict_name(report->verdict));
	if (cause != NULL)
		jsonwriter_put_text(w, labels, "cause", cause);
	put_sentence(w, notes, "summary", report);
	print_name(about, text);
	jsonwriter_put_text(w, notes, "report", text);
	jsonwriter_put_text(w, notes, "folder", about->folder);
	jsonwriter_put(w, alert, "labels", labels);
	jsonwriter_put(w, alert, "annotations", notes);
	print_time(about->made_ns, text);
	jsonwriter_put_text(w, alert, "startsAt", text);
	return alert;
}

int webhookbody_print(enum webhook_format format, const struct report *report,
		      const struct webhookbody_about *about, struct str *out)
{
	const char *cause = report->finding_cnt > 0 ? report->findings[0].cause : NULL;
	struct json_writer w = { 0 };
	json_t *root;

	switch (format) {
	case WEBHOOK_SLACK:
		root = slack_form(&w, report, about);
		break;
	case WEBHOOK_ALERTMANAGER:
		root = json_array();
		jsonwriter_push(&w, root, alert_of(&w, report, about, cause));
		break;
	case WEBHOOK_JSON:
	default:
		root = own_form(&w, report, about);
		break;
	}
	return jsonwriter_print(&w, root, out);
}
