/* SPDX-License-Identifier: Apache-2.0 */
#include "summarize/test_window.h"
#include "summarize/utilize.h"

#include <errno.h>
#include <math.h>

static void add_steps(uint16_t lane, int first, int cnt)
{
	for (int i = 0; i < cnt; i++) {
		char name[32];

		(void)snprintf(name, sizeof(name), "ProfilerStep#%d", first + i);
		trace_event(&trace, KIND_ANNOTATION, lane, name, 100 + 50 * i, 50);
	}
}

static void step_numbers_are_read(void **state)
{
	(void)state;
	assert_int_equal(window_step_number("ProfilerStep#12"), 12);
	assert_int_equal(window_step_number("ProfilerStep#"), -1);
	assert_int_equal(window_step_number("ProfilerStep#x"), -1);
	assert_int_equal(window_step_number("Step#1"), -1);
	assert_true(window_step_number("ProfilerStep#99999999999999999999999") > 0);
}

static void the_window_is_all_marked_steps(void **state)
{
	struct window w;
	uint16_t lane = trace_lane(&trace, LANE_THREAD, 1, 1);

	(void)state;
	trace_event(&trace, KIND_PYTHON, lane, "setup", 0, 90);
	add_steps(lane, 5, 3);
	w = found(NULL);
	assert_int_equal(w.start_ns, 100);
	assert_int_equal(w.end_ns, 250);
	assert_int_equal(w.iterations.cnt, 3);
	assert_int_equal(w.iterations.data[1].number, 6);
	assert_int_equal(w.iterations.data[1].start_ns, 50);
	assert_int_equal(w.iterations_by, ITERATIONS_ANNOTATION);
	window_done(&w);
}

static void wished_steps_narrow_the_window(void **state)
{
	const struct window_options some = { .first_step = 6, .last_step = 7 };
	const struct window_options none = { .first_step = 60, .last_step = 70 };
	struct window w;
	struct err err;

	(void)state;
	add_steps(trace_lane(&trace, LANE_THREAD, 1, 1), 5, 4);
	w = found(&some);
	assert_int_equal(w.start_ns, 150);
	assert_int_equal(w.end_ns, 250);
	window_done(&w);
	assert_int_equal(window_find(&trace, &none, &w, &err), -ENODATA);
	assert_non_null(strstr(err.text, "no step 60-70"));
}

static void a_first_step_that_is_much_longer_is_warmup(void **state)
{
	const struct window_options all = { .last_step = -1, .skip_warmup = true };
	const struct window_options chosen = { .last_step = 9, .skip_warmup = true };
	uint16_t lane = trace_lane(&trace, LANE_THREAD, 1, 1);
	struct window w;

	(void)state;
	trace_event(&trace, KIND_ANNOTATION, lane, "ProfilerStep#4", 100, 151);
	trace_event(&trace, KIND_ANNOTATION, lane, "ProfilerStep#5", 300, 90);
	w = found(&all); /* two steps: neither is like the other */
	assert_int_equal(w.iterations.cnt, 2);
	window_done(&w);
	trace_event(&trace, KIND_ANNOTATION, lane, "ProfilerStep#6", 400, 100);
	w = found(&all);
	assert_int_equal(w.iterations.cnt, 2);
	assert_int_equal(w.iterations.data[0].number, 5);
	assert_int_equal(w.start_ns, 300);
	assert_int_equal(w.warmup_ns, 151);
	window_done(&w);
	w = found(&chosen);
	assert_int_equal(w.iterations.cnt, 3);
	assert_int_equal(w.warmup_ns, 0);
	window_done(&w);
	trace_event(&trace, KIND_ANNOTATION, lane, "ProfilerStep#7", 600, 101);
	w = found(&all); /* 151 is not more than 1.5 times 101 */
	assert_int_equal(w.iterations.cnt, 4);
	window_done(&w);
}

