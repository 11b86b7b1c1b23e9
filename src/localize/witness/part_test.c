/* SPDX-License-Identifier: Apache-2.0 */
/* Slow jobs in which no one place explains the slowdown, and healthy ones on busy machines. */
#include "localize/cause.h"
#include "localize/test_fixture.h"
#include "localize/usual.h"
#include "model/thresholds.h"

#include <string.h>

#define WINDOW_MS 630 /* 15 iterations of 42 ms */
#define ITERATIONS 15

static struct test_job before; /* the healthy window of some tests */

static int done_both(void **state)
{
	test_job_done(&before);
	return done(state);
}

static void compute(struct test_job *to, size_t w, double beta)
{
	uint32_t mm = test_frame(to, w, FRAME_NONE, KIND_KERNEL, "aten::mm");

	test_function(to, w, mm, CLASS_COMPUTE, beta);
}

static uint32_t python(struct test_job *to, size_t w, uint32_t parent, const char *name,
		       double beta)
{
	uint32_t frame = test_frame(to, w, parent, KIND_PYTHON, name);

	if (beta > 0)
		test_function(to, w, frame, CLASS_HOST, beta);
	return frame;
}

/* In a job whose trigger saw iterations of baseline_ms become current_ms. */
static void look(const char *kind, double baseline_ms, double current_ms)
{
	struct localize_options options = localize_defaults();

	options.past = before.fps;
	options.past_cnt = before.cnt;
	options.trigger = (struct report_trigger){ .present = true,
						   .kind = kind,
						   .baseline_iteration_ms = baseline_ms,
						   .current_iteration_ms = current_ms };
	report = test_localize(&job, &options);
}

static bool has_note(const char *text)
{
	for (size_t i = 0; i < report.note_cnt; i++) {
		if (strstr(report.notes[i], text) != NULL)
			return true;
	}
	return false;
}

/* --- a function and what it calls --- */

/* As on two ranks of a job with text made in Python: 31 % in a function, more in its caller. */
static void tokenize(double tokens_beta, double caller_beta)
{
	test_job_init(&job, 2, WINDOW_MS, ITERATIONS);
	for (size_t w = 0; w < 2; w++) {
		uint32_t caller = python(&job, w, FRAME_NONE, "data.py(34): augment", caller_beta);

		python(&job, w, caller, "data.py(57): tokenize", tokens_beta);
		compute(&job, w, 0.5);
	}
}

static void assert_part(const char *name, const char *part)
{
	assert_int_equal(report.finding_cnt, 1);
	assert_int_equal(report.findings[0].confidence, CONFIDENCE_LOW);
	assert_string_equal(report.findings[0].name, name);
	assert_non_null(strstr(report.findings[0].title, part));
	assert_string_equal(verdict_name(report.verdict), verdict_name(VERDICT_SLOW));
	assert_non_null(strstr(report.reason, part));
}

static void what_explains_little_of_a_slowdown_is_named_as_its_largest_part(void **state)
{
	(void)state;
	tokenize(0.31, 0.005);
	look("slowdown", 7, 67);
	assert_part("data.py(57): tokenize", "which explains 12.6 of 35.0 ms");
	assert_false(has_note("tokenize"));
}

static void a_long_caller_counts_with_the_long_function_that_it_calls(void **state)
{
	(void)state;
	tokenize(0.31, 0.08);
	look("slowdown", 7, 67);
	assert_part("data.py(34): augment", "which explains 15.5 of 35.0 ms");
}

static void a_subtree_that_explains_a_slowdown_is_its_cause(void **state)
{
	(void)state;
	tokenize(0.33, 0.12);
	look("slowdown", 7, 67);
	assert_int_equal(report.finding_cnt, 1);
	assert_string_equal(report.findings[0].id, "PT-301");
	assert_string_equal(report.findings[0].name, "data.py(34): augment");
	assert_int_equal(report.findings[0].confidence, CONFIDENCE_HIGH);
	assert_float_equal(report.findings[0].gain_ms_per_iteration, 18.1, 0.1);
}

