/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/openapi.h"

#include "report/jsonwriter.h"
#include "serve/routes.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* A member of an object. type: "string?" may be null; "[Job" is a list of objects; "Order?" one. */
struct field {
	const char *key, *type, *about;
};

struct schema {
	const char *name, *about;
	const struct field *fields; /* NULL: described elsewhere */
	size_t cnt;
};

/* clang-format off */
#define JOB_FIELDS                                                                        \
	{ "job", "string", "Its key, 12 hex digits." },                                   \
	{ "name", "string", "" },                                                         \
	{ "host", "string", "The host of its hub." },                                     \
	{ "owner", "string", "The user." },                                               \
	{ "folder", "string", "Where its files are, on that host." },                     \
	{ "command", "string?", "" },                                                     \
	{ "started", "string", "UTC, as all times." },                                    \
	{ "ended", "string?", "null: it runs, or was lost." },                            \
	{ "state", "string", "As of `perftracker jobs`." },                               \
	{ "exit_status", "integer?", "" },                                                \
	{ "workers", "integer", "" },                                                     \
	{ "restarts", "integer", "" },                                                    \
	{ "step", "integer", "The last one." },                                           \
	{ "iteration_ms", "number?", "Of the recent iterations." },                       \
	{ "best_ms", "number?", "The best pace of the job." },                            \
	{ "not_kept", "integer", "Records that the store did not take." },                \
	{ "verdict", "string?", "Of its last report." },                                  \
	{ "reason", "string?", "" }