static void the_first_of_four_steps_can_be_left_out(void **state)
{
	const struct window_options skip = { .last_step = -1, .skip_first = true };
	struct window w;
	uint16_t lane = trace_lane(&trace, LANE_THREAD, 1, 1);

	(void)state;
	add_steps(lane, 0, 3);
	w = found(&skip);
	assert_int_equal(w.iterations.cnt, 3);
	window_done(&w);
	trace_event(&trace, KIND_ANNOTATION, lane, "ProfilerStep#3", 250, 50);
	w = found(&skip);
	assert_int_equal(w.iterations.cnt, 3);
	assert_int_equal(w.iterations.data[0].number, 1);
	assert_int_equal(w.start_ns, 150);
	window_done(&w);
}

static void groups_of_optimizer_steps_end_iterations(void **state)
{
	struct window w;
	uint16_t lane = trace_lane(&trace, LANE_THREAD, 1, 1);

	(void)state;
	for (int i = 0; i < 2; i++) {
		int64_t at = 100 * i;

		trace_event(&trace, KIND_ANNOTATION, lane, "enumerate(DataLoader)#_X", at, 10);
		trace_event(&trace, KIND_ANNOTATION, lane, "Optimizer.step#A.step", at + 50, 10);
		trace_event(&trace, KIND_ANNOTATION, lane, "Optimizer.step#B.step", at + 60, 10);
	}
	w = found(NULL);
	assert_int_equal(w.iterations_by, ITERATIONS_OPTIMIZER);
	assert_int_equal(w.iterations.cnt, 2);
	assert_int_equal(w.iterations.data[0].dur_ns, 70);
	assert_int_equal(w.iterations.data[1].start_ns, 70);
	assert_int_equal(w.iterations.data[1].dur_ns, 100);
	window_done(&w);
}

static void a_backward_pass_separates_optimizer_steps_without_other_annotations(void **state)
{
	struct window w;
	uint16_t lane = trace_lane(&trace, LANE_THREAD, 1, 1);
	uint16_t autograd = trace_lane(&trace, LANE_THREAD, 1, 2);

	(void)state;
	for (int i = 0; i < 3; i++) {
		int64_t at = 100 * i;

		trace_event(&trace, KIND_OPERATOR, lane, "aten::linear", at, 10);
		trace_event(&trace, KIND_OPERATOR, autograd, "AddmmBackward0", at + 20, 10);
		trace_event(&trace, KIND_ANNOTATION, lane, "Optimizer.step#A.step", at + 50, 10);
		trace_event(&trace, KIND_ANNOTATION, lane, "Optimizer.step#B.step", at + 60, 10);
	}
	w = found(NULL);
	assert_int_equal(w.iterations_by, ITERATIONS_OPTIMIZER);
	assert_int_equal(w.iterations.cnt, 3);
	assert_int_equal(w.iterations.data[2].start_ns, 170);
	assert_int_equal(w.iterations.data[2].dur_ns, 100);
	window_done(&w);
}

static void without_steps_the_window_is_the_extent_of_executions(void **state)
{
	struct window w;
	uint16_t lane = trace_lane(&trace, LANE_THREAD, 1, 1);

	(void)state;
	trace_event(&trace, KIND_OVERHEAD, lane, "profiler", 0, 5000);
	trace_event(&trace, KIND_OPERATOR, lane, "a", 10, 100);
	trace_event(&trace, KIND_OPERATOR, lane, "b", 20, 10);
	w = found(NULL);
	assert_int_equal(w.start_ns, 10);
	assert_int_equal(w.end_ns, 110);
	assert_int_equal(w.iterations_by, ITERATIONS_UNKNOWN);
	window_done(&w);
}

static void a_trace_without_executions_is_an_error(void **state)
{
	struct window w;
	struct err err;

	(void)state;
	assert_int_equal(window_find(&trace, NULL, &w, &err), -ENODATA);
	trace_event(&trace, KIND_OVERHEAD, trace_lane(&trace, LANE_THREAD, 1, 1), "x", 0, 5);
	assert_int_equal(window_find(&trace, NULL, &w, &err), -ENODATA);
	assert_non_null(strstr(err.text, "found none in 1 events"));
}

