/* SPDX-License-Identifier: Apache-2.0 */
#include "repair/repair.h"

#include "base/test_alloc.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

/* A report in short; what is zero or NULL is left out, or as of a healthy job. */
struct made {
	const char *name, *verdict, *findings, *absent, *functions, *collectives, *marks;
	int ranks, missing;
	double iteration_ms, spread_ms;
	int iteration_cnt;
};

#define FINDING(id, cause, name, ranks, gain)                                                    \
	"{\"id\":\"" id "\",\"cause\":\"" cause "\",\"title\":\"t\",\"function\":{\"key\":\"\"," \
	"\"name\":\"" name "\"},\"ranks\":\"" ranks                                              \
	"\",\"gain_is\":\"estimate\",\"gain_ms_per_iteration\":" gain "}"
#define SLOW_PYTHON FINDING("PT-103", "cpu-bound-python", "forward", "1", "30")

static json_t *make(const struct made *how)
{
	struct str text = { 0 };
	int ranks = how->ranks > 0 ? how->ranks : 2;
	int cnt = how->iteration_cnt > 0 ? how->iteration_cnt : 6;
	json_t *ret;

	str_printf(
		&text,
		"{\"schema\":\"perftracker.report.v2\",\"verdict\":\"%s\",\"job\":{\"id\":\"%s\","
		"\"world_size\":%d,\"iteration_ms\":%s%.6g%s,\"loop\":{\"marks\":\"%s\"}},",
		how->verdict != NULL ? how->verdict : "abnormal",
		how->name != NULL ? how->name : "", ranks,
		how->iteration_ms > 0 ? "" : "null,\"x\":", how->iteration_ms, "",
		how->marks != NULL ? how->marks : "");
	str_printf(&text,
		   "\"coverage\":{\"workers_expected\":%d,\"workers_analyzed\":%d,"
		   "\"sources_absent\":[%s]},\"findings\":[%s],\"functions\":[%s],"
		   "\"collectives\":[%s],\"workers\":[",
		   ranks, ranks - how->missing, how->absent != NULL ? how->absent : "",
		   how->findings != NULL ? how->findings : "",
		   how->functions != NULL ? how->functions : "",
		   how->collectives != NULL ? how->collectives : "");
	for (int rank = 0; rank < ranks && how->iteration_ms > 0; rank++) {
		str_printf(&text, "%s{\"rank\":%d,\"iteration_ms\":[", rank > 0 ? "," : "", rank);
		for (int i = 0; i < cnt; i++)
			str_printf(&text, "%s%.6g", i > 0 ? "," : "",
				   how->iteration_ms + (i % 2 > 0 ? 1 : -1) * how->spread_ms);
		str_append(&text, "]}");
	}
	str_append(&text, "]}");
	ret = json_loads(str_borrow(&text), 0, NULL);
	assert_non_null(ret);
	str_done(&text);
	return ret;
}

static enum repair_verdict judge(const struct made *before, const struct made *after,
				 char ret_reason[REPAIR_REASON_BYTES])
{
	json_t *roots[2] = { make(before), make(after) };
	struct repair repair;
	struct err err = { "" };
	enum repair_verdict ret;

	assert_int_equal(repair_judge(&(struct repair_side){ .name = "a", .root = roots[0] },
				      &(struct repair_side){ .name = "b", .root = roots[1] }, NULL,
				      &repair, &err),
			 0);
	ret = repair.verdict;
	assert_true(strlen(repair.reason) > 0);
	if (ret_reason != NULL)
		memcpy(ret_reason, repair.reason, REPAIR_REASON_BYTES);
	repair_done(&repair);
	json_decref(roots[0]);
	json_decref(roots[1]);
	return ret;
}

static const struct made slow = { .findings = SLOW_PYTHON, .iteration_ms = 240, .spread_ms = 1 };

static void what_came_back_decides_when_the_finding_is_gone(void **state)
{
	static const struct {
		double after_ms, spread_ms;
		int cnt;
		enum repair_verdict verdict;
	} rows[] = {
		{ 210, 1, 6, REPAIR_FIXED },	  { 200, 1, 6, REPAIR_FIXED },
		{ 215, 1, 6, REPAIR_FIXED },	  { 222, 1, 6, REPAIR_PARTLY },
		{ 239, 1, 6, REPAIR_NO_GAIN },	  { 250, 1, 6, REPAIR_NO_GAIN },
		{ 225, 40, 6, REPAIR_UNDECIDED }, { 210, 40, 6, REPAIR_UNDECIDED },
		{ 210, 1, 2, REPAIR_UNDECIDED },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct made after = { .verdict = "healthy",
				      .iteration_ms = rows[i].after_ms,
				      .spread_ms = rows[i].spread_ms,
				      .iteration_cnt = rows[i].cnt };

		assert_int_equal(judge(&slow, &after, NULL), rows[i].verdict);
	}
}

