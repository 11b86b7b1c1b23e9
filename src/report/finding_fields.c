/* SPDX-License-Identifier: Apache-2.0 */
#include "report/finding_fields.h"

#include "base/text/clean.h"
#include "model/rankset.h"
#include "report/phrase.h"

#include <math.h>
#include <stddef.h>

static const char *scope_word(const struct finding *finding)
{
	return finding->all_workers ? "all" : "some";
}

static const char *class_word(const struct finding *finding)
{
	return event_class_name(finding->class);
}

static const char *confidence_word(const struct finding *finding)
{
	return confidence_name(finding->confidence);
}

static const char *gain_word(const struct finding *finding)
{
	return finding->gain_at_most ? "bound" : "estimate";
}

static void time_phrase(struct str *out, const struct finding *finding, size_t cells)
{
	(void)cells;
	phrase_time(out, finding);
}

static void mu_phrase(struct str *out, const struct finding *finding, size_t cells)
{
	(void)cells;
	phrase_utilization(out, finding);
}

static void sigma_phrase(struct str *out, const struct finding *finding, size_t cells)
{
	(void)cells;
	phrase_pct(out, finding->sigma.present ? finding->sigma.value * 100.0 : (double)NAN);
}

static void gain_phrase(struct str *out, const struct finding *finding, size_t cells)
{
	(void)cells;
	phrase_pct(out, finding->gain_pct);
}

#define AT(field) .off = offsetof(struct finding, field)
#define LIST(field, cnt) AT(field), .cnt_off = offsetof(struct finding, cnt)
#define PATTERN(text) "\"pattern\":\"" text "\""

static const struct finding_field function_fields[] = {
	{ .key = "key",
	  .type = FIELD_TEXT,
	  AT(key),
	  .rules = PATTERN("^([0-9a-f]{32})?$"),
	  .about =
		  "Identity of the function, the same on all workers; empty when the finding is not "
		  "about a single function." },
	{ .key = "name", .type = FIELD_TEXT, AT(name) },
	{ .key = "class",
	  .type = FIELD_WORD,
	  .word = class_word,
	  .rules = "\"$ref\":\"#/$defs/class\"" },
	{ .key = "stack",
	  .type = FIELD_TEXTS,
	  LIST(stack, stack_cnt),
	  .about = "Frames, outermost first, down to the function itself; of a gap, down to the "
		   "frame that contains it." },
};