static void times_centuries_apart_are_an_error(void **state)
{
	uint16_t lane = trace_lane(&trace, LANE_THREAD, 1, 1);
	struct window w;
	struct err err;

	(void)state;
	trace_event(&trace, KIND_OPERATOR, lane, "a", INT64_MIN + 1, 1);
	trace_event(&trace, KIND_OPERATOR, lane, "b", INT64_MAX - 9, 1);
	assert_int_equal(window_find(&trace, NULL, &w, &err), -ENODATA);
	assert_non_null(strstr(err.text, "within a year"));
}

static void a_thread_that_the_program_started_does_not_train(void **state)
{
	uint16_t helper = trace_lane(&trace, LANE_THREAD, 1, 1);
	uint16_t lane = trace_lane(&trace, LANE_THREAD, 1, 2);
	struct window w;

	(void)state;
	trace_event(&trace, KIND_PYTHON, helper, "threading.py(930): _bootstrap", 0, 100);
	trace_event(&trace, KIND_PYTHON, helper, "watch", 1, 50);
	trace_event(&trace, KIND_PYTHON, helper, "watch", 51, 9);
	trace_event(&trace, KIND_PYTHON, lane, "main", 60, 40);
	w = found(NULL);
	assert_int_equal(w.training_lane, lane);
	assert_int_equal(w.backward_lane, LANE_NONE);
	window_done(&w);
}

static void the_autograd_thread_is_no_training_thread(void **state)
{
	uint16_t autograd = trace_lane(&trace, LANE_THREAD, 1, 1);
	uint16_t lane = trace_lane(&trace, LANE_THREAD, 1, 2);
	struct window w;

	(void)state;
	for (int i = 0; i < 9; i++)
		trace_event(&trace, KIND_OPERATOR, autograd,
			    "autograd::engine::evaluate_function: AddBackward0", i, 1);
	trace_event(&trace, KIND_OPERATOR, lane, "aten::mm", 10, 40);
	w = found(NULL);
	assert_int_equal(w.training_lane, lane);
	assert_int_equal(w.backward_lane, autograd);
	window_done(&w);
}

static void the_thread_with_the_steps_trains_whatever_others_do(void **state)
{
	uint16_t busy = trace_lane(&trace, LANE_THREAD, 1, 1);
	uint16_t lane = trace_lane(&trace, LANE_THREAD, 1, 2);
	struct window w;

	(void)state;
	for (int i = 0; i < 9; i++)
		trace_event(&trace, KIND_PYTHON, busy, "f", i, 1);
	add_steps(lane, 1, 1);
	w = found(NULL);
	assert_int_equal(w.training_lane, lane);
	window_done(&w);
}

static void a_trace_of_streams_alone_has_no_training_thread(void **state)
{
	struct window w;

	(void)state;
	trace_event(&trace, KIND_KERNEL, trace_lane(&trace, LANE_STREAM, 0, 7), "k", 0, 5);
	w = found(NULL);
	assert_int_equal(w.training_lane, LANE_NONE);
	window_done(&w);
}

/* --- utilize --- */

static struct utilize_sum used(const double *values, size_t cnt, const int64_t (*execs)[2],
			       size_t exec_cnt)
{
	struct track *track = trace_track(&trace, RESOURCE_SM_ACTIVE, 0, -1);
	struct utilize_scratch scratch = { 0 };
	struct utilize_sum sum = { 0 };

	for (size_t i = 0; i < cnt; i++)
		track_sample(track, (int64_t)(i + 1) * 10, values[i]);
	for (size_t i = 0; i < exec_cnt; i++)
		assert_int_equal(utilize_add(track, execs[i][0], execs[i][1], &scratch, &sum), 0);
	vec_done(&scratch.values);
	free(track->samples);
	*track = (struct track){ 0 };
	return sum;
}

