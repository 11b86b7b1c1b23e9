/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perftracker.report.v1: the contract for programs. Keys come in the order of
 * the schema, numbers with six significant digits, so that the same report is
 * the same bytes everywhere.
 * Source: design.md section 7, docs/report-schema.json.
 */
#include "format/rankset.h"
#include "report/clean.h"
#include "report/report.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>

/* A full matrix of 3,000 ranks has nine million pairs; the largest come first. */
#define WAITS_MAX 10000

/* Values are added without looking; a failure sticks here and is checked once. */
struct writer {
	int error;
};

static void put(struct writer *w, json_t *object, const char *key, json_t *value)
{
	if (json_object_set_new(object, key, value) != 0)
		w->error = -ENOMEM;
}

static void push(struct writer *w, json_t *array, json_t *value)
{
	if (json_array_append_new(array, value) != 0)
		w->error = -ENOMEM;
}

/* NULL on want of memory, which put() and push() turn into the sticky error. */
static json_t *text(const char *s)
{
	_cleanup_(str_done) struct str mended = { 0 };

	clean_append_utf8(&mended, s);
	return str_error(&mended) == 0 ? json_stringn(str_borrow(&mended), mended.len) : NULL;
}

static json_t *number(double value)
{
	if (!isfinite(value))
		return json_null();
	return json_real(value == 0.0 ? 0.0 : value); /* no "-0.0" */
}

/* A median of counts: whole unless it lies between two. */
static json_t *count(double value)
{
	if (isfinite(value) && value == floor(value) && fabs(value) < 1e15)
		return json_integer((json_int_t)value);
	return number(value);
}

static json_t *rank_text(const int *ranks, size_t cnt)
{
	_cleanup_(str_done) struct str out = { 0 };

	rankset_format(&out, ranks, cnt);
	return str_error(&out) == 0 ? json_stringn(str_borrow(&out), out.len) : NULL;
}

static json_t *text_array(struct writer *w, const char *const *texts, size_t cnt)
{
	json_t *array = json_array();

	for (size_t i = 0; i < cnt; i++)
		push(w, array, text(texts[i]));
	return array;
}

static json_t *joined(const char *const *texts, size_t cnt)
{
	_cleanup_(str_done) struct str out = { 0 };

	for (size_t i = 0; i < cnt; i++) {
		str_append(&out, i > 0 ? "," : "");
		clean_append_utf8(&out, texts[i]);
	}
	return str_error(&out) == 0 ? json_stringn(str_borrow(&out), out.len) : NULL;
}

static json_t *job_object(struct writer *w, const struct report *report)
{
	json_t *job = json_object();

	put(w, job, "id", text(report->job_id));
	put(w, job, "world_size", json_integer(report->world_size));
	put(w, job, "iterations", count(report->iterations));
	put(w, job, "iteration_ms", number(report->iteration_ms));
	return job;
}

static json_t *coverage_object(struct writer *w, const struct report *report)
{
	json_t *coverage = json_object(), *absent = json_array();

	put(w, coverage, "workers_expected", json_integer(report->workers_expected));
	put(w, coverage, "workers_analyzed", json_integer(report->workers_analyzed));
	put(w, coverage, "ranks_missing", rank_text(report->missing, report->missing_cnt));
	for (size_t i = 0; i < report->absence_cnt; i++) {
		json_t *item = json_object();

		put(w, item, "source", text(report->absences[i].source));
		put(w, item, "why", text(report->absences[i].why));
		push(w, absent, item);
	}
	put(w, coverage, "sources_absent", absent);
	return coverage;
}

static json_t *cost_object(struct writer *w, const struct report_cost *cost)
{
	json_t *object;

	if (!cost->known)
		return json_null();
	object = json_object();
	put(w, object, "pct", number(cost->pct));
	put(w, object, "error_pct", number(cost->error_pct));
	return object;
}

static json_t *overhead_object(struct writer *w, const struct report_overhead *overhead)
{
	json_t *object, *left_out = json_array();

	if (overhead->less_samples)
		push(w, left_out, text("samples"));
	if (overhead->no_operators)
		push(w, left_out, text("operators"));
	if (overhead->only_marks)
		push(w, left_out, text("always"));
	object = json_object();
	put(w, object, "always", cost_object(w, &overhead->always));
	put(w, object, "window", overhead->torch ? json_null() : cost_object(w, &overhead->window));
	put(w, object, "left_out", left_out);
	return object;
}

static json_t *function_object(struct writer *w, const struct finding *finding)
{
	json_t *function = json_object();

	put(w, function, "key", text(finding->key));
	put(w, function, "name", text(finding->name));
	put(w, function, "class", text(event_class_name(finding->class)));
	put(w, function, "stack", text_array(w, finding->stack, finding->stack_cnt));
	return function;
}

static json_t *value_object(struct writer *w, const struct finding_value *value)
{
	json_t *object;

	if (!value->present)
		return json_null();
	object = json_object();
	put(w, object, "value", number(value->value));
	put(w, object, "reference", number(value->reference));
	put(w, object, "reference_kind",
	    text(value->reference_kind == REFERENCE_PEERS ? "peers" : "expected"));
	return object;
}

static void put_scope(struct writer *w, json_t *object, const struct finding *finding)
{
	put(w, object, "scope", text(finding->all_workers ? "all" : "some"));
	put(w, object, "ranks", rank_text(finding->ranks, finding->rank_cnt));
	put(w, object, "rank_count", json_integer((json_int_t)finding->rank_cnt));
	put(w, object, "hosts", joined(finding->hosts, finding->host_cnt));
	put(w, object, "victim_ranks", rank_text(finding->victims, finding->victim_cnt));
}

