/* SPDX-License-Identifier: Apache-2.0 */
/* perftracker.diff.v1: docs/compare-schema.json. Keys come in the order of the schema. */
#include "report/comparison/formats.h"
#include "report/jsonwriter.h"

static json_t *side_object(struct json_writer *w, const struct comparison_side *side)
{
	json_t *object = json_object();

	jsonwriter_put(w, object, "label", jsonwriter_text(side->label));
	jsonwriter_put(w, object, "job_id", jsonwriter_text(side->job_id));
	jsonwriter_put(w, object, "device", jsonwriter_text(side->device_name));
	jsonwriter_put(w, object, "workers", json_integer((json_int_t)side->worker_cnt));
	jsonwriter_put(w, object, "windows", json_integer((json_int_t)side->window_cnt));
	jsonwriter_put(w, object, "iterations",
		       side->iterations_known ? jsonwriter_number(side->iterations) : json_null());
	jsonwriter_put(w, object, "iteration_ms", jsonwriter_number(side->iteration_ms));
	jsonwriter_put(w, object, "class_ms", jsonwriter_classes(w, side->class_ms));
	return object;
}

static json_t *values_object(struct json_writer *w, const struct change_side *side)
{
	json_t *object = json_object();

	jsonwriter_put(w, object, "ms", jsonwriter_number(side->ms));
	jsonwriter_put(w, object, "thread_ms", jsonwriter_number(side->thread_ms));
	jsonwriter_put(w, object, "tree_ms", jsonwriter_number(side->tree_ms));
	jsonwriter_put(w, object, "runs", jsonwriter_number(side->runs));
	return object;
}

static json_t *change_object(struct json_writer *w, const struct change *c)
{
	json_t *object = json_object();

	jsonwriter_put(w, object, "kind", jsonwriter_text(change_kind_name(c->kind)));
	jsonwriter_put(w, object, "key", jsonwriter_text(c->key));
	jsonwriter_put(w, object, "name", jsonwriter_text(c->name));
	jsonwriter_put(w, object, "old_name",
		       c->old_name != NULL ? jsonwriter_text(c->old_name) : json_null());
	jsonwriter_put(w, object, "class", jsonwriter_text(event_class_name(c->class)));
	jsonwriter_put(w, object, "stack", jsonwriter_text_array(w, c->stack, c->stack_cnt));
	jsonwriter_put(w, object, "old_stack",
		       jsonwriter_text_array(w, c->old_stack, c->old_stack_cnt));
	jsonwriter_put(w, object, "launched_by",
		       c->launched_by != NULL ? jsonwriter_text(c->launched_by) : json_null());
	jsonwriter_put(w, object, "functions", json_integer((json_int_t)c->function_cnt));
	jsonwriter_put(w, object, "before", values_object(w, &c->before));
	jsonwriter_put(w, object, "after", values_object(w, &c->after));
	jsonwriter_put(w, object, "delta_ms", jsonwriter_number(c->delta_ms));
	jsonwriter_put(w, object, "delta_pct", jsonwriter_number(c->delta_pct));
	jsonwriter_put(w, object, "p", jsonwriter_number(c->p));
	jsonwriter_put(w, object, "q", jsonwriter_number(c->q));
	jsonwriter_put(w, object, "significant", json_boolean(c->significant));
	jsonwriter_put(w, object, "confidence", jsonwriter_text(confidence_name(c->confidence)));
	return object;
}

static json_t *basis_array(struct json_writer *w, unsigned int basis)
{
	json_t *array = json_array();

	if ((basis & BASIS_ITERATIONS) != 0)
		jsonwriter_push(w, array, jsonwriter_text("iterations"));
	if ((basis & BASIS_RANKS) != 0)
		jsonwriter_push(w, array, jsonwriter_text("ranks"));
	if ((basis & BASIS_WINDOWS) != 0)
		jsonwriter_push(w, array, jsonwriter_text("windows"));
	return array;
}

static void put_verdict(struct json_writer *w, json_t *root, const struct comparison *c)
{
	jsonwriter_put(w, root, "schema", jsonwriter_text("perftracker.diff.v1"));
	jsonwriter_put(w, root, "verdict", jsonwriter_text(comparison_verdict_name(c->verdict)));
	jsonwriter_put(w, root, "delta_ms", jsonwriter_number(c->delta_ms));
	jsonwriter_put(w, root, "delta_pct", jsonwriter_number(c->delta_pct));
	jsonwriter_put(w, root, "p", jsonwriter_number(c->p));
	jsonwriter_put(w, root, "tested_over", basis_array(w, c->basis));
	jsonwriter_put(w, root, "confidence", jsonwriter_text(confidence_name(c->confidence)));
	jsonwriter_put(w, root, "level", jsonwriter_number(c->level));
	jsonwriter_put(w, root, "min_change_pct", jsonwriter_number(c->min_change_pct));
}

int comparison_json(const struct comparison *c, struct str *out)
{
	struct json_writer w = { 0 };
	json_t *root = json_object(), *changes = json_array(), *small = json_object();

	put_verdict(&w, root, c);
	jsonwriter_put(&w, root, "before", side_object(&w, &c->before));
	jsonwriter_put(&w, root, "after", side_object(&w, &c->after));
	jsonwriter_put(&w, root, "common_frac", jsonwriter_number(c->common_frac));
	for (size_t i = 0; i < c->change_cnt; i++)
		jsonwriter_push(&w, changes, change_object(&w, &c->changes[i]));
	jsonwriter_put(&w, root, "changes", changes);
	jsonwriter_put(&w, small, "changes", json_integer((json_int_t)c->small_cnt));
	jsonwriter_put(&w, small, "delta_ms", jsonwriter_number(c->small_ms));
	jsonwriter_put(&w, root, "smaller", small);
	jsonwriter_put(&w, root, "unlisted_delta_ms", jsonwriter_number(c->rest_ms));
	jsonwriter_put(&w, root, "notes", jsonwriter_text_array(&w, c->notes, c->note_cnt));
	return jsonwriter_print(&w, root, out);
}