#define NEAR(a, b) assert_true(fabs((a) - (b)) < 1e-12)

static void mu_is_the_mean_over_the_critical_duration(void **state)
{
	const double values[] = { 0, 0, 0.5, 1, 0.5, 1 };
	const int64_t exec[][2] = { { 0, 60 } };
	struct utilize_sum sum = used(values, 6, exec, 1);

	(void)state;
	/* Two of six samples only waited: 40 of 60 ns are critical. */
	NEAR(sum.weight_ns, 40);
	NEAR(utilize_mu(&sum), 0.75);
	NEAR(utilize_sigma(&sum), 0.25);
}

static void executions_weigh_by_their_critical_duration(void **state)
{
	const double values[] = { 1, 1, 1, 0.2, 0.4, 0 };
	const int64_t execs[][2] = { { 0, 30 }, { 30, 50 } };
	struct utilize_sum sum = used(values, 6, execs, 2);

	(void)state;
	/* eq. 4: (30 * 1 + 20 * 0.3) / 50; eq. 5: (30 * 0 + 20 * 0.1) / 50 */
	NEAR(utilize_mu(&sum), 0.72);
	NEAR(utilize_sigma(&sum), 0.04);
}

static void a_short_execution_takes_the_value_of_its_sample(void **state)
{
	const double values[] = { 0.1, 0.9, 0.2 };
	const int64_t exec[][2] = { { 13, 15 } };
	struct utilize_sum sum = used(values, 3, exec, 1);

	(void)state;
	NEAR(sum.weight_ns, 2);
	NEAR(utilize_mu(&sum), 0.9);
	assert_true(isnan(utilize_sigma(&sum)));
}

/* Parts of two samples differ because of neighboring executions. */
static void between_two_samples_there_is_no_deviation(void **state)
{
	const double values[] = { 0.9, 0.4, 0.9 };
	const int64_t exec[][2] = { { 16, 24 } };
	struct utilize_sum sum = used(values, 3, exec, 1);

	(void)state;
	NEAR(utilize_mu(&sum), 0.65);
	assert_true(isnan(utilize_sigma(&sum)));
}

static void one_sample_alone_has_no_deviation(void **state)
{
	const double values[] = { 0.9 };
	const int64_t exec[][2] = { { 0, 100 } };
	struct utilize_sum sum = used(values, 1, exec, 1);

	(void)state;
	NEAR(utilize_mu(&sum), 0.9);
	assert_true(isnan(utilize_sigma(&sum)));
}

/* With executions of different lengths the deviation is that of the long ones, if they dominate. */
static void the_deviation_is_of_what_samples_resolve(void **state)
{
	const double values[] = { 0.2, 0.4, 0.2, 0.4, 1, 1 };
	const int64_t long_first[][2] = { { 0, 40 }, { 41, 44 } };
	const int64_t mostly_short[][2] = { { 0, 20 }, { 21, 29 }, { 31, 39 }, { 41, 49 } };
	struct utilize_sum sum = used(values, 6, long_first, 2);

	(void)state;
	NEAR(utilize_sigma(&sum), 0.1);
	sum = used(values, 6, mostly_short, 4);
	assert_true(isnan(utilize_sigma(&sum)) && !isnan(utilize_mu(&sum)));
}

/* Two kernels of 2 ms alternate: fine samples distinguish them, means of 10 ms do not. */
static void alternating_kernels(int64_t period_ns, struct utilize_sum ret[2])
{
	static const int64_t kernel_ns = 2000000, window_ns = 200000000;
	struct track *track = trace_track(&trace, RESOURCE_SM_ACTIVE, 0, -1);
	struct utilize_scratch scratch = { 0 };

	for (int64_t end = period_ns; end <= window_ns; end += period_ns) {
		double sum = 0;
		size_t cnt = 0;

		for (int64_t at = end - period_ns; at < end; at += 100000, cnt++) {
			double level = at / kernel_ns % 2 == 0 ? 0.9 : 0.4;

			sum += level + (at / 100000 % 2 == 0 ? 0.05 : -0.05);
		}
		track_sample(track, end, sum / (double)cnt);
	}
	for (int64_t i = 0; i < window_ns / kernel_ns; i++)
		assert_int_equal(utilize_add(track, i * kernel_ns, (i + 1) * kernel_ns, &scratch,
					     &ret[i % 2]),
				 0);
	vec_done(&scratch.values);
	free(track->samples);
	*track = (struct track){ 0 };
}

