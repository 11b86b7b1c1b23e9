/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perftracker.report.v2: the contract for programs. Keys come in the order of
 * the schema, numbers with six significant digits, so that the same report is
 * the same bytes everywhere.
 * Source: docs/report-schema.json.
 */
#include "report/finding_fields.h"
#include "report/formats.h"
#include "report/json_pictures.h"
#include "report/jsonwriter.h"
#include "report/stacks/hangtree.h"
#include "report/whenwhere.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>

/* A full matrix of 3,000 ranks has nine million pairs; the largest come first. */
#define WAITS_MAX 10000

/* A median of counts: an integer unless it is between two counts. */
static json_t *count(double value)
{
	if (isfinite(value) && value == floor(value) && fabs(value) < 1e15)
		return json_integer((json_int_t)value);
	return jsonwriter_number(value);
}

static json_t *loop_object(struct json_writer *w, const struct report_loop *loop)
{
	json_t *object;

	if (loop->marks[0] == '\0')
		return json_null();
	object = json_object();
	jsonwriter_put(w, object, "marks", jsonwriter_text(loop->marks));
	jsonwriter_put(w, object, "since_step", json_integer((json_int_t)loop->since_step));
	jsonwriter_put(w, object, "workers", json_integer((json_int_t)loop->worker_cnt));
	return object;
}

static json_t *job_object(struct json_writer *w, const struct report *report)
{
	json_t *job = json_object();

	jsonwriter_put(w, job, "id", jsonwriter_text(report->job_id));
	jsonwriter_put(w, job, "world_size", json_integer(report->world_size));
	jsonwriter_put(w, job, "iterations", count(report->iterations));
	jsonwriter_put(w, job, "iteration_ms", jsonwriter_number(report->iteration_ms));
	jsonwriter_put(w, job, "loop", loop_object(w, &report->loop));
	return job;
}

static json_t *coverage_object(struct json_writer *w, const struct report *report)
{
	json_t *coverage = json_object(), *absent = json_array();

	jsonwriter_put(w, coverage, "workers_expected", json_integer(report->workers_expected));
	jsonwriter_put(w, coverage, "workers_analyzed", json_integer(report->workers_analyzed));
	jsonwriter_put(w, coverage, "ranks_missing",
		       jsonwriter_ranks(report->missing, report->missing_cnt));
	for (size_t i = 0; i < report->absence_cnt; i++) {
		json_t *item = json_object();

		jsonwriter_put(w, item, "source", jsonwriter_text(report->absences[i].source));
		jsonwriter_put(w, item, "why", jsonwriter_text(report->absences[i].why));
		jsonwriter_push(w, absent, item);
	}
	jsonwriter_put(w, coverage, "sources_absent", absent);
	return coverage;
}

static json_t *cost_object(struct json_writer *w, const struct report_cost *cost)
{
	json_t *object;

	if (cost->pair_cnt == 0)
		return json_null();
	object = json_object();
	jsonwriter_put(w, object, "pct", jsonwriter_number(cost->pct));
	jsonwriter_put(w, object, "low_pct", jsonwriter_number(cost->low_pct));
	jsonwriter_put(w, object, "high_pct", jsonwriter_number(cost->high_pct));
	jsonwriter_put(w, object, "pairs", json_integer(cost->pair_cnt));
	return object;
}

static json_t *audits_object(struct json_writer *w, const struct report_audits *audits)
{
	json_t *object = json_object();

	jsonwriter_put(w, object, "count", json_integer(audits->cnt));
	jsonwriter_put(w, object, "total_s", jsonwriter_number(audits->total_s));
	jsonwriter_put(w, object, "job_s", jsonwriter_number(audits->job_s));
	jsonwriter_put(w, object, "cost_pct", jsonwriter_number(audits->cost_pct));
	return object;
}

static json_t *threads_object(struct json_writer *w, const struct own_cpu *own)
{
	json_t *threads = json_array();

	for (size_t i = 0; i < OWN_THREAD_CNT && own->rank_ns > 0; i++) {
		json_t *object = json_object();

		jsonwriter_put(w, object, "name",
			       jsonwriter_text(own_thread_name((enum own_thread)i)));
		jsonwriter_put(w, object, "cpu_s",
			       jsonwriter_number((double)own->cpu_ns[i] / NSEC_PER_SEC));
		jsonwriter_put(w, object, "ms_per_rank_s",
			       jsonwriter_number(own_cpu_ms_per_s(own, own->cpu_ns[i])));
		jsonwriter_push(w, threads, object);
	}
	return threads;
}