static const struct finding_field fields[] = {
	{ .key = "id",
	  .type = FIELD_TEXT,
	  AT(id),
	  .rules = PATTERN("^PT-[0-9]{3}$"),
	  .about = "Stable; docs/findings.md lists all." },
	{ .key = "cause",
	  .type = FIELD_TEXT,
	  AT(cause),
	  .rules = PATTERN("^[a-z]+(-[a-z]+)*$"),
	  .about = "Stable; belongs to the id." },
	{ .key = "title",
	  .type = FIELD_TEXT,
	  AT(title),
	  .about = "One line for people; may change." },
	{ .key = "function",
	  .type = FIELD_OBJECT,
	  .inner = function_fields,
	  .inner_cnt = ARRAY_SIZE(function_fields) },
	{ .key = "scope",
	  .type = FIELD_WORD,
	  .word = scope_word,
	  .rules = "\"enum\":[\"some\",\"all\"]",
	  .about = "all: every analyzed worker, by comparison with the expectation." },
	{ .key = "ranks",
	  .type = FIELD_RANKS,
	  LIST(ranks, rank_cnt),
	  .title = "Workers",
	  .cells = 12,
	  .phrase = phrase_ranks },
	{ .key = "rank_count", .type = FIELD_COUNT, AT(rank_cnt), .about = "Size of ranks." },
	{ .key = "hosts",
	  .type = FIELD_JOINED,
	  LIST(hosts, host_cnt),
	  .about = "Distinct hosts of the ranks, joined by commas." },
	{ .key = "victim_ranks", .type = FIELD_RANKS, LIST(victims, victim_cnt) },
	{ .key = "time_ms_per_iteration",
	  .type = FIELD_NUMBER,
	  AT(time_ms_per_iteration),
	  .about = "Critical time in the function, per iteration.",
	  .title = "Per iteration",
	  .cells = 18,
	  .is_number = true,
	  .phrase = time_phrase },
	{ .key = "delta_ms_per_iteration",
	  .type = FIELD_NUMBER,
	  AT(delta_ms_per_iteration),
	  .about = "Its difference from the reference." },
	{ .key = "beta",
	  .type = FIELD_VALUE,
	  AT(beta),
	  .about = "Share of the window on the critical path, 0 to 1." },
	{ .key = "mu",
	  .type = FIELD_VALUE,
	  AT(mu),
	  .about = "Utilization of the resource, 0 to 1.",
	  .title = "Utilization",
	  .cells = 22,
	  .is_number = true,
	  .of_resource = true,
	  .phrase = mu_phrase },
	{ .key = "sigma",
	  .type = FIELD_VALUE,
	  AT(sigma),
	  .about = "Deviation of the utilization.",
	  .title = "Dev.",
	  .cells = 5,
	  .is_number = true,
	  .of_resource = true,
	  .phrase = sigma_phrase },
	{ .key = "expectation_distance",
	  .type = FIELD_NUMBER,
	  AT(expectation_distance),
	  .about = "D, equation 7." },
	{ .key = "differential_distance",
	  .type = FIELD_NUMBER,
	  AT(differential_distance),
	  .about = "Delta, equation 10." },
	{ .key = "threshold",
	  .type = FIELD_NUMBER,
	  AT(threshold),
	  .about = "median + 5 MAD of Delta, equation 11." },
	{ .key = "gain_ms_per_iteration",
	  .type = FIELD_NUMBER,
	  AT(gain_ms_per_iteration),
	  .about = "Time that is recoverable, per iteration: a repair saves it." },
	{ .key = "gain_pct",
	  .type = FIELD_NUMBER,
	  AT(gain_pct),
	  .rules = "\"maximum\":100",
	  .about = "The same as a percentage of the iteration.",
	  .title = "Recoverable",
	  .cells = 11,
	  .is_number = true,
	  .phrase = gain_phrase },
	{ .key = "gain_is",
	  .type = FIELD_WORD,
	  .word = gain_word,
	  .rules = "\"enum\":[\"estimate\",\"bound\"]",
	  .about = "bound: all that is lost there, of which a repair saves a part." },
	{ .key = "confidence",
	  .type = FIELD_WORD,
	  .word = confidence_word,
	  .rules = "\"enum\":[\"high\",\"medium\",\"low\"]" },
	{ .key = "evidence",
	  .type = FIELD_TEXTS,
	  LIST(evidence, evidence_cnt),
	  .about = "Measurements, one line each." },
	{ .key = "advice", .type = FIELD_TEXT, AT(advice), .about = "What to do next." },
	{ .key = "stalls_explain",
	  .type = FIELD_EXPLAINED,
	  AT(stalls),
	  .about =
		  "Only after a stall window of a job that became slow: how much of the time that "
		  "its iterations take longer than before is that of stalls of training threads, and how much "
		  "is not. bound: at most and at least so much." },
};

const struct finding_field *finding_fields_column(const struct finding_field *after,
						  bool utilization)
{
	const struct finding_field *field = after == NULL ? fields : after + 1;

	for (; field < fields + ARRAY_SIZE(fields); field++) {
		if (field->title != NULL && (utilization || !field->of_resource))
			return field;
	}
	return NULL;
}

/* --- JSON --- */

static json_t *joined_json(const char *const *texts, size_t cnt)
{
	_cleanup_(str_done) struct str out = { 0 };

	for (size_t i = 0; i < cnt; i++) {
		str_append(&out, i > 0 ? "," : "");
		clean_append_utf8(&out, texts[i]);
	}
	return str_error(&out) == 0 ? json_stringn(str_borrow(&out), out.len) : NULL;
}

static json_t *value_json(struct json_writer *w, const struct finding_value *value)
{
	json_t *object;

	if (!value->present)
		return json_null();
	object = json_object();
	jsonwriter_put(w, object, "value", jsonwriter_number(value->value));
	jsonwriter_put(w, object, "reference", jsonwriter_number(value->reference));
	jsonwriter_put(w, object, "reference_kind",
		       jsonwriter_text(reference_name(value->reference_kind)));
	return object;
}

static json_t *explained_json(struct json_writer *w, const struct finding_explained *explained)
{
	json_t *object = json_object();

	jsonwriter_put(w, object, "iteration_ms", jsonwriter_number(explained->iteration_ms));
	jsonwriter_put(w, object, "baseline_ms", jsonwriter_number(explained->baseline_ms));
	jsonwriter_put(w, object, "explained_pct", jsonwriter_number(100 * explained->frac));
	jsonwriter_put(w, object, "unexplained_pct",
		       jsonwriter_number(100 * (1 - explained->frac)));
	jsonwriter_put(w, object, "bound", json_boolean(explained->at_most));
	return object;
}

static json_t *fields_json(struct json_writer *w, const struct finding *finding,
			   const struct finding_field *rows, size_t cnt);

static bool is_left_out(const struct finding *finding, const struct finding_field *field)
{
	const void *at = (const char *)finding + field->off;

	return field->type == FIELD_EXPLAINED && !((const struct finding_explained *)at)->present;
}