static const struct field job[] = { JOB_FIELDS };
static const struct field jobs[] = {
	{ "schema", "string", "perftracker.jobs.v1" },
	{ "jobs", "[Job", "The newest first." },
	{ "next", "string?", "The cursor of the next page; null: this is the last one." },
};
static const struct field history[] = {
	{ "schema", "string", "perftracker.history.v1" },
	JOB_FIELDS,
	{ "earlier", "Earlier?", "Its pace to that of earlier runs of its name; null: there is none." },
	{ "reports", "[JobReport", "By time." },
	{ "events", "[Event", "By time." },
	{ "pace_seconds", "integer", "Each row of pace stands for so many." },
	{ "pace", "[Pace", "By time." },
};
static const struct field earlier[] = {
	{ "verdict", "string", "unknown, alike, slower, faster" },
	{ "text", "string", "The comparison in words, or why there is none." },
	{ "runs", "integer", "Earlier runs of that name." },
	{ "compared", "integer", "Those of the same command, ranks and kind of machine, without a finding." },
	{ "since", "string?", "The begin of the oldest of them." },
	{ "iteration_ms", "number?", "Median of its healthy stretches." },
	{ "earlier_ms", "number?", "The median of theirs." },
	{ "earlier_least_ms", "number?", "" },
	{ "earlier_most_ms", "number?", "" },
	{ "factor", "number?", "iteration_ms to earlier_ms." },
	{ "like", "string?", "The job nearest to their median, for a comparison." },
	{ "left_out", "[LeftOut", "Earlier runs that are not compared." },
};
static const struct field left_out[] = {
	{ "why", "string", "running, command, workers, machine, short, sick, beside, flagged" },
	{ "runs", "integer", "How many." },
};
static const struct field job_report[] = {
	{ "report", "string", "KEY/NUMBER, as `perftracker report` takes it." },
	{ "made", "string", "" },
	{ "why", "string", "slowdown, checkup, request, blocked, end" },
	{ "verdict", "string", "" },
	{ "reason", "string", "" },
	{ "first_step", "integer", "" },
	{ "steps", "integer", "" },
	{ "iteration_ms", "number?", "" },
	{ "workers", "integer", "" },
	{ "missing", "integer", "Ranks without data." },
	{ "findings", "[Finding", "By gain." },
};
static const struct field finding[] = {
	{ "id", "string", "PT-..., see docs/findings.md." },
	{ "cause", "string", "" },
	{ "title", "string", "" },
	{ "function", "string", "" },
	{ "ranks", "string", "0-2,7 or all" },
	{ "confidence", "string", "" },
	{ "gain_ms_per_iteration", "number?", "" },
	{ "gain_pct", "number?", "" },
};
static const struct field event[] = {
	{ "at", "string", "" },
	{ "kind", "string", "" },
	{ "text", "string", "" },
};
static const struct field pace[] = {
	{ "at", "string", "" },
	{ "step", "integer", "The last one." },
	{ "mean_ms", "number?", "" },
	{ "least_ms", "number?", "" },
	{ "most_ms", "number?", "" },
};
static const struct field live[] = {
	{ "schema", "string", "perftracker.live.v1" },
	{ "job", "string", "Its key; empty where the daemon has none." },
	{ "at_ms", "integer", "When, in ms since 1970." },
	{ "state", "string", "waiting, learning, watching, slow, blocked, profiling, ended" },
	{ "step", "integer", "" },
	{ "iteration_ms", "number?", "Of the recent iterations of the slowest rank." },
	{ "baseline_ms", "number?", "What they are compared with." },
	{ "best_ms", "number?", "" },
	{ "slow_since_step", "integer?", "null: no rank is slow." },
	{ "coverage", "Coverage", "" },
	{ "ranks", "[LiveRank", "At most 64." },
	{ "ranks_left_out", "integer", "" },
	{ "carpet", "Carpet?", "null: no rank has connected yet." },
	{ "order", "Order?", "null: none is under way." },
	{ "asked", "boolean", "A person has asked, and the order waits for the job's pace." },
	{ "cost", "string?", "PerfTracker's own cost, as far as it is known." },
	{ "requests", "[Request", "For profiles by this server, the latest first." },
};
static const struct field request[] = {
	{ "at_ms", "integer", "When, in ms since 1970." },
	{ "user", "string", "" },
	{ "reason", "string", "" },
	{ "state", "string", "waiting, done, failed" },
	{ "text", "string", "The report's file, or why there is none." },
};
static const struct field carpet[] = {
	{ "begin_ms", "integer", "Of the first column, in ms since 1970." },
	{ "column_ms", "integer", "Length of a column: grows with the run." },
	{ "rows", "[CarpetRow", "At most 64." },
};
static const struct field carpet_row[] = {
	{ "ranks", "string", "0 or 0-15: the worst of them." },
	{ "cells", "string", "A letter by column: . watching, p profiling, l learning, o not watched, e ended, "
			     "s slow, r behind, q silent, b blocked, space: not seen." },
};
static const struct field coverage[] = {
	{ "world_size", "integer", "Ranks of the job; 0: not known yet." },
	{ "watched", "integer", "" },
	{ "not_watched", "integer", "Their hook is off." },
	{ "ended", "integer", "" },
	{ "never_seen", "integer", "They did not connect." },
};
static const struct field live_rank[] = {
	{ "rank", "integer?", "" },
	{ "host", "string", "" },
	{ "state", "string", "" },
	{ "step", "integer", "" },
	{ "iteration_ms", "number?", "" },
	{ "baseline_ms", "number?", "" },
};
static const struct field order[] = {
	{ "order", "integer", "Its number, which is that of its report." },
	{ "why", "string", "slowdown, checkup, request, early" },
	{ "state", "string", "waiting for the step, recording, gathering" },
	{ "first_step", "integer", "Where it begins." },
	{ "length_ms", "number?", "As it was expected." },
	{ "ranks", "integer", "" },
	{ "recording", "integer", "" },
	{ "in", "integer", "Ranks whose fingerprint is there." },
	{ "missed", "integer", "" },
};
static const struct field profile_now[] = {
	{ "reason", "string", "Why; it is logged with the user and the order." },
};
static const struct field asked[] = {
	{ "schema", "string", "perftracker.asked.v1" },
	{ "job", "string", "Its key." },
	{ "user", "string", "Who asked." },
	{ "reason", "string", "" },
};
static const struct field reports[] = {
	{ "schema", "string", "perftracker.reports.v1" },
	{ "reports", "[ReportRow", "The newest first." },
	{ "next", "string?", "The cursor of the next page; null: this is the last one." },
	{ "left_out", "integer", "Files in the folders that are damaged, too large or too many." },
};
static const struct field report_row[] = {
	{ "id", "string", "For /api/v1/reports/{report}." },
	{ "job", "string?", "Its key in the store; null: of a folder." },
	{ "name", "string?", "Of the job." },
	{ "file", "string?", "Of a folder." },
	{ "made", "string?", "" },
	{ "verdict", "string", "" },
	{ "reason", "string?", "" },
	{ "finding", "string?", "The title of the first one, of a folder." },
	{ "findings", "integer", "How many." },
	{ "gain_ms_per_iteration", "number?", "Of the first finding, of a folder." },
	{ "iteration_ms", "number?", "" },
	{ "workers", "integer", "" },
};
static const struct field hosts[] = {
	{ "schema", "string", "perftracker.hosts.v1" },
	{ "hosts", "[Host", "Most jobs first." },
	{ "left_out", "integer", "Hosts beyond the limit of the list." },
};
static const struct field host[] = {
	{ "host", "string", "" },
	{ "jobs", "integer", "In how many jobs it was accused." },
	{ "machine_jobs", "integer", "In how many of them of a cause that lies in the machine." },
	{ "findings", "integer", "How often." },
	{ "kinds", "[HostKind", "The most frequent first." },
	{ "last", "string?", "When last." },
	{ "accusations", "[Accusation", "The latest, at most 20." },
};
static const struct field host_kind[] = {
	{ "cause", "string", "" },
	{ "findings", "integer", "How often." },
};
static const struct field exclusion[] = {
	{ "schema", "string", "perftracker.exclude.v1" },
	{ "form", "string", "slurm, kubernetes" },
	{ "jobs", "integer", "The machines were accused in so many jobs at least." },
	{ "hosts", "[", "Their names." },
	{ "text", "string", "--exclude=..., or a node affinity as YAML; empty without a host." },
};
static const struct field accusation[] = {
	{ "job", "string", "The name of the job." },
	{ "report", "string", "For /api/v1/reports/{report}." },
	{ "made", "string?", "" },
	{ "cause", "string", "" },
	{ "title", "string", "" },
	{ "gain_ms_per_iteration", "number?", "" },
};
static const struct field error[] = {
	{ "status", "integer", "The HTTP status." },
	{ "error", "string", "What was wrong." },
	{ "help", "string", "What to do." },
};