static json_t *overhead_object(struct json_writer *w, const struct report_overhead *overhead)
{
	json_t *object, *left_out = json_array();

	if (overhead->less_samples)
		jsonwriter_push(w, left_out, jsonwriter_text("samples"));
	if (overhead->no_operators)
		jsonwriter_push(w, left_out, jsonwriter_text("operators"));
	if (overhead->no_collectives)
		jsonwriter_push(w, left_out, jsonwriter_text("collectives"));
	if (overhead->only_marks)
		jsonwriter_push(w, left_out, jsonwriter_text("always"));
	object = json_object();
	jsonwriter_put(w, object, "effect", cost_object(w, &overhead->effect));
	jsonwriter_put(w, object, "always", cost_object(w, &overhead->always));
	jsonwriter_put(w, object, "window",
		       overhead->torch ? json_null() : cost_object(w, &overhead->window));
	jsonwriter_put(w, object, "audits", audits_object(w, &overhead->audits));
	jsonwriter_put(w, object, "left_out", left_out);
	jsonwriter_put(w, object, "core_pct_per_rank",
		       overhead->own.rank_ns == 0
			       ? json_null()
			       : jsonwriter_number(own_cpu_ms_per_s(&overhead->own,
								    own_cpu_sum(&overhead->own)) /
						   10.0));
	jsonwriter_put(w, object, "threads", threads_object(w, &overhead->own));
	return object;
}

static json_t *use_object(struct json_writer *w, const struct report_use *use)
{
	const struct {
		const char *key;
		double value;
	} numbers[] = {
		{ "busy_frac", use->busy_frac },
		{ "compute_frac", use->compute_frac },
		{ "comm_frac", use->comm_frac },
		{ "comm_exposed_frac", use->comm_alone_frac },
		{ "memory_frac", use->memory_frac },
		{ "memory_exposed_frac", use->memory_alone_frac },
		{ "idle_frac", 1 - use->busy_frac },
		{ "starved_frac", use->starved_frac },
		{ "kernels_per_iteration", use->kernels },
		{ "short_kernel_frac", use->short_frac },
		{ "launch_delay_us", use->launch_delay_us },
		{ "alloc_calls_per_iteration", use->alloc_calls },
		{ "alloc_ms_per_iteration", use->alloc_ms },
	};
	json_t *object;

	if (!use->known)
		return json_null();
	object = json_object();
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		jsonwriter_put(w, object, numbers[i].key, jsonwriter_number(numbers[i].value));
	return object;
}

static json_t *worker_object(struct json_writer *w, const struct report_worker *worker)
{
	json_t *object = json_object(), *iterations = json_array();

	jsonwriter_put(w, object, "rank", json_integer(worker->rank));
	jsonwriter_put(w, object, "host", jsonwriter_text(worker->host));
	jsonwriter_put(w, object, "source", jsonwriter_text(worker->source));
	jsonwriter_put(w, object, "window_ms", jsonwriter_number(worker->window_ms));
	for (size_t i = 0; i < worker->iteration_cnt; i++)
		jsonwriter_push(w, iterations, jsonwriter_number(worker->iteration_ms[i]));
	jsonwriter_put(w, object, "iteration_ms", iterations);
	jsonwriter_put(w, object, "class_frac", jsonwriter_classes(w, worker->class_frac));
	jsonwriter_put(w, object, "comm_hidden_frac", jsonwriter_number(worker->comm_hidden_frac));
	jsonwriter_put(w, object, "gpu", use_object(w, &worker->use));
	jsonwriter_put(w, object, "late_ms", json_lateness(w, worker));
	return object;
}

