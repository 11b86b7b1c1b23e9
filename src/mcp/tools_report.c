/* SPDX-License-Identifier: Apache-2.0 */
/* Tools about one report: what it says, and one finding. */
#include "mcp/mcp_parts.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define FINDINGS_MAX 20u
#define TEXTS_MAX 8u

static const json_t *member(const json_t *object, const char *key)
{
	return json_object_get(object, key);
}

/* A value of a report outside the fence: only letters and digits of ids and sets of ranks. */
static const char *plain(const json_t *object, const char *key)
{
	const char *text = json_string_value(member(object, key));

	if (text == NULL || text[0] == '\0' || strlen(text) > 60 ||
	    strspn(text, "abcdefghijklmnopqrstuvwxyzPT0123456789-,") != strlen(text))
		return NULL;
	return text;
}

static double number(const json_t *object, const char *key)
{
	const json_t *value = member(object, key);

	return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

/* --- what each answer about a report has --- */

static json_t *coverage_of(struct json_writer *w, const json_t *root)
{
	static const char *const keys[] = { "workers_expected", "workers_analyzed", "ranks_missing",
					    NULL };
	const json_t *from = member(root, "coverage"), *absent = member(from, "sources_absent");
	json_t *ret = json_object(), *list = json_array();

	toolanswer_copy(w, ret, from, keys);
	for (size_t i = 0; i < MIN(json_array_size(absent), (size_t)TEXTS_MAX); i++)
		jsonwriter_push(w, list,
				toolanswer_text(json_string_value(
					member(json_array_get(absent, i), "source"))));
	jsonwriter_put(w, ret, "sources_absent", list);
	return ret;
}

int tool_open_report(struct tool_call *call, const char *argument, const json_t **ret_root)
{
	struct openreport *report = &call->mcp->report;
	const char *url = call->mcp->url;
	int r = openreport_find(report, call->mcp->options.archive, tool_text(call, argument),
				call->err);

	if (r < 0)
		return r;
	toolanswer_put(call->answer, "report", jsonwriter_text(report->id));
	toolanswer_put(call->answer, "url",
		       json_sprintf(url != NULL ? "%s/reports/%s" : "%s/report/%s/report.json",
				    url != NULL ? url : "perftracker:/", report->id));
	toolanswer_put(call->answer, "coverage", coverage_of(&call->answer->w, report->root));
	*ret_root = report->root;
	return 0;
}

/* Texts of a list under key, shortened; its size if some are left out. */
static void put_texts(struct tool_call *call, json_t *to, const json_t *from, const char *key)
{
	const json_t *list = member(from, key);
	size_t cnt = json_array_size(list), first = cnt > TEXTS_MAX ? cnt - TEXTS_MAX : 0;
	json_t *copy = json_array();

	for (size_t i = first; i < cnt; i++) {
		const char *text = json_string_value(json_array_get(list, i));

		if (text != NULL)
			jsonwriter_push(&call->answer->w, copy, toolanswer_text(text));
	}
	jsonwriter_put(&call->answer->w, to, key, copy);
}

/* --- get_report --- */

/* "PT-103 cpu-bound-python, ranks 1, 30.1 ms per iteration (12.5 %), confidence high" */
static void say_finding(struct str *out, const json_t *finding)
{
	const char *id = plain(finding, "id"), *cause = plain(finding, "cause");
	const char *ranks = plain(finding, "ranks"), *sure = plain(finding, "confidence");
	double ms = number(finding, "gain_ms_per_iteration"), pct = number(finding, "gain_pct");
	const char *is = plain(finding, "gain_is");

	str_printf(out, "%s %s", id != NULL ? id : "?", cause != NULL ? cause : "?");
	if (ranks != NULL)
		str_printf(out, ", ranks %s", ranks);
	if (isfinite(ms))
		str_printf(out, ", %s%.3g ms per iteration",
			   is != NULL && strcmp(is, "bound") == 0 ? "at most " : "", ms);
	if (isfinite(pct))
		str_printf(out, " (%.3g %%)", pct);
	str_printf(out, ", confidence %s", sure != NULL ? sure : "?");
}

static json_t *short_finding(struct json_writer *w, const json_t *finding, size_t number_)
{
	static const char *const keys[] = {
		"id",	      "title",	 "scope",	 "ranks",
		"rank_count", "hosts",	 "victim_ranks", "gain_ms_per_iteration",
		"gain_pct",   "gain_is", "confidence",	 NULL
	};
	json_t *ret = json_object();

	jsonwriter_put(w, ret, "finding", json_sprintf("F%zu", number_));
	toolanswer_copy(w, ret, finding, keys);
	jsonwriter_put(
		w, ret, "function",
		toolanswer_text(json_string_value(member(member(finding, "function"), "name"))));
	return ret;
}

static void put_head(struct tool_call *call, const json_t *root)
{
	static const char *const of_job[] = { "id", "world_size", "iterations", "iteration_ms",
					      NULL };
	static const char *const of_origin[] = { "made",       "run",	    "command",
						 "first_step", "last_step", NULL };
	static const char *const of_trigger[] = { "kind", "baseline_iteration_ms",
						  "current_iteration_ms", "since_step", NULL };
	static const char *const of_root[] = { "verdict", "reason", NULL };
	struct json_writer *w = &call->answer->w;
	json_t *job = json_object(), *trigger = json_object();
	bool triggered;

	toolanswer_copy(w, job, member(root, "job"), of_job);
	toolanswer_copy(w, job, member(root, "origin"), of_origin);
	put_texts(call, job, member(root, "origin"), "hosts");
	toolanswer_copy(w, job, root, of_root);
	toolanswer_put(call->answer, "job", job);
	toolanswer_copy(w, trigger, member(root, "trigger"), of_trigger);
	triggered = json_object_size(trigger) > 0;
	toolanswer_put(call->answer, "trigger", json_incref(triggered ? trigger : json_null()));
	json_decref(trigger);
}

static void summarize(struct tool_call *call, const json_t *root)
{
	const json_t *findings = member(root, "findings");
	const char *verdict = plain(root, "verdict");
	size_t cnt = json_array_size(findings), from = (size_t)tool_number(call, "cursor", 0), i;
	double iteration = number(member(root, "job"), "iteration_ms");
	json_t *notes = json_object();

	put_head(call, root);
	put_texts(call, notes, root, "notes");
	toolanswer_put(call->answer, "notes", json_incref(json_object_get(notes, "notes")));
	json_decref(notes);
	toolanswer_put(call->answer, "findings", json_array());
	for (i = from; i < MIN(cnt, from + FINDINGS_MAX); i++) {
		if (!toolanswer_push(
			    call->answer, "findings",
			    short_finding(&call->answer->w, json_array_get(findings, i), i + 1)))
			break;
	}
	toolanswer_put(call->answer, "cursor", i < cnt ? json_integer((json_int_t)i) : json_null());
	str_printf(&call->answer->says, "Verdict %s, %zu finding%s",
		   verdict != NULL ? verdict : "?", cnt, plural((double)cnt));
	if (isfinite(iteration) && iteration > 0)
		str_printf(&call->answer->says, ", an iteration takes %.4g ms", iteration);
	str_append(&call->answer->says, ".");
	if (cnt == 0)
		return;
	str_append(&call->answer->says, " F1: ");
	say_finding(&call->answer->says, json_array_get(findings, 0));
	str_append(&call->answer->says, ".");
	toolanswer_next(call->answer, "explain_finding", "report", call->mcp->report.id, "finding",
			"F1");
}

/* A list of the report as it is, each element shortened: texts of texts, and of objects. */
static json_t *shortened(struct json_writer *w, const json_t *value, int depth)
{
	const char *key;
	json_t *ret, *one;
	size_t i;

	if (json_is_string(value))
		return toolanswer_text(json_string_value(value));
	if (json_is_array(value)) {
		ret = json_array();
		json_array_foreach(value, i, one)
		{
			if (i < TEXTS_MAX * 2 && depth < 4)
				jsonwriter_push(w, ret, shortened(w, one, depth + 1));
		}
		return ret;
	}
	if (!json_is_object(value))
		return json_incref((json_t *)(uintptr_t)value);
	ret = json_object();
	json_object_foreach((json_t *)(uintptr_t)value, key, one)
	{
		if (json_is_string(one))
			jsonwriter_put(w, ret, key,
				       toolanswer_text_of(key, json_string_value(one)));
		else if (depth < 4)
			jsonwriter_put(w, ret, key, shortened(w, one, depth + 1));
	}
	return ret;
}

static void list_part(struct tool_call *call, const json_t *root, const char *part)
{
	const char *key = strcmp(part, "kernels") == 0 ? "totals" : part;
	const json_t *list = member(root, key);
	size_t cnt = json_array_size(list), i = (size_t)tool_number(call, "cursor", 0);

	toolanswer_put(call->answer, part, json_array());
	for (; i < cnt; i++) {
		if (!toolanswer_push(call->answer, part,
				     shortened(&call->answer->w, json_array_get(list, i), 0)))
			break;
	}
	toolanswer_put(call->answer, "cursor", i < cnt ? json_integer((json_int_t)i) : json_null());
	str_printf(&call->answer->says, "The report has %zu %s%s.", cnt, part,
		   i < cnt ? "; call again with cursor for more" : "");
}

int tool_get_report(struct tool_call *call)
{
	const char *part = tool_text(call, "part");
	const json_t *root;
	int r = tool_open_report(call, "report", &root);

	if (r < 0)
		return r;
	if (part == NULL || strcmp(part, "summary") == 0)
		summarize(call, root);
	else
		list_part(call, root, part);
	return 0;
}

/* --- explain_finding --- */

static const json_t *find_finding(const json_t *root, const char *word, size_t *ret_number)
{
	const json_t *findings = member(root, "findings");
	char name[24];

	for (size_t i = 0; i < json_array_size(findings); i++) {
		const json_t *finding = json_array_get(findings, i);
		const char *id = json_string_value(member(finding, "id"));

		(void)snprintf(name, sizeof(name), "F%zu", i + 1);
		*ret_number = i + 1;
		if (word == NULL || strcmp(word, name) == 0 ||
		    (id != NULL && strcmp(word, id) == 0))
			return finding;
	}
	return NULL;
}

static void against(struct tool_call *call, json_t *list, const char *fmt, ...) _printf_(3, 4);
static void against(struct tool_call *call, json_t *list, const char *fmt, ...)
{
	char line[300];
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	jsonwriter_push(&call->answer->w, list, jsonwriter_text(line));
}

static bool says(const json_t *object, const char *key, const char *word)
{
	const char *text = json_string_value(member(object, key));

	return text != NULL && strcmp(text, word) == 0;
}

/* What makes the finding less sure; computed from the report, in PerfTracker's words. */
static json_t *doubts(struct tool_call *call, const json_t *root, const json_t *finding)
{
	const json_t *coverage = member(root, "coverage");
	double delta = number(finding, "differential_distance");
	double threshold = number(finding, "threshold");
	double expected = number(coverage, "workers_expected");
	double analyzed = number(coverage, "workers_analyzed");
	double gain_pct = number(finding, "gain_pct");
	size_t cnt = json_array_size(member(root, "findings"));
	size_t absent = json_array_size(member(coverage, "sources_absent"));
	json_t *list = json_array();

	if (!says(finding, "confidence", "high"))
		against(call, list, "the confidence is not high");
	if (says(finding, "gain_is", "bound"))
		against(call, list, "the gain is a bound: a repair saves a part of it");
	if (isfinite(gain_pct) && gain_pct < 2)
		against(call, list, "the gain is small: %.2g %% of an iteration", gain_pct);
	if (isfinite(delta) && isfinite(threshold) && delta <= threshold)
		against(call, list,
			"the distance from peers is %.3g, which is not above the threshold %.3g: "
			"other evidence accuses",
			delta, threshold);
	if (isfinite(expected) && isfinite(analyzed) && analyzed < expected)
		against(call, list, "%.0f of %.0f workers were not analyzed", expected - analyzed,
			expected);
	if (absent > 0)
		against(call, list, "%zu source%s of evidence absent: see coverage", absent,
			absent == 1 ? " is" : "s are");
	if (json_array_size(member(root, "failures")) > 0)
		against(call, list, "%zu inputs could not be used",
			json_array_size(member(root, "failures")));
	if (cnt > 1)
		against(call, list, "the report has %zu findings: one may be the effect of another",
			cnt);
	return list;
}

static json_t *refuters(struct tool_call *call, const json_t *finding)
{
	const char *is = json_string_value(member(member(finding, "beta"), "reference_kind"));
	double gain = number(finding, "gain_ms_per_iteration");
	json_t *list = json_array();

	if (is != NULL && strcmp(is, "peers") == 0)
		against(call, list,
			"a new window in which the accused ranks spend as much time there as their "
			"peers");
	else if (is != NULL && strcmp(is, "before") == 0)
		against(call, list,
			"the healthy window took as long there under the same load and inputs");
	else if (is != NULL)
		against(call, list, "the time there is intended: the program must spend it");
	if (says(finding, "scope", "some"))
		against(call, list,
			"the accused ranks do other work than their peers by design (other stage, "
			"input or host)");
	if (isfinite(gain))
		against(call, list,
			"after the repair the iteration is not shorter by about %.3g ms: "
			"compare_runs tells",
			gain);
	return list;
}

static void put_evidence(struct tool_call *call, const json_t *finding, size_t number_)
{
	const json_t *list = member(finding, "evidence");

	toolanswer_put(call->answer, "evidence", json_array());
	for (size_t i = 0; i < MIN(json_array_size(list), 2 * (size_t)TEXTS_MAX); i++) {
		json_t *one = json_object();

		jsonwriter_put(&call->answer->w, one, "id",
			       json_sprintf("F%zuE%zu", number_, i + 1));
		jsonwriter_put(&call->answer->w, one, "says",
			       toolanswer_text(json_string_value(json_array_get(list, i))));
		(void)toolanswer_push(call->answer, "evidence", one);
	}
}

static void put_finding(struct tool_call *call, const json_t *finding, size_t number_)
{
	static const char *const keys[] = { "id",
					    "cause",
					    "title",
					    "scope",
					    "ranks",
					    "rank_count",
					    "hosts",
					    "victim_ranks",
					    "time_ms_per_iteration",
					    "delta_ms_per_iteration",
					    "gain_ms_per_iteration",
					    "gain_pct",
					    "gain_is",
					    "confidence",
					    NULL };
	static const char *const of_function[] = { "name", "class", NULL };
	static const char *const values[] = { "beta", "mu", "sigma" };
	struct json_writer *w = &call->answer->w;
	json_t *object = json_object(), *function = json_object();

	jsonwriter_put(w, object, "finding", json_sprintf("F%zu", number_));
	toolanswer_copy(w, object, finding, keys);
	toolanswer_copy(w, function, member(finding, "function"), of_function);
	put_texts(call, function, member(finding, "function"), "stack");
	jsonwriter_put(w, object, "function", function);
	for (size_t i = 0; i < ARRAY_SIZE(values); i++)
		jsonwriter_put(w, object, values[i], shortened(w, member(finding, values[i]), 2));
	toolanswer_put(call->answer, "finding", object);
	toolanswer_put(call->answer, "advice",
		       toolanswer_text(json_string_value(member(finding, "advice"))));
}

int tool_explain_finding(struct tool_call *call)
{
	const json_t *root, *finding;
	size_t number_ = 0;
	int r = tool_open_report(call, "report", &root);

	if (r < 0)
		return r;
	finding = find_finding(root, tool_text(call, "finding"), &number_);
	if (finding == NULL)
		return err_set(call->err, ENOENT,
			       "the report has no such finding: it has %zu; get_report lists them",
			       json_array_size(member(root, "findings")));
	put_finding(call, finding, number_);
	put_evidence(call, finding, number_);
	toolanswer_put(call->answer, "speaks_against", doubts(call, root, finding));
	toolanswer_put(call->answer, "would_refute", refuters(call, finding));
	say_finding(&call->answer->says, finding);
	str_append(&call->answer->says, ".");
	if (json_object_get(root, "hang_stacks") != NULL)
		toolanswer_next(call->answer, "stacks", "report", call->mcp->report.id, NULL, NULL);
	else if (json_is_object(member(root, "stacks")))
		toolanswer_next(call->answer, "call_tree", "report", call->mcp->report.id, NULL,
				NULL);
	else
		toolanswer_next(call->answer, "rank_table", "report", call->mcp->report.id, NULL,
				NULL);
	return 0;
}