static void fine_samples_tell_kernels_apart_and_coarse_ones_say_so(void **state)
{
	struct utilize_sum fine[2] = { 0 }, coarse[2] = { 0 };

	(void)state;
	alternating_kernels(100000, fine);
	alternating_kernels(10000000, coarse);
	assert_true(fabs(utilize_mu(&fine[0]) - 0.9) < 0.02);
	assert_true(fabs(utilize_mu(&fine[1]) - 0.4) < 0.02);
	assert_true(fabs(utilize_sigma(&fine[0]) - 0.05) < 0.01);
	for (int i = 0; i < 2; i++) {
		assert_true(utilize_mu(&coarse[i]) > 0.6 && utilize_mu(&coarse[i]) < 0.7);
		assert_true(isnan(utilize_sigma(&coarse[i])));
	}
}

static void an_execution_without_activity_counts_whole(void **state)
{
	const double values[] = { 0, 0, 0 };
	const int64_t exec[][2] = { { 0, 30 } };
	struct utilize_sum sum = used(values, 3, exec, 1);

	(void)state;
	NEAR(sum.weight_ns, 30);
	NEAR(utilize_mu(&sum), 0);
	NEAR(utilize_sigma(&sum), 0);
}

static void without_samples_mu_is_absent(void **state)
{
	const double values[] = { 0.5 };
	const int64_t exec[][2] = { { 10, 30 }, { 5, 5 } };
	struct utilize_sum sum = used(values, 1, exec, 2);

	(void)state;
	assert_true(isnan(utilize_mu(&sum)) && isnan(utilize_sigma(&sum)));
}

/* Samples 10 apart from 10 to 100 and from 1010 to 1100, of 0.9 and 0.1. */
static struct utilize_sum used_with_gap(int64_t device, int64_t start, int64_t end)
{
	struct track *track = trace_track(&trace, RESOURCE_SM_ACTIVE, device, -1);
	struct utilize_scratch scratch = { 0 };
	struct utilize_sum sum = { 0 };

	for (int64_t i = 1; i <= 10; i++)
		track_sample(track, i * 10, 0.9);
	for (int64_t i = 1; i <= 10; i++)
		track_sample(track, 1000 + i * 10, 0.1);
	assert_int_equal(utilize_add(track, start, end, &scratch, &sum), 0);
	vec_done(&scratch.values);
	free(track->samples);
	*track = (struct track){ 0 };
	return sum;
}

