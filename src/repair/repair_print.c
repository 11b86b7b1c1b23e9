/* SPDX-License-Identifier: Apache-2.0 */
/* The verdict on a repair as text and as JSON. */
#include "base/text/clean.h"
#include "repair/repair_parts.h"
#include "report/jsonwriter.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define NAME_CELLS 90u

/* --- text --- */

static const char *words_of(enum repair_verdict verdict)
{
	static const char *const words[] = {
		[REPAIR_FIXED] = "FIXED",
		[REPAIR_PARTLY] = "PARTLY FIXED",
		[REPAIR_NO_GAIN] = "GONE, BUT NOTHING GAINED",
		[REPAIR_NOT_FIXED] = "NOT FIXED",
		[REPAIR_UNDECIDED] = "UNDECIDED",
	};

	return words[verdict];
}

static void print_side(struct str *out, const char *when, const struct repair_side *side)
{
	str_printf(out, "  %-7s ", when);
	if (isfinite(side->iteration_ms))
		str_printf(out, "%10.4g ms", side->iteration_ms);
	else
		str_printf(out, "%13s", "-");
	str_append(out, "  ");
	clean_append_short(out, repair_member(side->root, "verdict"), 16);
	str_append(out, "  ");
	clean_append_short(out, side->name, NAME_CELLS);
	str_append(out, "\n");
}

static void print_gain(struct str *out, const json_t *finding)
{
	double gain = repair_number(finding, "gain_ms_per_iteration");

	if (isfinite(gain))
		str_printf(out, "%9.4g ms", gain);
	else
		str_printf(out, "%12s", "-");
}

static void print_finding(struct str *out, const char *state, const json_t *before,
			  const json_t *after)
{
	const json_t *finding = before != NULL ? before : after;

	str_printf(out, "  %-8s", state);
	print_gain(out, before);
	print_gain(out, after);
	str_append(out, "  ");
	clean_append_short(out, repair_member(finding, "id"), 8);
	str_append(out, "  ");
	clean_append_short(out, repair_member(finding, "title"), NAME_CELLS);
	str_append(out, "\n");
}

static void print_time(struct str *out, const struct repair *repair)
{
	bool known = isfinite(repair->returned_ms);

	if (isfinite(repair->promised_ms))
		str_printf(out, "Promised %s%.4g ms per iteration; ",
			   repair->is_bound ? "at most " : "", repair->promised_ms);
	if (known && repair->returned_ms >= 0)
		str_printf(out, "%.4g ms came back", repair->returned_ms);
	else if (known)
		str_printf(out, "%s iteration takes %.4g ms longer",
			   isfinite(repair->promised_ms) ? "an" : "An", -repair->returned_ms);
	else
		str_append(out, "what came back: not known");
	if (known && isfinite(repair->chance_ms))
		str_printf(out, " (+- %.4g ms by chance)", repair->chance_ms);
	str_append(out, ".\n");
}

int repair_text(const struct repair *repair, struct str *out)
{
	size_t start = out->len;

	str_printf(out, "%s: %s.\n", words_of(repair->verdict), repair->reason);
	print_time(out, repair);
	str_append(out, "\n");
	print_side(out, "before", &repair->before);
	print_side(out, "after", &repair->after);
	if (repair->findings.cnt + repair->appeared.cnt > 0)
		str_append(out, "\n  finding       before       after\n");
	for (size_t i = 0; i < repair->findings.cnt; i++) {
		const struct repair_finding *one = &repair->findings.data[i];

		print_finding(out, repair_state_name(one->state), one->before, one->after);
	}
	vec_foreach(one, &repair->appeared)
		print_finding(out, "new", NULL, *one);
	return str_finish(out, start);
}

/* --- JSON --- */

static json_t *side_object(struct json_writer *w, const struct repair_side *side)
{
	json_t *ret = json_object(), *job = json_object_get(side->root, "job");

	jsonwriter_put_text(w, ret, "report", side->name);
	jsonwriter_put_text(w, ret, "verdict", repair_member(side->root, "verdict"));
	jsonwriter_put(w, ret, "world_size", jsonwriter_number(repair_number(job, "world_size")));
	jsonwriter_put(w, ret, "iterations", json_integer((json_int_t)side->iteration_cnt));
	jsonwriter_put(w, ret, "iteration_ms", jsonwriter_number(side->iteration_ms));
	return ret;
}

static json_t *finding_object(struct json_writer *w, const char *state, const json_t *before,
			      const json_t *after)
{
	static const char *const keys[] = { "id", "cause", "title", "ranks" };
	const json_t *finding = before != NULL ? before : after;
	json_t *ret = json_object();

	jsonwriter_put_text(w, ret, "state", state);
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		jsonwriter_put_text(w, ret, keys[i], repair_member(finding, keys[i]));
	jsonwriter_put_text(w, ret, "function",
			    repair_member(json_object_get(finding, "function"), "name"));
	jsonwriter_put(w, ret, "before_ms",
		       jsonwriter_number(repair_number(before, "gain_ms_per_iteration")));
	jsonwriter_put(w, ret, "after_ms",
		       jsonwriter_number(repair_number(after, "gain_ms_per_iteration")));
	return ret;
}

int repair_json(const struct repair *repair, struct str *out)
{
	struct json_writer w = { 0 };
	json_t *root = json_object(), *findings = json_array();

	jsonwriter_put_text(&w, root, "schema", "perftracker.repair.v1");
	jsonwriter_put_text(&w, root, "verdict", repair_verdict_name(repair->verdict));
	jsonwriter_put_text(&w, root, "reason", repair->reason);
	jsonwriter_put(&w, root, "finding",
		       repair->findings.cnt > 0 ? json_integer((json_int_t)repair->judged + 1)
						: json_null());
	jsonwriter_put(&w, root, "promised_ms", jsonwriter_number(repair->promised_ms));
	jsonwriter_put_text(&w, root, "promise_is", repair->is_bound ? "bound" : "estimate");
	jsonwriter_put(&w, root, "returned_ms", jsonwriter_number(repair->returned_ms));
	jsonwriter_put(&w, root, "chance_ms", jsonwriter_number(repair->chance_ms));
	jsonwriter_put(&w, root, "before", side_object(&w, &repair->before));
	jsonwriter_put(&w, root, "after", side_object(&w, &repair->after));
	for (size_t i = 0; i < repair->findings.cnt; i++) {
		const struct repair_finding *one = &repair->findings.data[i];

		jsonwriter_push(
			&w, findings,
			finding_object(&w, repair_state_name(one->state), one->before, one->after));
	}
	vec_foreach(one, &repair->appeared)
		jsonwriter_push(&w, findings, finding_object(&w, "new", NULL, *one));
	jsonwriter_put(&w, root, "findings", findings);
	return jsonwriter_print(&w, root, out);
}
