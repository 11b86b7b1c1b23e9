/* SPDX-License-Identifier: Apache-2.0 */
#include "report/whenwhere.h"

#include "report/absent.h"
#include "report/seecommand.h"

#include <setjmp.h>
#include <stdarg.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

#define SECOND NSEC_PER_SEC
#define A_DAY (INT64_C(1700000000) * SECOND) /* 2023-11-14 22:13:20 UTC */

static const char *const hosts[] = { "gpu-01", "gpu-02", "gpu\x1b[1m", "gpu-04" };

static void assert_phrase(struct str *out, const char *expected)
{
	assert_int_equal(str_error(out), 0);
	assert_string_equal(str_borrow(out), expected);
	str_done(out);
}

static void assert_when(struct report_origin origin, const char *expected)
{
	struct str out = { 0 };

	phrase_when(&out, &origin);
	assert_phrase(&out, expected);
}

static void a_window_has_its_times_and_steps(void **state)
{
	(void)state;
	assert_when((struct report_origin){ .begin_ns = A_DAY, .end_ns = A_DAY + 4 * SECOND },
		    "2023-11-14 22:13:20 to 22:13:24 UTC");
	assert_when((struct report_origin){ .begin_ns = A_DAY, .end_ns = A_DAY + SECOND / 2 },
		    "2023-11-14 22:13:20 UTC");
	assert_when((struct report_origin){ .begin_ns = A_DAY, .end_ns = A_DAY + 7200 * SECOND },
		    "2023-11-14 22:13:20 to 2023-11-15 00:13:20 UTC");
	assert_when((struct report_origin){ .begin_ns = A_DAY,
					    .end_ns = A_DAY,
					    .steps_known = true,
					    .first_step = 5,
					    .last_step = 6 },
		    "2023-11-14 22:13:20 UTC, steps 5 to 6");
	assert_when((struct report_origin){ .steps_known = true, .first_step = 0 }, "step 0");
	assert_when((struct report_origin){ .command = "train" }, "");
}

static void hosts_are_counted_and_some_are_named(void **state)
{
	struct report_origin origin = { .hosts = hosts, .host_cnt = 4 };
	struct str out = { 0 };

	(void)state;
	phrase_hosts(&out, &origin, 3);
	assert_phrase(&out, "4 hosts: gpu-01, gpu-02, gpu\\x1b[1m and 1 more");
	origin.host_cnt = 1;
	phrase_hosts(&out, &origin, 3);
	assert_phrase(&out, "gpu-01");
	origin.host_cnt = 0;
	phrase_hosts(&out, &origin, 3);
	assert_phrase(&out, "");
}

static void a_live_report_says_when_it_was_made_and_of_which_run(void **state)
{
	struct report_origin origin = { .made_ns = A_DAY, .run_id = "20231114-221000-train" };
	struct str out = { 0 };

	(void)state;
	phrase_maker(&out, &origin);
	assert_phrase(&out, "PerfTracker " PT_VERSION
			    ", 2023-11-14 22:13:20 UTC, run 20231114-221000-train");
	origin = (struct report_origin){ 0 };
	phrase_maker(&out, &origin);
	assert_phrase(&out, "PerfTracker " PT_VERSION);
}

static void what_is_unknown_is_null_in_json(void **state)
{
	struct report_origin origin = { .hosts = hosts,
					.host_cnt = 1,
					.begin_ns = A_DAY + 7 * NSEC_PER_MSEC };
	struct json_writer w = { 0 };
	json_t *object = whenwhere_json(&w, &origin);

	(void)state;
	assert_int_equal(w.error, 0);
	assert_true(json_is_null(json_object_get(object, "made")));
	assert_true(json_is_null(json_object_get(object, "command")));
	assert_true(json_is_null(json_object_get(object, "first_step")));
	assert_string_equal(json_string_value(json_object_get(object, "window_begin")),
			    "2023-11-14T22:13:20.007Z");
	assert_int_equal(json_array_size(json_object_get(object, "hosts")), 1);
	json_decref(object);
}

static void sources_absent_for_one_reason_are_one_line(void **state)
{
	static const struct report_absence list[] = { { "sm_active", "not recorded" },
						      { "python stacks", "no with_stack" },
						      { "cpu_thread", "not recorded" } };
	const struct report report = { .absences = list, .absence_cnt = 3 };
	struct str out = { 0 };

	(void)state;
	assert_int_equal(absent_cnt(&report), 2);
	assert_true(absent_is_first(&report, 0) && absent_is_first(&report, 1));
	assert_false(absent_is_first(&report, 2));
	absent_phrase(&out, &report, 0);
	assert_phrase(&out, "GPU counters, CPU samples: not recorded");
	absent_phrase(&out, &report, 1);
	assert_phrase(&out, "python stacks: no with_stack");
}

static void a_command_draws_the_culprit_and_who_waits_for_it(void **state)
{
	static const int rank = 1, victim = 2;
	struct report_worker workers[] = { { .rank = 0, .source = "t/r0.json" },
					   { .rank = 1, .source = "t/r1.json.gz" },
					   { .rank = 2, .source = "t/r2.json" } };
	struct finding finding = { .ranks = &rank, .rank_cnt = 1 };
	struct report report = { .workers = workers, .worker_cnt = 3 };
	struct str out = { 0 };

	(void)state;
	phrase_see_command(&out, &report, &finding);
	assert_phrase(&out, "perftracker timeline -o timeline.json --ranks 1,0 t");
	finding.victims = &victim;
	finding.victim_cnt = 1;
	phrase_see_command(&out, &report, &finding);
	assert_phrase(&out, "perftracker timeline -o timeline.json --ranks 1,2 t");
	report.rank_source = "order of arguments"; /* another order, other ranks */
	phrase_see_command(&out, &report, &finding);
	assert_phrase(&out, "");
	report.rank_source = "file names";
	workers[1].source = "t/$(x).json";
	phrase_see_command(&out, &report, &finding);
	assert_phrase(&out, "");
	workers[1].source = "u/r1.json";
	phrase_see_command(&out, &report, &finding);
	assert_phrase(&out, "");
	report.worker_cnt = 1;
	phrase_see_command(&out, &report, &finding);
	assert_phrase(&out, "perftracker timeline -o timeline.json t/r0.json");
	report.origin.run_dir = "/out/run-1";
	phrase_see_command(&out, &report, &finding);
	assert_phrase(&out, "perftracker timeline -o timeline.json /out/run-1");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_window_has_its_times_and_steps),
		cmocka_unit_test(hosts_are_counted_and_some_are_named),
		cmocka_unit_test(a_live_report_says_when_it_was_made_and_of_which_run),
		cmocka_unit_test(what_is_unknown_is_null_in_json),
		cmocka_unit_test(a_command_draws_the_culprit_and_who_waits_for_it),
		cmocka_unit_test(sources_absent_for_one_reason_are_one_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