#define FIELDS(list) (list), ARRAY_SIZE(list)
static const struct schema schemas[] = {
	{ "Jobs", "", FIELDS(jobs) },
	{ "Job", "", FIELDS(job) },
	{ "Live", "", FIELDS(live) },
	{ "Coverage", "Ranks of which the daemon knows.", FIELDS(coverage) },
	{ "Carpet", "Ranks by time, over the whole run.", FIELDS(carpet) },
	{ "CarpetRow", "", FIELDS(carpet_row) },
	{ "LiveRank", "", FIELDS(live_rank) },
	{ "Order", "A profile under way.", FIELDS(order) },
	{ "Request", "", FIELDS(request) },
	{ "ProfileNow", "", FIELDS(profile_now) },
	{ "Asked", "", FIELDS(asked) },
	{ "History", "", FIELDS(history) },
	{ "Earlier", "A job against earlier runs of its name.", FIELDS(earlier) },
	{ "LeftOut", "", FIELDS(left_out) },
	{ "JobReport", "", FIELDS(job_report) },
	{ "Finding", "", FIELDS(finding) },
	{ "Event", "", FIELDS(event) },
	{ "Pace", "The iterations of some time.", FIELDS(pace) },
	{ "Reports", "", FIELDS(reports) },
	{ "ReportRow", "", FIELDS(report_row) },
	{ "Report", "A report: docs/report-schema.json.", NULL, 0 },
	{ "Timeline", "A part of a timeline: docs/timebins-schema.json.", NULL, 0 },
	{ "Comparison", "A comparison: docs/compare-schema.json.", NULL, 0 },
	{ "Doctor", "Checks of a host: docs/doctor-schema.json.", NULL, 0 },
	{ "Hosts", "", FIELDS(hosts) },
	{ "Host", "", FIELDS(host) },
	{ "HostKind", "", FIELDS(host_kind) },
	{ "Exclusion", "", FIELDS(exclusion) },
	{ "Accusation", "", FIELDS(accusation) },
	{ "Description", "This document.", NULL, 0 },
	{ "Error", "", FIELDS(error) },
};
/* clang-format on */