static void a_finding_that_is_there_is_never_fixed(void **state)
{
	static const struct {
		const char *after;
		enum repair_verdict verdict;
	} rows[] = {
		{ SLOW_PYTHON, REPAIR_NOT_FIXED },
		{ FINDING("PT-103", "cpu-bound-python", "forward", "1", "50"), REPAIR_NOT_FIXED },
		{ FINDING("PT-103", "cpu-bound-python", "forward", "0", "30"), REPAIR_NOT_FIXED },
		{ FINDING("PT-103", "cpu-bound-python", "forward", "0-1", "10"), REPAIR_PARTLY },
		/* The same ranks of the same cause in another function. */
		{ FINDING("PT-103", "cpu-bound-python", "loss", "1", "30"), REPAIR_NOT_FIXED },
		/* The same place by another name. */
		{ FINDING("PT-302", "unexplained-difference", "forward", "1", "30"),
		  REPAIR_NOT_FIXED },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct made after = { .findings = rows[i].after,
				      .iteration_ms = 210,
				      .spread_ms = 1 };

		assert_int_equal(judge(&slow, &after, NULL), rows[i].verdict);
	}
}

/* Each row differs from a sure repair in one thing. */
static void another_job_or_too_little_seen_is_undecided(void **state)
{
	static const struct {
		struct made before, after;
		const char *says;
	} rows[] = {
		{ { 0 }, { .ranks = 4 }, "2 ranks before and has 4" },
		{ { .name = "gpt" }, { .name = "bert" }, "different names" },
		{ { .marks = "loader" }, { .marks = "2 x loader" }, "other marks" },
		{ { 0 }, { .missing = 1 }, "1 of 2 ranks are missing" },
		{ { 0 }, { .verdict = "inconclusive" }, "verdict after is inconclusive" },
		{ { 0 }, { .verdict = "<b>" }, "verdict after is unknown" },
		{ { 0 },
		  { .absent = "{\"source\":\"python\",\"why\":\"off\"}" },
		  "lacks 1 source" },
		{ { .functions =
			    "{\"name\":\"gemm\",\"class\":\"compute\",\"ms_per_iteration\":200}" },
		  { .functions =
			    "{\"name\":\"conv\",\"class\":\"compute\",\"ms_per_iteration\":200}" },
		  "other programs" },
		{ { .functions =
			    "{\"name\":\"gemm\",\"class\":\"compute\",\"ms_per_iteration\":200}" },
		  { .functions =
			    "{\"name\":\"gemm\",\"class\":\"compute\",\"ms_per_iteration\":90}" },
		  "other work" },
		{ { .collectives = "{\"bytes\":8e6,\"per_iteration\":2}" },
		  { .collectives = "{\"bytes\":1e6,\"per_iteration\":4}" },
		  "collectives move" },
	};
	char reason[REPAIR_REASON_BYTES];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct made before = rows[i].before, after = rows[i].after;

		before.findings = SLOW_PYTHON;
		before.iteration_ms = 240;
		after.iteration_ms = 210;
		before.spread_ms = after.spread_ms = 1;
		after.verdict = after.verdict != NULL ? after.verdict : "healthy";
		assert_int_equal(judge(&before, &after, reason), REPAIR_UNDECIDED);
		assert_non_null(strstr(reason, rows[i].says));
	}
}

static void a_source_that_was_absent_before_is_no_doubt(void **state)
{
	struct made before = slow, after = { .verdict = "healthy",
					     .iteration_ms = 210,
					     .spread_ms = 1,
					     .collectives = "{\"bytes\":1e6,\"per_iteration\":4}",
					     .absent = "{\"source\":\"nic\",\"why\":\"\"}" };

	(void)state;
	before.absent = "{\"source\":\"nic\",\"why\":\"other words\"}";
	before.collectives = "{\"bytes\":2e6,\"per_iteration\":2}"; /* other buckets, same bytes */
	assert_int_equal(judge(&before, &after, NULL), REPAIR_FIXED);
	/* Of a slow window fewer functions are listed. */
	before.functions = "{\"name\":\"gemm\",\"class\":\"compute\",\"ms_per_iteration\":40}";
	after.functions = "{\"name\":\"conv\",\"class\":\"compute\",\"ms_per_iteration\":90},"
			  "{\"name\":\"gemm\",\"class\":\"compute\",\"ms_per_iteration\":41}";
	assert_int_equal(judge(&before, &after, NULL), REPAIR_FIXED);
}