static void put_measures(struct writer *w, json_t *object, const struct finding *finding)
{
	put(w, object, "time_ms_per_iteration", number(finding->time_ms_per_iteration));
	put(w, object, "delta_ms_per_iteration", number(finding->delta_ms_per_iteration));
	put(w, object, "beta", value_object(w, &finding->beta));
	put(w, object, "mu", value_object(w, &finding->mu));
	put(w, object, "sigma", value_object(w, &finding->sigma));
	put(w, object, "expectation_distance", number(finding->expectation_distance));
	put(w, object, "differential_distance", number(finding->differential_distance));
	put(w, object, "threshold", number(finding->threshold));
	put(w, object, "gain_ms_per_iteration", number(finding->gain_ms_per_iteration));
	put(w, object, "gain_pct", number(finding->gain_pct));
}

static json_t *finding_object(struct writer *w, const struct finding *finding)
{
	json_t *object = json_object();

	put(w, object, "id", text(finding->id));
	put(w, object, "cause", text(finding->cause));
	put(w, object, "title", text(finding->title));
	put(w, object, "function", function_object(w, finding));
	put_scope(w, object, finding);
	put_measures(w, object, finding);
	put(w, object, "confidence", text(confidence_name(finding->confidence)));
	put(w, object, "evidence", text_array(w, finding->evidence, finding->evidence_cnt));
	put(w, object, "advice", text(finding->advice));
	return object;
}

static json_t *worker_object(struct writer *w, const struct report_worker *worker)
{
	json_t *object = json_object(), *iterations = json_array(), *shares = json_object();

	put(w, object, "rank", json_integer(worker->rank));
	put(w, object, "host", text(worker->host));
	put(w, object, "source", text(worker->source));
	put(w, object, "window_ms", number(worker->window_ms));
	for (size_t i = 0; i < worker->iteration_cnt; i++)
		push(w, iterations, number(worker->iteration_ms[i]));
	put(w, object, "iteration_ms", iterations);
	for (int class = CLASS_CNT - 1; class >= 0; class --)
		put(w, shares, event_class_name((enum event_class) class),
		    number(worker->class_frac[class]));
	put(w, object, "class_frac", shares);
	return object;
}

static json_t *wait_object(struct writer *w, const struct report_wait *wait)
{
	json_t *object = json_object();

	put(w, object, "from", json_integer(wait->from));
	put(w, object, "to", json_integer(wait->to));
	put(w, object, "wait_ms", number(wait->wait_ms));
	put(w, object, "collectives", json_integer((json_int_t)wait->collective_cnt));
	return object;
}

static json_t *trigger_object(struct writer *w, const struct report_trigger *trigger)
{
	json_t *object;

	if (!trigger->present)
		return json_null();
	object = json_object();
	put(w, object, "kind", text(trigger->kind));
	put(w, object, "baseline_iteration_ms", number(trigger->baseline_iteration_ms));
	put(w, object, "current_iteration_ms", number(trigger->current_iteration_ms));
	put(w, object, "step", json_integer(trigger->step));
	return object;
}

static json_t *failure_object(struct writer *w, const struct report_failure *failure)
{
	json_t *object = json_object();

	put(w, object, "source", text(failure->source));
	put(w, object, "why", text(failure->why));
	return object;
}

/* What the contract does not name: the material of the pictures, and what went wrong. */
static void put_extras(struct writer *w, json_t *root, const struct report *report)
{
	size_t wait_cnt = MIN(report->wait_cnt, (size_t)WAITS_MAX);
	json_t *workers = json_array(), *waits = json_array(), *failures = json_array();

	put(w, root, "notes", text_array(w, report->notes, report->note_cnt));
	for (size_t i = 0; i < report->worker_cnt; i++)
		push(w, workers, worker_object(w, &report->workers[i]));
	put(w, root, "workers", workers);
	for (size_t i = 0; i < wait_cnt; i++)
		push(w, waits, wait_object(w, &report->waits[i]));
	put(w, root, "waits", waits);
	put(w, root, "trigger", trigger_object(w, &report->trigger));
	put(w, root, "overhead",
	    report->overhead.present ? overhead_object(w, &report->overhead) : json_null());
	for (size_t i = 0; i < report->failure_cnt; i++)
		push(w, failures, failure_object(w, &report->failures[i]));
	put(w, root, "failures", failures);
	put(w, root, "rank_source", text(report->rank_source));
	put(w, root, "waits_omitted", json_integer((json_int_t)(report->wait_cnt - wait_cnt)));
}

static void put_all(struct writer *w, json_t *root, const struct report *report)
{
	json_t *findings = json_array();

	put(w, root, "schema", text("perftracker.report.v1"));
	put(w, root, "verdict", text(verdict_name(report->verdict)));
	put(w, root, "reason", text(report->reason));
	put(w, root, "job", job_object(w, report));
	put(w, root, "coverage", coverage_object(w, report));
	for (size_t i = 0; i < report->finding_cnt; i++)
		push(w, findings, finding_object(w, &report->findings[i]));
	put(w, root, "findings", findings);
	put_extras(w, root, report);
}

static int append_chunk(const char *data, size_t len, void *out)
{
	str_append_len(out, data, len);
	return str_error(out);
}

int report_json(const struct report *report, struct str *out)
{
	struct writer w = { 0 };
	size_t start = out->len;
	json_t *root = json_object();

	put_all(&w, root, report);
	if (w.error == 0 && json_dump_callback(root, append_chunk, out,
					       JSON_INDENT(1) | JSON_REAL_PRECISION(6)) != 0)
		w.error = -ENOMEM;
	json_decref(root);
	str_append_char(out, '\n');
	if (w.error == 0)
		w.error = str_error(out);
	if (w.error != 0 && out->len > start) {
		out->len = start;
		out->data[start] = '\0';
	}
	return w.error;
}