/* On a slow machine all lines of a model take longer. */
static void functions_of_about_one_length_are_no_subtree(void **state)
{
	(void)state;
	tokenize(0.25, 0.2);
	look("slowdown", 7, 67);
	assert_part("data.py(57): tokenize", "which explains 10.1 of 35.0 ms");
}

static void what_explains_next_to_nothing_is_a_note(void **state)
{
	(void)state;
	tokenize(0.1, 0.005);
	look("slowdown", 7, 67);
	assert_int_equal(report.finding_cnt, 0);
	assert_true(has_note("tokenize"));
	assert_string_equal(verdict_name(report.verdict), verdict_name(VERDICT_SLOW));
}

static void a_job_that_is_not_slow_has_no_largest_part(void **state)
{
	(void)state;
	tokenize(0.31, 0.08);
	look("request", 7, 67);
	assert_int_equal(report.finding_cnt, 0);
	assert_true(has_note("augment"));
}

/* The trigger saw a load that was gone when the window came. */
static void the_slowdown_is_what_the_window_shows_of_it(void **state)
{
	(void)state;
	tokenize(0.31, 0.005);
	look("slowdown", 20, 62);
	assert_int_equal(report.finding_cnt, 1);
	assert_int_equal(report.findings[0].confidence, CONFIDENCE_HIGH);
}

/* --- its own past --- */

static void what_grew_most_is_named_though_it_explains_little(void **state)
{
	(void)state;
	test_job_init(&before, 1, 15 * 20, ITERATIONS);
	python(&before, 0, FRAME_NONE, "data.py(57): tokenize", 0.1);
	compute(&before, 0, 0.7);
	test_job_init(&job, 1, WINDOW_MS, ITERATIONS);
	python(&job, 0, FRAME_NONE, "data.py(57): tokenize", 0.236);
	compute(&job, 0, 0.333);
	look("slowdown", 20, 42);
	assert_part("data.py(57): tokenize", "which explains 7.9 of 22.0 ms");
	assert_string_equal(report.findings[0].id, "PT-303");
}

/* --- the lock of the interpreter --- */

static const double waits[] = { 0.085, 0.065, 0.063, 0.049, 0.035, 0.025, 0.025, 0.023, 0.02 };

/* Shares of the window as one process had them; scale: of all waits. */
static void wait_for_gil(size_t workers, double scale)
{
	static const char *const callers[] = { "a.py(1): f", "a.py(2): g", "a.py(3): h",
					       "a.py(4): i", "a.py(5): j", "a.py(6): k",
					       "a.py(7): l", "a.py(8): m", "a.py(9): n" };

	test_job_init(&job, workers, WINDOW_MS, ITERATIONS);
	for (size_t w = 0; w < workers; w++) {
		for (size_t i = 0; i < ARRAY_SIZE(waits); i++)
			python(&job, w, python(&job, w, FRAME_NONE, callers[i], 0), EVENT_GIL_WAIT,
			       scale * waits[i]);
		compute(&job, w, 0.5);
	}
}

static void waits_for_the_gil_are_one_place_wherever_they_are(void **state)
{
	const struct finding *f;

	(void)state;
	wait_for_gil(1, 1);
	look("slowdown", 15, 42);
	assert_int_equal(report.finding_cnt, 1);
	f = &report.findings[0];
	assert_string_equal(f->id, "PT-105");
	assert_string_equal(f->title, "rank 0: waiting for the GIL, held by another thread");
	assert_float_equal(f->gain_ms_per_iteration, 15.96, 0.01);
	assert_float_equal(f->time_ms_per_iteration, 16.38, 0.01);
	assert_int_equal(f->confidence, CONFIDENCE_HIGH);
}