static void a_hang_is_fixed_when_the_job_iterates(void **state)
{
	static const struct made hung = { .findings = FINDING("PT-906", "collective-not-entered",
							      "save", "1", "null") };
	static const struct made runs = { .verdict = "healthy", .iteration_ms = 50 };
	static const struct made stuck = { .verdict = "stuck" };

	(void)state;
	assert_int_equal(judge(&hung, &runs, NULL), REPAIR_FIXED);
	assert_int_equal(judge(&hung, &hung, NULL), REPAIR_NOT_FIXED);
	assert_int_equal(judge(&hung, &stuck, NULL), REPAIR_UNDECIDED);
}

static void without_a_finding_nothing_was_promised(void **state)
{
	static const struct made healthy = { .verdict = "healthy", .iteration_ms = 210 };

	(void)state;
	assert_int_equal(judge(&healthy, &slow, NULL), REPAIR_UNDECIDED);
}

static void a_finding_is_named_by_number_or_id(void **state)
{
	static const struct made two = { .findings = SLOW_PYTHON
					 "," FINDING("PT-201", "gpu-slow", "gemm", "0", "5"),
					 .iteration_ms = 240 };
	json_t *root = make(&two), *other = json_object();
	struct repair_side side = { .name = "x.json", .root = root };
	struct repair_side wrong = { .name = "y.json", .root = other };
	struct err err = { "" };
	struct repair repair;

	(void)state;
	assert_int_equal(repair_judge(&side, &side, "PT-201", &repair, &err), 0);
	assert_int_equal(repair.judged, 1);
	assert_true(repair.promised_ms > 4.9 && repair.promised_ms < 5.1);
	repair_done(&repair);
	assert_int_equal(repair_judge(&side, &side, "F2", &repair, &err), 0);
	assert_int_equal(repair.judged, 1);
	repair_done(&repair);
	assert_int_equal(repair_judge(&side, &side, "F3", &repair, &err), -EINVAL);
	assert_string_equal(err.text,
			    "x.json has no finding F3: expected F1 to F2, or an id such as PT-103");
	repair_done(&repair);
	assert_int_equal(repair_judge(&side, &wrong, NULL, &repair, &err), -EINVAL);
	assert_non_null(strstr(err.text, "y.json: expected a report"));
	repair_done(&repair);
	json_decref(root);
	json_decref(other);
}

/* Any two reports give both forms; a change of each value by chance never crashes. */
static void each_form_prints_and_memory_may_end(void **state)
{
	static const struct made after = { .findings = FINDING("PT-1", "x", "\\u202ef", "0", "3"),
					   .iteration_ms = 210 };
	json_t *roots[2] = { make(&slow), make(&after) };
	struct repair_side before_side = { .name = "a", .root = roots[0] };
	struct repair_side after_side = { .name = "b", .root = roots[1] };
	int r = -ENOMEM, n = 0;

	(void)state;
	for (; r == -ENOMEM; n++) {
		struct repair repair;
		struct str out = { 0 };

		allocations_left = n;
		r = repair_judge(&before_side, &after_side, NULL, &repair, NULL);
		if (r == 0)
			r = repair_text(&repair, &out);
		if (r == 0)
			r = repair_json(&repair, &out);
		allocations_left = -1;
		if (r == 0) {
			assert_non_null(strstr(str_borrow(&out), "perftracker.repair.v1"));
			assert_non_null(strstr(str_borrow(&out), "\"state\": \"new\""));
		}
		repair_done(&repair);
		str_done(&out);
	}
	assert_int_equal(r, 0);
	assert_true(n > 3);
	json_decref(roots[0]);
	json_decref(roots[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_came_back_decides_when_the_finding_is_gone),
		cmocka_unit_test(a_finding_that_is_there_is_never_fixed),
		cmocka_unit_test(another_job_or_too_little_seen_is_undecided),
		cmocka_unit_test(a_source_that_was_absent_before_is_no_doubt),
		cmocka_unit_test(a_hang_is_fixed_when_the_job_iterates),
		cmocka_unit_test(without_a_finding_nothing_was_promised),
		cmocka_unit_test(a_finding_is_named_by_number_or_id),
		cmocka_unit_test(each_form_prints_and_memory_may_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