/* --- schemas --- */

static json_t *reference(struct json_writer *w, const char *name)
{
	struct str path = { 0 };
	json_t *ret = json_object();

	str_printf(&path, "#/components/schemas/%s", name);
	jsonwriter_put_text(w, ret, "$ref", str_borrow(&path));
	str_done(&path);
	return ret;
}

static json_t *type_of(struct json_writer *w, const struct field *field)
{
	json_t *ret = json_object(), *types;
	size_t len = strlen(field->type);
	bool nullable = field->type[len - 1] == '?';

	if (field->type[0] == '[') {
		jsonwriter_put_text(w, ret, "type", "array");
		jsonwriter_put(w, ret, "items",
			       field->type[1] != '\0' ? reference(w, field->type + 1)
						      : json_pack("{ss}", "type", "string"));
	} else if (field->type[0] >= 'A' && field->type[0] <= 'Z') {
		char name[32];
		json_t *choices = json_array(), *null = json_object();

		(void)snprintf(name, sizeof(name), "%.*s", (int)(nullable ? len - 1 : len),
			       field->type);
		jsonwriter_push(w, choices, reference(w, name));
		jsonwriter_put_text(w, null, "type", "null");
		if (nullable)
			jsonwriter_push(w, choices, null);
		else
			json_decref(null);
		jsonwriter_put(w, ret, "anyOf", choices);
	} else if (nullable) {
		types = json_array();
		jsonwriter_push(w, types, json_stringn(field->type, len - 1));
		jsonwriter_push(w, types, json_string("null"));
		jsonwriter_put(w, ret, "type", types);
	} else {
		jsonwriter_put_text(w, ret, "type", field->type);
	}
	if (field->about[0] != '\0')
		jsonwriter_put_text(w, ret, "description", field->about);
	return ret;
}

static json_t *schema_object(struct json_writer *w, const struct schema *schema)
{
	json_t *ret = json_object(), *required = json_array(), *properties = json_object();

	jsonwriter_put_text(w, ret, "type", "object");
	if (schema->about[0] != '\0')
		jsonwriter_put_text(w, ret, "description", schema->about);
	for (size_t i = 0; i < schema->cnt; i++) {
		jsonwriter_push(w, required, json_string(schema->fields[i].key));
		jsonwriter_put(w, properties, schema->fields[i].key,
			       type_of(w, &schema->fields[i]));
	}
	if (schema->cnt > 0) {
		jsonwriter_put(w, ret, "required", required);
		jsonwriter_put(w, ret, "properties", properties);
		jsonwriter_put(w, ret, "additionalProperties", json_false());
	} else {
		json_decref(required);
		json_decref(properties);
	}
	return ret;
}

/* --- paths --- */

static json_t *parameter(struct json_writer *w, const struct route_param *param)
{
	json_t *ret = json_object(), *schema = json_object();

	jsonwriter_put_text(w, ret, "name", param->name);
	jsonwriter_put_text(w, ret, "in", param->in_path ? "path" : "query");
	jsonwriter_put(w, ret, "required", json_boolean(param->in_path));
	jsonwriter_put_text(w, ret, "description", param->about);
	jsonwriter_put_text(w, schema, "type", param->number ? "integer" : "string");
	if (param->number) {
		jsonwriter_put(w, schema, "minimum", json_integer(0));
		jsonwriter_put(w, schema, "maximum", json_integer((json_int_t)param->high));
	}
	jsonwriter_put(w, ret, "schema", schema);
	return ret;
}

