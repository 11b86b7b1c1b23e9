/* SPDX-License-Identifier: Apache-2.0 */
/* Whether two reports are of one job that does the same work, and what they can show. */
#include "repair/repair_parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

double repair_number(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

const char *repair_member(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text != NULL ? text : "";
}

static const json_t *part(const struct repair_side *side, const char *key)
{
	return json_object_get(side->root, key);
}

/* --- the same work --- */

/* Whether a row of "totals" or "functions" is work of a device. */
static bool computes(const json_t *row)
{
	const char *kind = repair_member(row, "kind");

	return strcmp(repair_member(row, "class"), "compute") == 0 &&
	       (kind[0] == '\0' || strcmp(kind, "kernel") == 0);
}

static bool has_name(const json_t *rows, const char *name)
{
	for (size_t i = 0; i < json_array_size(rows); i++) {
		if (computes(json_array_get(rows, i)) &&
		    strcmp(repair_member(json_array_get(rows, i), "name"), name) == 0)
			return true;
	}
	return false;
}

/* Milliseconds of an iteration in rows that compute. in not NULL: of the names in it only. */
static double computed_ms(const json_t *rows, const json_t *in)
{
	double sum = 0;

	for (size_t i = 0; i < json_array_size(rows); i++) {
		const json_t *one = json_array_get(rows, i);
		double ms = repair_number(one, "ms_per_iteration");

		if (computes(one) && isfinite(ms) &&
		    (in == NULL || has_name(in, repair_member(one, "name"))))
			sum += ms;
	}
	return sum;
}

/* Bytes that the collectives of an iteration move; NAN: not known. */
static double moved_bytes(const json_t *collectives)
{
	double sum = 0;

	for (size_t i = 0; i < json_array_size(collectives); i++) {
		const json_t *one = json_array_get(collectives, i);

		sum += repair_number(one, "bytes") * repair_number(one, "per_iteration");
	}
	return json_array_size(collectives) > 0 ? sum : (double)NAN;
}

static bool is_far(double before, double after)
{
	return isfinite(before) && isfinite(after) && before > 0 && after > 0 &&
	       (after > before * REPAIR_WORK_FACTOR || before > after * REPAIR_WORK_FACTOR);
}

/*
 * Both lists have the largest rows only, so what is common may be little of one of them: of a slow
 * window fewer functions are listed.
 */
static bool runs_other_functions(const json_t *was, const json_t *is)
{
	double before = computed_ms(was, NULL), after = computed_ms(is, NULL);

	return before > 0 && after > 0 && computed_ms(was, is) < REPAIR_COMMON_FRAC * before &&
	       computed_ms(is, was) < REPAIR_COMMON_FRAC * after;
}

static bool moves_other_bytes(const struct repair *repair, char *reason)
{
	double before = moved_bytes(part(&repair->before, "collectives"));
	double after = moved_bytes(part(&repair->after, "collectives"));

	if (is_far(before, after))
		(void)snprintf(
			reason, REPAIR_REASON_BYTES,
			"collectives move %.3g MB in an iteration, before %.3g MB: the job does "
			"other work",
			after / 1e6, before / 1e6);
	return is_far(before, after);
}

static bool does_other_work(const struct repair *repair, char *reason)
{
	const json_t *finding = repair->findings.data[repair->judged].before;
	const char *class = repair_member(json_object_get(finding, "function"), "class");
	/* Else a repair leaves what the devices compute as it is. */
	bool is_device = strcmp(class, "compute") == 0 || strcmp(class, "memory") == 0;
	bool totals = computed_ms(part(&repair->before, "totals"), NULL) > 0 &&
		      computed_ms(part(&repair->after, "totals"), NULL) > 0;
	const json_t *was = part(&repair->before, totals ? "totals" : "functions");
	const json_t *is = part(&repair->after, totals ? "totals" : "functions");
	double before = computed_ms(was, is), after = computed_ms(is, was);

	if (runs_other_functions(was, is)) {
		(void)snprintf(
			reason, REPAIR_REASON_BYTES,
			"the devices run other functions: the reports are of other programs");
		return true;
	}
	if (!is_device && is_far(before, after)) {
		(void)snprintf(
			reason, REPAIR_REASON_BYTES,
			"the devices compute for %.3g ms of an iteration in the same functions, "
			"before %.3g ms: the job does other work",
			after, before);
		return true;
	}
	return moves_other_bytes(repair, reason);
}

bool repair_is_one_job(const struct repair *repair, char ret_reason[static REPAIR_REASON_BYTES])
{
	const json_t *was = part(&repair->before, "job"), *is = part(&repair->after, "job");
	double ranks[2] = { repair_number(was, "world_size"), repair_number(is, "world_size") };
	const char *marks[2] = { repair_member(json_object_get(was, "loop"), "marks"),
				 repair_member(json_object_get(is, "loop"), "marks") };

	if (isfinite(ranks[0]) && isfinite(ranks[1]) && ranks[0] != ranks[1]) {
		(void)snprintf(ret_reason, REPAIR_REASON_BYTES,
			       "the job had %.0f ranks before and has %.0f after", ranks[0],
			       ranks[1]);
		return false;
	}
	if (repair_member(was, "id")[0] != '\0' && repair_member(is, "id")[0] != '\0' &&
	    strcmp(repair_member(was, "id"), repair_member(is, "id")) != 0) {
		(void)snprintf(ret_reason, REPAIR_REASON_BYTES,
			       "the reports are of jobs with different names");
		return false;
	}
	if (marks[0][0] != '\0' && marks[1][0] != '\0' && strcmp(marks[0], marks[1]) != 0) {
		(void)snprintf(ret_reason, REPAIR_REASON_BYTES,
			       "an iteration is made of other marks than before");
		return false;
	}
	return !does_other_work(repair, ret_reason);
}

/* --- what the report after can show --- */

static bool has_source(const json_t *absent, const char *source)
{
	for (size_t i = 0; i < json_array_size(absent); i++) {
		if (strcmp(repair_member(json_array_get(absent, i), "source"), source) == 0)
			return true;
	}
	return false;
}

/* How many sources the report after lacks that the one before had. */
static size_t count_lost(const struct repair *repair)
{
	const json_t *was = json_object_get(part(&repair->before, "coverage"), "sources_absent");
	const json_t *is = json_object_get(part(&repair->after, "coverage"), "sources_absent");
	size_t cnt = 0;

	for (size_t i = 0; i < json_array_size(is); i++)
		cnt += !has_source(was, repair_member(json_array_get(is, i), "source"));
	return cnt;
}

bool repair_is_blind(const struct repair *repair, char ret_reason[static REPAIR_REASON_BYTES])
{
	const char *verdict = repair_member(repair->after.root, "verdict");
	size_t lost = count_lost(repair);
	double expected = repair_number(part(&repair->after, "coverage"), "workers_expected");
	double analyzed = repair_number(part(&repair->after, "coverage"), "workers_analyzed");

	if (strcmp(verdict, "healthy") != 0 && strcmp(verdict, "abnormal") != 0) {
		static const char *const words[] = { "inconclusive", "slow", "failed", "stuck",
						     "incomplete" };
		const char *word = "unknown";

		for (size_t i = 0; i < ARRAY_SIZE(words); i++)
			word = strcmp(verdict, words[i]) == 0 ? words[i] : word;
		(void)snprintf(ret_reason, REPAIR_REASON_BYTES,
			       "the verdict after is %s: the finding may be there unseen", word);
		return true;
	}
	if (isfinite(expected) && isfinite(analyzed) && analyzed < expected) {
		(void)snprintf(ret_reason, REPAIR_REASON_BYTES,
			       "%.0f of %.0f ranks are missing after: the finding may be there "
			       "unseen",
			       expected - analyzed, expected);
		return true;
	}
	if (lost > 0) {
		(void)snprintf(
			ret_reason, REPAIR_REASON_BYTES,
			"the report after lacks %zu source%s of evidence that the one before "
			"had: the finding may be there unseen",
			lost, plural((double)lost));
		return true;
	}
	return false;
}