static json_t *total_object(struct json_writer *w, const struct report_total *total)
{
	json_t *object = json_object();

	jsonwriter_put(w, object, "name", jsonwriter_text(total->name));
	jsonwriter_put(w, object, "kind", jsonwriter_text(event_kind_name(total->kind)));
	jsonwriter_put(w, object, "class", jsonwriter_text(event_class_name(total->class)));
	jsonwriter_put(w, object, "per_iteration", jsonwriter_number(total->cnt));
	jsonwriter_put(w, object, "ms_per_iteration", jsonwriter_number(total->ms));
	jsonwriter_put(w, object, "longest_ms", jsonwriter_number(total->longest_ms));
	jsonwriter_put(w, object, "device_idle_ms_per_iteration",
		       jsonwriter_number(total->idle_ms));
	jsonwriter_put(w, object, "gbytes_per_s", jsonwriter_number(total->gbytes_per_s));
	return object;
}

static json_t *collective_object(struct json_writer *w, const struct report_collective *collective)
{
	json_t *object = json_object();

	jsonwriter_put(w, object, "operation", jsonwriter_text(collective->operation));
	jsonwriter_put(w, object, "group_size",
		       collective->group_size > 0 ? json_integer(collective->group_size)
						  : json_null());
	jsonwriter_put(w, object, "bytes", jsonwriter_number(collective->bytes));
	jsonwriter_put(w, object, "per_iteration", jsonwriter_number(collective->cnt));
	jsonwriter_put(w, object, "ms_per_iteration", jsonwriter_number(collective->ms));
	jsonwriter_put(w, object, "latency_ms", jsonwriter_number(collective->latency_ms));
	jsonwriter_put(w, object, "bus_gbytes_per_s",
		       jsonwriter_number(collective->bus_gbytes_per_s));
	jsonwriter_put(w, object, "matched", json_boolean(collective->matched));
	return object;
}

/* Where the time went, beside findings. */
static void put_activity(struct json_writer *w, json_t *root, const struct report *report)
{
	json_t *totals = json_array(), *collectives = json_array();

	for (size_t i = 0; i < report->total_cnt; i++)
		jsonwriter_push(w, totals, total_object(w, &report->totals[i]));
	jsonwriter_put(w, root, "totals", totals);
	for (size_t i = 0; i < report->collective_cnt; i++)
		jsonwriter_push(w, collectives, collective_object(w, &report->collectives[i]));
	jsonwriter_put(w, root, "collectives", collectives);
}

static json_t *wait_object(struct json_writer *w, const struct report_wait *wait)
{
	json_t *object = json_object();

	jsonwriter_put(w, object, "from", json_integer(wait->from));
	jsonwriter_put(w, object, "to", json_integer(wait->to));
	jsonwriter_put(w, object, "wait_ms", jsonwriter_number(wait->wait_ms));
	jsonwriter_put(w, object, "collectives", json_integer((json_int_t)wait->collective_cnt));
	return object;
}

static json_t *trigger_object(struct json_writer *w, const struct report_trigger *trigger)
{
	json_t *object;

	if (!trigger->present)
		return json_null();
	object = json_object();
	jsonwriter_put(w, object, "kind", jsonwriter_text(trigger->kind));
	jsonwriter_put(w, object, "baseline_iteration_ms",
		       jsonwriter_number(trigger->baseline_iteration_ms));
	jsonwriter_put(w, object, "current_iteration_ms",
		       jsonwriter_number(trigger->current_iteration_ms));
	jsonwriter_put(w, object, "step", json_integer(trigger->step));
	jsonwriter_put(w, object, "since_step",
		       trigger->since_step > 0 ? json_integer(trigger->since_step) : json_null());
	return object;
}

static json_t *share_object(struct json_writer *w, const struct report_share *share)
{
	json_t *object = json_object();

	jsonwriter_put(w, object, "name", jsonwriter_text(share->name));
	jsonwriter_put(w, object, "caller", jsonwriter_text(share->caller));
	jsonwriter_put(w, object, "places", json_integer((json_int_t)share->place_cnt));
	jsonwriter_put(w, object, "class", jsonwriter_text(event_class_name(share->class)));
	jsonwriter_put(w, object, "frac", jsonwriter_number(share->frac));
	jsonwriter_put(w, object, "ms_per_iteration", jsonwriter_number(share->ms_per_iteration));
	return object;
}

static json_t *growth_object(struct json_writer *w, const struct report_growth *growth)
{
	json_t *object = json_object();

	jsonwriter_put(w, object, "function", jsonwriter_text(growth->function));
	jsonwriter_put(w, object, "ranks", jsonwriter_ranks(growth->ranks, growth->rank_cnt));
	jsonwriter_put(w, object, "before_ms", jsonwriter_number(growth->before_ms));
	jsonwriter_put(w, object, "now_ms", jsonwriter_number(growth->now_ms));
	return object;
}