static json_t *field_json(struct json_writer *w, const struct finding *finding,
			  const struct finding_field *field)
{
	const void *at = (const char *)finding + field->off;
	const void *cnt_at = (const char *)finding + field->cnt_off;

	switch (field->type) {
	case FIELD_TEXT:
		return jsonwriter_text(*(const char *const *)at);
	case FIELD_TEXTS:
		return jsonwriter_text_array(w, *(const char *const *const *)at,
					     *(const size_t *)cnt_at);
	case FIELD_JOINED:
		return joined_json(*(const char *const *const *)at, *(const size_t *)cnt_at);
	case FIELD_RANKS:
		return jsonwriter_ranks(*(const int *const *)at, *(const size_t *)cnt_at);
	case FIELD_COUNT:
		return json_integer((json_int_t) * (const size_t *)at);
	case FIELD_NUMBER:
		return jsonwriter_number(*(const double *)at);
	case FIELD_VALUE:
		return value_json(w, at);
	case FIELD_WORD:
		return jsonwriter_text(field->word(finding));
	case FIELD_OBJECT:
		return fields_json(w, finding, field->inner, field->inner_cnt);
	case FIELD_EXPLAINED:
		return explained_json(w, at);
	}
	return NULL;
}

static json_t *fields_json(struct json_writer *w, const struct finding *finding,
			   const struct finding_field *rows, size_t cnt)
{
	json_t *object = json_object();

	for (size_t i = 0; i < cnt; i++)
		if (!is_left_out(finding, &rows[i]))
			jsonwriter_put(w, object, rows[i].key, field_json(w, finding, &rows[i]));
	return object;
}

json_t *finding_fields_json(struct json_writer *w, const struct finding *finding)
{
	return fields_json(w, finding, fields, ARRAY_SIZE(fields));
}

/* --- schema --- */

static json_t *fields_schema(const struct finding_field *rows, size_t cnt);

static json_t *field_schema(const struct finding_field *field)
{
	static const char *const types[] = {
		[FIELD_TEXT] = "{\"type\":\"string\"}",
		[FIELD_TEXTS] = "{\"type\":\"array\",\"items\":{\"type\":\"string\"}}",
		[FIELD_JOINED] = "{\"type\":\"string\"}",
		[FIELD_RANKS] = "{\"$ref\":\"#/$defs/rank_set\"}",
		[FIELD_COUNT] = "{\"type\":\"integer\",\"minimum\":0}",
		[FIELD_NUMBER] = "{\"type\":[\"number\",\"null\"]}",
		[FIELD_VALUE] = "{\"$ref\":\"#/$defs/value\"}",
		[FIELD_WORD] = "{}",
		[FIELD_OBJECT] = "{}",
		[FIELD_EXPLAINED] =
			"{\"type\":\"object\",\"required\":[\"iteration_ms\",\"baseline_ms\","
			"\"explained_pct\",\"unexplained_pct\",\"bound\"],\"properties\":{"
			"\"iteration_ms\":{\"type\":\"number\"},\"baseline_ms\":{\"type\":\"number\"},"
			"\"explained_pct\":{\"type\":\"number\",\"minimum\":0,\"maximum\":100},"
			"\"unexplained_pct\":{\"type\":\"number\",\"minimum\":0,\"maximum\":100},"
			"\"bound\":{\"type\":\"boolean\"}},\"additionalProperties\":false}",
	};
	json_t *schema = field->type == FIELD_OBJECT ? fields_schema(field->inner, field->inner_cnt)
						     : json_loads(types[field->type], 0, NULL);
	_cleanup_(str_done) struct str rules = { 0 };
	json_t *more;

	str_printf(&rules, "{%s}", field->rules != NULL ? field->rules : "");
	more = json_loads(str_borrow(&rules), 0, NULL);
	(void)json_object_update(schema, more);
	json_decref(more);
	if (field->about != NULL)
		(void)json_object_set_new(schema, "description", json_string(field->about));
	return schema;
}

static json_t *fields_schema(const struct finding_field *rows, size_t cnt)
{
	json_t *required = json_array(), *properties = json_object();

	for (size_t i = 0; i < cnt; i++) {
		if (rows[i].type != FIELD_EXPLAINED)
			(void)json_array_append_new(required, json_string(rows[i].key));
		(void)json_object_set_new(properties, rows[i].key, field_schema(&rows[i]));
	}
	return json_pack("{s:s, s:o, s:o, s:b}", "type", "object", "required", required,
			 "properties", properties, "additionalProperties", 0);
}

json_t *finding_fields_schema(void)
{
	return fields_schema(fields, ARRAY_SIZE(fields));
}