static json_t *answer_of(struct json_writer *w, const char *about, const char *type,
			 const char *schema)
{
	json_t *ret = json_object(), *content = json_object(), *media = json_object();

	jsonwriter_put_text(w, ret, "description", about);
	if (schema != NULL)
		jsonwriter_put(w, media, "schema", reference(w, schema));
	jsonwriter_put(w, content, type, media);
	jsonwriter_put(w, ret, "content", content);
	return ret;
}

static json_t *operation(struct json_writer *w, const struct route *route)
{
	json_t *ret = json_object(), *answers = json_object(), *params = json_array();

	jsonwriter_put_text(w, ret, "operationId", route->id);
	jsonwriter_put_text(w, ret, "summary", route->about);
	for (size_t i = 0; i < route->param_cnt; i++)
		jsonwriter_push(w, params, parameter(w, &route->params[i]));
	jsonwriter_put(w, ret, "parameters", params);
	if (route->request_schema != NULL) {
		json_t *body = answer_of(w, "", "application/json", route->request_schema);

		jsonwriter_put(w, body, "required", json_true());
		jsonwriter_put(w, ret, "requestBody", body);
	}
	jsonwriter_put(w, answers, route->writes ? "202" : "200",
		       answer_of(w, route->about, route->type, route->schema));
	jsonwriter_put(
		w, answers, "default",
		answer_of(w, "What was wrong, and what to do.", "application/json", "Error"));
	jsonwriter_put(w, ret, "responses", answers);
	return ret;
}

static json_t *paths_object(struct json_writer *w)
{
	json_t *ret = json_object();

	for (size_t i = 0; i < routes_cnt; i++) {
		json_t *item;

		if (routes_table[i].id == NULL)
			continue;
		item = json_object();
		jsonwriter_put(w, item, routes_table[i].writes ? "post" : "get",
			       operation(w, &routes_table[i]));
		jsonwriter_put(w, ret, routes_table[i].path, item);
	}
	return ret;
}

static json_t *security_schemes(struct json_writer *w)
{
	static const char *const names[] = { "bearer", "basic" };
	json_t *ret = json_object();

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		json_t *scheme = json_object();

		jsonwriter_put_text(w, scheme, "type", "http");
		jsonwriter_put_text(w, scheme, "scheme", names[i]);
		jsonwriter_put(w, ret, names[i], scheme);
	}
	return ret;
}

/* None, for the server's own user; a token, where the server has a token file. */
static json_t *security(struct json_writer *w)
{
	static const char *const names[] = { NULL, "bearer", "basic" };
	json_t *ret = json_array();

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		json_t *choice = json_object();

		if (names[i] != NULL)
			jsonwriter_put(w, choice, names[i], json_array());
		jsonwriter_push(w, ret, choice);
	}
	return ret;
}

int openapi_print(struct str *out)
{
	struct json_writer w = { 0 };
	json_t *root = json_object(), *info = json_object(), *components = json_object();
	json_t *all = json_object();

	jsonwriter_put_text(&w, root, "openapi", "3.1.0");
	jsonwriter_put_text(&w, info, "title", "PerfTracker");
	jsonwriter_put_text(&w, info, "version", "1");
	jsonwriter_put_text(
		&w, info, "description",
		"Jobs, reports and hosts that `perftracker serve` shows. Within v1 keys "
		"are only added. All is read only but for profileNow.");
	jsonwriter_put(&w, root, "info", info);
	jsonwriter_put(&w, root, "security", security(&w));
	jsonwriter_put(&w, root, "paths", paths_object(&w));
	for (size_t i = 0; i < ARRAY_SIZE(schemas); i++)
		jsonwriter_put(&w, all, schemas[i].name, schema_object(&w, &schemas[i]));
	jsonwriter_put(&w, components, "schemas", all);
	jsonwriter_put(&w, components, "securitySchemes", security_schemes(&w));
	jsonwriter_put(&w, root, "components", components);
	return jsonwriter_print(&w, root, out);
}