static json_t *growth_array(struct json_writer *w, const struct report *report)
{
	json_t *growth = json_array();

	for (size_t i = 0; i < report->growth_cnt; i++)
		jsonwriter_push(w, growth, growth_object(w, &report->growth[i]));
	return growth;
}

static json_t *failure_object(struct json_writer *w, const struct report_failure *failure)
{
	json_t *object = json_object();

	jsonwriter_put(w, object, "source", jsonwriter_text(failure->source));
	jsonwriter_put(w, object, "why", jsonwriter_text(failure->why));
	return object;
}

/* Data of the pictures, and the inputs that could not be used. */
static void put_extras(struct json_writer *w, json_t *root, const struct report *report)
{
	size_t wait_cnt = MIN(report->wait_cnt, (size_t)WAITS_MAX);
	json_t *workers = json_array(), *waits = json_array(), *failures = json_array();
	json_t *shares = json_array();

	jsonwriter_put(w, root, "notes", jsonwriter_text_array(w, report->notes, report->note_cnt));
	for (size_t i = 0; i < report->worker_cnt; i++)
		jsonwriter_push(w, workers, worker_object(w, &report->workers[i]));
	jsonwriter_put(w, root, "workers", workers);
	for (size_t i = 0; i < wait_cnt; i++)
		jsonwriter_push(w, waits, wait_object(w, &report->waits[i]));
	jsonwriter_put(w, root, "waits", waits);
	jsonwriter_put(w, root, "trigger", trigger_object(w, &report->trigger));
	jsonwriter_put(w, root, "overhead",
		       report->overhead.present ? overhead_object(w, &report->overhead)
						: json_null());
	for (size_t i = 0; i < report->failure_cnt; i++)
		jsonwriter_push(w, failures, failure_object(w, &report->failures[i]));
	jsonwriter_put(w, root, "failures", failures);
	jsonwriter_put(w, root, "rank_source", jsonwriter_text(report->rank_source));
	jsonwriter_put(w, root, "waits_omitted",
		       json_integer((json_int_t)(report->wait_cnt - wait_cnt)));
	jsonwriter_put(w, root, "growth", growth_array(w, report));
	jsonwriter_put(w, root, "alike_factor",
		       report->alike_factor > 0 ? jsonwriter_number(report->alike_factor)
						: json_null());
	for (size_t i = 0; i < report->share_cnt; i++)
		jsonwriter_push(w, shares, share_object(w, &report->shares[i]));
	jsonwriter_put(w, root, "functions", shares);
	put_activity(w, root, report);
	jsonwriter_put(w, root, "origin", whenwhere_json(w, &report->origin));
	jsonwriter_put(w, root, "pace", json_pace(w, &report->pace));
	jsonwriter_put(w, root, "lanes", json_lanes(w, &report->lanes));
	jsonwriter_put(w, root, "stacks", json_flame(w, &report->flame));
	if (report->stack_cnt > 0) /* of a job that hangs */
		jsonwriter_put(w, root, "hang_stacks", hangtree_json(w, report));
}

static void put_all(struct json_writer *w, json_t *root, const struct report *report)
{
	json_t *findings = json_array();

	jsonwriter_put(w, root, "schema", jsonwriter_text("perftracker.report.v2"));
	jsonwriter_put(w, root, "verdict", jsonwriter_text(verdict_name(report->verdict)));
	jsonwriter_put(w, root, "reason", jsonwriter_text(report->reason));
	jsonwriter_put(w, root, "job", job_object(w, report));
	jsonwriter_put(w, root, "coverage", coverage_object(w, report));
	for (size_t i = 0; i < report->finding_cnt; i++)
		jsonwriter_push(w, findings, finding_fields_json(w, &report->findings[i]));
	jsonwriter_put(w, root, "findings", findings);
	put_extras(w, root, report);
}

int report_json(const struct report *report, struct str *out)
{
	struct json_writer w = { 0 };
	json_t *root = json_object();

	put_all(&w, root, report);
	return jsonwriter_print(&w, root, out);
}