static void the_thread_that_holds_the_gil_is_named_where_it_was_seen(void **state)
{
	(void)state;
	wait_for_gil(2, 1);
	for (size_t w = 0; w < 2; w++) {
		job.workers[w].fp.host_stats.other_cpu_frac = 0.4;
		job.workers[w].fp.host_stats.other_name = "json/encoder.py(205): iterencode";
	}
	look("slowdown", 15, 42);
	assert_int_equal(report.finding_cnt, 1);
	assert_string_equal(report.findings[0].title,
			    "ranks 0-1: waiting for the GIL, held by another thread in "
			    "json/encoder.py(205): iterencode");
}

static void short_waits_for_the_gil_are_every_jobs(void **state)
{
	(void)state;
	wait_for_gil(1, 0.1);
	look("request", 0, 42);
	assert_int_equal(report.finding_cnt, 0);
}

/* --- check-ups --- */

/* A report of a window of this kind with one finding, which costs gain_pct. */
static void note_starved(const char *kind, enum cause cause, double gain_pct)
{
	static const char *notes[PARTS_MAX_NOTES];
	static struct finding finding;

	arena_init(&report.arena);
	finding = (struct finding){ .id = cause_text(cause)->number,
				    .title = "rank 0: CPU starvation in train.py(3): step",
				    .gain_ms_per_iteration = 0.79,
				    .gain_pct = gain_pct };
	report.trigger = (struct report_trigger){ .present = true, .kind = kind };
	report.findings = &finding;
	report.finding_cnt = 1;
	report.notes = notes;
	assert_int_equal(usual_note_starved(&report, notes), 0);
}

static void a_small_lack_of_cpu_in_a_check_up_is_a_note(void **state)
{
	(void)state;
	note_starved("checkup", CAUSE_CPU_STARVED, 2);
	assert_int_equal(report.finding_cnt, 0);
	assert_true(has_note("rank 0: CPU starvation in train.py(3): step: it costs 0.79 ms per "
			     "iteration (2.0 %)"));
}

static void a_large_lack_of_cpu_in_a_check_up_is_a_finding(void **state)
{
	(void)state;
	note_starved("checkup", CAUSE_CPU_STARVED, CHECKUP_STARVED_PCT);
	assert_int_equal(report.finding_cnt, 1);
}

static void another_cause_in_a_check_up_is_a_finding(void **state)
{
	(void)state;
	note_starved("checkup", CAUSE_HOST_STALL, 2);
	assert_int_equal(report.finding_cnt, 1);
}

static void a_small_lack_of_cpu_in_a_slow_job_is_a_finding(void **state)
{
	(void)state;
	note_starved("slowdown", CAUSE_CPU_STARVED, 2);
	assert_int_equal(report.finding_cnt, 1);
}

#define TEST(f) cmocka_unit_test_teardown(f, done_both)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_explains_little_of_a_slowdown_is_named_as_its_largest_part),
		TEST(a_long_caller_counts_with_the_long_function_that_it_calls),
		TEST(a_subtree_that_explains_a_slowdown_is_its_cause),
		TEST(functions_of_about_one_length_are_no_subtree),
		TEST(what_explains_next_to_nothing_is_a_note),
		TEST(a_job_that_is_not_slow_has_no_largest_part),
		TEST(the_slowdown_is_what_the_window_shows_of_it),
		TEST(what_grew_most_is_named_though_it_explains_little),
		TEST(waits_for_the_gil_are_one_place_wherever_they_are),
		TEST(the_thread_that_holds_the_gil_is_named_where_it_was_seen),
		TEST(short_waits_for_the_gil_are_every_jobs),
		TEST(a_small_lack_of_cpu_in_a_check_up_is_a_note),
		TEST(a_large_lack_of_cpu_in_a_check_up_is_a_finding),
		TEST(another_cause_in_a_check_up_is_a_finding),
		TEST(a_small_lack_of_cpu_in_a_slow_job_is_a_finding),
	};

	return cmocka_run_group_tests_name("part", tests, NULL, NULL);
}