static void a_sample_says_nothing_of_long_before_it(void **state)
{
	static const struct {
		int64_t device, start, end;
		double weight_ns, mu;
	} cases[] = {
		{ 0, 200, 900, 0, 0 },	   { 0, -900, -100, 0, 0 },    { 0, -900, 30, 40, 0.9 },
		{ 0, 80, 900, 20, 0.9 },   { 0, 985, 1000, 10, 0.1 },  { 0, 20, 90, 70, 0.9 },
		{ 0, 1095, 2000, 5, 0.1 }, { -1, 200, 900, 700, 0.1 }, { -1, -900, -100, 800, 0.9 },
		{ 0, 1100, 2000, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct utilize_sum sum =
			used_with_gap(cases[i].device, cases[i].start, cases[i].end);

		NEAR(sum.weight_ns, cases[i].weight_ns);
		if (cases[i].weight_ns > 0)
			NEAR(utilize_mu(&sum), cases[i].mu);
		else
			assert_true(isnan(utilize_mu(&sum)));
	}
}

/* Coarse samples fill a pause of the fine ones: each covers its whole period. */
static void coarse_samples_among_fine_ones_keep_their_time(void **state)
{
	struct track *track = trace_track(&trace, RESOURCE_SM_ACTIVE, 0, -1);
	struct utilize_scratch scratch = { 0 };
	struct utilize_sum sum = { 0 };

	(void)state;
	for (int64_t i = 1; i <= 50; i++)
		track_sample(track, i, 0.5);
	for (int64_t i = 1; i <= 20; i++)
		track_sample(track, 50 + i * 100, 0.5);
	for (int64_t i = 1; i <= 50; i++)
		track_sample(track, 2050 + i, 0.5);
	assert_int_equal(utilize_add(track, 0, 2100, &scratch, &sum), 0);
	NEAR(sum.weight_ns, 2100);
	vec_done(&scratch.values);
}

static void wild_samples_are_held_to_shares(void **state)
{
	const double values[] = { 7, -3, (double)NAN, 1 };
	const int64_t exec[][2] = { { 0, 40 } };
	struct utilize_sum sum = used(values, 4, exec, 1);

	(void)state;
	NEAR(utilize_mu(&sum), 0.5);
}

static void tracks_are_found_by_resource_device_and_thread(void **state)
{
	(void)state;
	track_sample(trace_track(&trace, RESOURCE_SM_ACTIVE, 0, -1), 1, 1);
	(void)trace_track(&trace, RESOURCE_DRAM, 0, -1);
	track_sample(trace_track(&trace, RESOURCE_CPU_THREAD, -1, 7), 1, 1);
	assert_ptr_equal(utilize_find_track(&trace, RESOURCE_SM_ACTIVE, 0, -1), &trace.tracks[0]);
	assert_null(utilize_find_track(&trace, RESOURCE_SM_ACTIVE, 1, -1));
	assert_null(utilize_find_track(&trace, RESOURCE_DRAM, 0, -1)); /* it has no samples */
	assert_null(utilize_find_track(&trace, RESOURCE_CPU_THREAD, -1, 8));
	assert_ptr_equal(utilize_find_track(&trace, RESOURCE_CPU_THREAD, -1, 7), &trace.tracks[2]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(step_numbers_are_read),
		TEST(the_window_is_all_marked_steps),
		TEST(wished_steps_narrow_the_window),
		TEST(the_first_of_four_steps_can_be_left_out),
		TEST(a_first_step_that_is_much_longer_is_warmup),
		TEST(groups_of_optimizer_steps_end_iterations),
		TEST(a_backward_pass_separates_optimizer_steps_without_other_annotations),
		TEST(without_steps_the_window_is_the_extent_of_executions),
		TEST(a_trace_without_executions_is_an_error),
		TEST(times_centuries_apart_are_an_error),
		TEST(a_thread_that_the_program_started_does_not_train),
		TEST(the_autograd_thread_is_no_training_thread),
		TEST(the_thread_with_the_steps_trains_whatever_others_do),
		TEST(a_trace_of_streams_alone_has_no_training_thread),
		TEST(mu_is_the_mean_over_the_critical_duration),
		TEST(executions_weigh_by_their_critical_duration),
		TEST(a_short_execution_takes_the_value_of_its_sample),
		TEST(between_two_samples_there_is_no_deviation),
		TEST(one_sample_alone_has_no_deviation),
		TEST(the_deviation_is_of_what_samples_resolve),
		TEST(fine_samples_tell_kernels_apart_and_coarse_ones_say_so),
		TEST(an_execution_without_activity_counts_whole),
		TEST(without_samples_mu_is_absent),
		TEST(a_sample_says_nothing_of_long_before_it),
		TEST(coarse_samples_among_fine_ones_keep_their_time),
		TEST(wild_samples_are_held_to_shares),
		TEST(tracks_are_found_by_resource_device_and_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
