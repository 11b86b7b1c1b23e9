/* SPDX-License-Identifier: Apache-2.0 */
/* What takes longer than in the job's own past, and on whom. */
#include "base/test_alloc.h"
#include "localize/test_fixture.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define ITERATIONS 6

static struct test_job before; /* the healthy window */

static int done_both(void **state)
{
	test_job_done(&before);
	return done(state);
}

static const struct test_place batch = { NULL, KIND_PYTHON, "train.py(40): load_batch",
					 CLASS_HOST };

/* Each worker computes for work_ms; extra_ms in the place on workers [first, first + cnt). */
static void play(struct test_job *to, size_t workers, double work_ms,
		 const struct test_place *place, size_t first, size_t cnt, double extra_ms)
{
	test_job_init(to, workers, 0, 0);
	for (size_t i = 0; i < ITERATIONS; i++) {
		test_iterate(to);
		for (size_t w = 0; w < workers; w++) {
			test_work(to, w, &test_mm, work_ms);
			if (w >= first && w < first + cnt && extra_ms > 0)
				test_work(to, w, place, extra_ms);
		}
		if (workers > 1)
			test_meet(to, 0, 0, workers, 5);
	}
	test_finish(to);
}

/* The window of now beside the past, in a job that became slower by slowdown_ms. */
static void compare(double slowdown_ms)
{
	struct localize_options options = localize_defaults();

	options.past = before.fps;
	options.past_cnt = before.cnt;
	if (slowdown_ms > 0)
		options.trigger =
			(struct report_trigger){ .present = true,
						 .kind = "slowdown",
						 .baseline_iteration_ms = 100,
						 .current_iteration_ms = 100 + slowdown_ms };
	report = test_localize(&job, &options);
}

static bool has_evidence(const struct finding *f, const char *text)
{
	for (size_t i = 0; i < f->evidence_cnt; i++) {
		if (strstr(f->evidence[i], text) != NULL)
			return true;
	}
	return false;
}

static void what_grew_in_a_job_of_one_process_is_found(void **state)
{
	const struct finding *f;

	(void)state;
	play(&before, 1, 90, &batch, 0, 1, 10);
	play(&job, 1, 90, &batch, 0, 1, 40);
	compare(30);
	assert_int_equal(report.finding_cnt, 1);
	f = test_find(&report, "more-than-before");
	assert_non_null(f);
	assert_string_equal(f->id, "PT-303");
	assert_string_equal(f->name, "train.py(40): load_batch");
	assert_float_equal(f->gain_ms_per_iteration, 30, 0.5);
	assert_float_equal(f->delta_ms_per_iteration, 30, 0.5);
	assert_true(has_evidence(f, "10.0 ms per iteration there before, 40.0 ms now"));
}

static void what_grew_on_all_ranks_is_found_on_all(void **state)
{
	const struct finding *f;

	(void)state;
	play(&before, 4, 90, &batch, 0, 4, 10);
	play(&job, 4, 90, &batch, 0, 4, 60);
	compare(50);
	f = test_find(&report, "more-than-before");
	assert_non_null(f);
	assert_true(f->all_workers);
	assert_float_equal(f->gain_ms_per_iteration, 50, 1);
	assert_int_equal(report.finding_cnt, 1);
}

/* The others' time in the collective grew as much: they wait. */
static void who_waits_for_another_rank_is_not_accused(void **state)
{
	(void)state;
	play(&before, 4, 90, &batch, 2, 1, 10);
	play(&job, 4, 90, &batch, 2, 1, 60);
	compare(50);
	assert_int_equal(report.finding_cnt, 1);
	test_assert_ranks(&report.findings[0], "2");
	assert_true(has_evidence(&report.findings[0], "60.0 ms now"));
}

static const struct test_place receives = { "ring.py(3): mean", KIND_PYTHON,
					    "<system call recvfrom>", CLASS_HOST };

/* Such as the threads of a library that converts an array which a socket fills. */
static const struct test_place joins = { "ring.py(4): array", KIND_PYTHON, "<system call futex>",
					 CLASS_HOST };

/* Two ranks that meet by a socket: rank 1 parses for 20 ms, for which rank 0 waits there. */
static void play_ring(struct test_job *to, double parse_ms, const struct test_place *there)
{
	test_job_init(to, 2, 0, 0);
	for (size_t i = 0; i < ITERATIONS; i++) {
		test_iterate(to);
		for (size_t w = 0; w < 2; w++)
			test_work(to, w, &test_mm, 70);
		test_work(to, 1, &batch, 2 + parse_ms);
		test_work(to, 0, there, 2 + parse_ms);
	}
	test_finish(to);
}

/* 90 ms on two ranks beside a function that calls two others; times are of an iteration. */
static void play_calls(struct test_job *to, const double list_ms[static 2],
		       const double parse_ms[static 2])
{
	double total_ms = 90 + list_ms[0] + parse_ms[0];

	test_job_init(to, 2, 10 * total_ms, 10);
	for (size_t w = 0; w < 2; w++) {
		uint32_t mm = test_frame(to, w, FRAME_NONE, KIND_KERNEL, "mm");
		uint32_t load = test_frame(to, w, FRAME_NONE, KIND_PYTHON, "train.py(9): load");
		uint32_t list = test_frame(to, w, load, KIND_PYTHON, "train.py(30): list_files");
		uint32_t parse = test_frame(to, w, load, KIND_PYTHON, "train.py(40): parse");

		(void)test_function(to, w, mm, CLASS_COMPUTE, 90 / total_ms);
		(void)test_function(to, w, list, CLASS_HOST, list_ms[w] / total_ms);
		(void)test_function(to, w, parse, CLASS_HOST, parse_ms[w] / total_ms);
	}
}

/* On rank 0 no function below the caller has nearly all of the growth; on rank 1 one has. */
static void a_place_that_one_rank_shows_is_not_lost_in_the_callers_of_another(void **state)
{
	(void)state;
	play_calls(&before, (const double[]){ 5, 1 }, (const double[]){ 5, 9 });
	play_calls(&job, (const double[]){ 17, 1 }, (const double[]){ 15, 31 });
	compare(22);
	assert_int_equal(report.finding_cnt, 2);
	for (size_t i = 0; i < 2; i++) {
		bool of_1 = report.findings[i].ranks[0] == 1;

		test_assert_ranks(&report.findings[i], of_1 ? "1" : "0");
		assert_string_equal(report.findings[i].name,
				    of_1 ? "train.py(40): parse" : "train.py(9): load");
	}
}

static void who_waits_at_a_socket_is_no_culprit_beside_who_does_as_much_more(void **state)
{
	static const struct test_place *const waits[] = { &receives, &joins };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(waits); i++) {
		play_ring(&before, 0, waits[i]);
		play_ring(&job, 20, waits[i]);
		compare(20);
		assert_int_equal(report.finding_cnt, 1);
		test_assert_ranks(&report.findings[0], "1");
		assert_string_equal(report.findings[0].name, "train.py(40): load_batch");
		if (i == 0)
			(void)done_both(state);
	}
}

static const struct test_place backward = { NULL, KIND_PYTHON, "train.py(50): backward",
					    CLASS_HOST };
static const struct test_place update = { NULL, KIND_PYTHON, "train.py(51): update", CLASS_HOST };

/* Three functions of 20, 40 and 30 ms, times factor, and ms more in the second one. */
static void play_three(struct test_job *to, double factor, double more_ms)
{
	test_job_init(to, 1, 0, 0);
	for (size_t i = 0; i < ITERATIONS; i++) {
		test_iterate(to);
		test_work(to, 0, &batch, 20 * factor);
		test_work(to, 0, &backward, 40 * factor + more_ms);
		test_work(to, 0, &update, 30 * factor);
	}
	test_finish(to);
}

static void where_all_functions_grew_alike_none_is_accused(void **state)
{
	(void)state;
	play_three(&before, 1, 0);
	play_three(&job, 1.6, 0);
	compare(54);
	assert_int_equal(report.finding_cnt, 0);
	assert_int_equal(report.verdict, VERDICT_SLOW);
	assert_float_equal(report.alike_factor, 1.6, 0.01);
	assert_non_null(strstr(report.reason, "all functions take longer alike (1.6x)"));
}

/* No trigger says that the job is slow: the past does. */
static void without_a_trigger_a_job_that_grew_everywhere_is_not_healthy(void **state)
{
	(void)state;
	play_three(&before, 1, 0);
	play_three(&job, 1.6, 0);
	compare(0);
	assert_int_equal(report.verdict, VERDICT_SLOW);
	assert_non_null(
		strstr(report.reason, "iterations of 90.0 ms in the job's past, of 144.0 ms"));
}

/* The machine became slower by a tenth, and a fault came: its gain is its own. */
static void a_fault_on_a_slower_machine_is_found(void **state)
{
	const struct finding *f;

	(void)state;
	play_three(&before, 1, 0);
	play_three(&job, 1.1, 60);
	compare(69);
	f = test_find(&report, "more-than-before");
	assert_non_null(f);
	assert_string_equal(f->name, "train.py(50): backward");
	assert_float_equal(f->gain_ms_per_iteration, 60, 1);
	assert_float_equal(report.alike_factor, 0, 0);
}

/* 3 % slower, all of it in one place: hosts wander by as much. */
static void a_job_about_as_fast_as_before_has_no_finding_by_its_past(void **state)
{
	(void)state;
	play(&before, 1, 90, &batch, 0, 1, 10);
	play(&job, 1, 90, &batch, 0, 1, 13);
	compare(0);
	assert_null(test_find(&report, "more-than-before"));
	assert_int_equal(report.growth_cnt, 0);
	report_done(&report);
	compare(3);
	assert_null(test_find(&report, "more-than-before"));
}

/* By design rank 0 has more to do, always: that is no news. */
static void a_job_as_fast_as_ever_has_no_finding_by_its_past(void **state)
{
	(void)state;
	play(&before, 1, 90, &batch, 0, 1, 10);
	play(&job, 1, 90, &batch, 0, 1, 10.2);
	compare(0);
	assert_null(test_find(&report, "more-than-before"));
	assert_int_equal(report.growth_cnt, 0);
}

/* 20 ms of Python are long for a healthy job, but this one has them always. */
static void what_is_long_as_ever_is_no_finding_by_expectation(void **state)
{
	const struct test_place nap = { NULL, KIND_PYTHON, "train.py(70): nap", CLASS_HOST };
	struct test_job *jobs[] = { &before, &job };

	(void)state;
	for (size_t k = 0; k < 2; k++) {
		test_job_init(jobs[k], 1, 0, 0);
		for (size_t i = 0; i < ITERATIONS; i++) {
			test_iterate(jobs[k]);
			test_work(jobs[k], 0, &test_mm, 60);
			test_work(jobs[k], 0, &nap, 20);
			test_work(jobs[k], 0, &batch, k == 0 ? 1 : 31);
		}
		test_finish(jobs[k]);
	}
	compare(30);
	assert_int_equal(report.finding_cnt, 1);
	assert_string_equal(report.findings[0].name, batch.name);
	assert_true(report.note_cnt > 0);
	assert_non_null(strstr(report.notes[0], "nap than a healthy job is expected to spend"));
	assert_non_null(strstr(report.notes[0], "as in its own past"));
}

/* A tenth of the slowdown explains nothing of it, though it is more than the smallest gain. */
static void what_explains_little_of_the_slowdown_is_only_listed(void **state)
{
	(void)state;
	play(&before, 1, 90, &batch, 0, 1, 10);
	play(&job, 1, 130, &batch, 0, 1, 14);
	compare(44);
	assert_int_equal(report.finding_cnt, 1);
	assert_string_equal(report.findings[0].name, test_mm.name);
	assert_int_equal(report.growth_cnt, 2);
	assert_string_equal(report.growth[0].function, test_mm.name);
	assert_string_equal(report.growth[1].function, batch.name);
	assert_float_equal(report.growth[1].before_ms, 10, 0.1);
	assert_float_equal(report.growth[1].now_ms, 14, 0.1);
	assert_int_equal(report.growth[1].rank_cnt, 1);
}

static void growth_within_the_noise_of_its_iterations_is_no_finding(void **state)
{
	struct fp_function *f;

	(void)state;
	play(&before, 1, 90, &batch, 0, 1, 10);
	play(&job, 1, 90, &batch, 0, 1, 40);
	for (size_t i = 0; i < job.workers[0].functions.cnt; i++) {
		f = &job.workers[0].functions.data[i];
		f->spread_ns = 60e6; /* of six iterations: an error of 24 ms */
	}
	compare(30);
	assert_null(test_find(&report, "more-than-before"));
	assert_int_equal(report.finding_cnt, 1);
	assert_int_equal(report.findings[0].confidence, CONFIDENCE_LOW); /* by expectation */
	assert_string_equal(verdict_name(report.verdict), verdict_name(VERDICT_SLOW));
}

/* A snapshot in every tenth of 40 iterations, which is not in the short window of before. */
static void play_snapshots(double each_ms, int every, double mm_ms)
{
	static const struct test_place save = { NULL, KIND_PYTHON, "train.py(50): save_snapshot",
						CLASS_HOST };
	double often = 1.0 / every;

	play(&before, 1, 100, &batch, 0, 0, 0);
	test_job_init(&job, 1, 0, 0);
	for (int i = 0; i < 40; i++) {
		test_iterate(&job);
		test_work(&job, 0, &test_mm, mm_ms);
		if (i % every == every / 2)
			test_work(&job, 0, &save, each_ms);
	}
	test_finish(&job);
	for (size_t i = 0; i < job.workers[0].functions.cnt; i++) {
		struct fp_function *f = &job.workers[0].functions.data[i];

		if (f->class == CLASS_HOST)
			f->spread_ns = 1e6 * each_ms * sqrt(often * (1 - often));
	}
}

static void what_happens_in_every_tenth_iteration_and_explains_the_slowdown_is_found(void **state)
{
	const struct finding *f;

	(void)state;
	play_snapshots(800, 10, 100);
	compare(80);
	f = test_find(&report, "more-than-before");
	assert_non_null(f);
	assert_string_equal(f->name, "train.py(50): save_snapshot");
	assert_float_equal(f->gain_ms_per_iteration, 80, 1);
}

/* It was chance that the window of before had none. */
static void what_happens_in_every_tenth_iteration_and_explains_little_is_not_found(void **state)
{
	(void)state;
	play_snapshots(1200, 10, 120); /* 120 ms an iteration; the window lost 140 */
	compare(270);
	assert_null(test_find(&report, "more-than-before"));
	done_both(NULL);
	play_snapshots(1200, 10, 120);
	compare(140);
	assert_non_null(test_find(&report, "more-than-before"));
}

static void what_happened_once_is_not_found(void **state)
{
	(void)state;
	play_snapshots(3200, 40, 100);
	compare(80);
	assert_null(test_find(&report, "more-than-before"));
}

static void a_rank_without_a_past_is_left_to_the_others(void **state)
{
	(void)state;
	play(&before, 4, 90, &batch, 0, 4, 10);
	play(&job, 4, 90, &batch, 0, 4, 60);
	before.cnt = 3;
	compare(50);
	assert_non_null(test_find(&report, "more-than-before"));
	test_assert_ranks(test_find(&report, "more-than-before"), "0-2");
	before.cnt = 4;
}

/* main > load_batch > socket.py: recv_into > <system call>: the user's function has the name. */
static void the_function_of_the_user_around_a_system_call_is_named(void **state)
{
	static const char *const path[] = { "train.py(1): <module>", "train.py(50): load_batch",
					    "socket.py(710): readinto", "<system call recvfrom>" };
	struct test_job *jobs[] = { &before, &job };

	(void)state;
	for (size_t k = 0; k < 2; k++) {
		uint32_t frame = FRAME_NONE;

		test_job_init(jobs[k], 1, k == 0 ? 600 : 900, ITERATIONS);
		for (size_t i = 0; i < ARRAY_SIZE(path); i++)
			frame = test_frame(jobs[k], 0, frame, KIND_PYTHON, path[i]);
		(void)test_function(jobs[k], 0, frame, CLASS_HOST, k == 0 ? 0.1 : 0.4);
		(void)test_function(jobs[k], 0,
				    test_frame(jobs[k], 0, FRAME_NONE, KIND_KERNEL, "mm"),
				    CLASS_COMPUTE, k == 0 ? 0.9 : 0.6);
	}
	compare(50);
	assert_int_equal(report.finding_cnt, 1);
	assert_string_equal(report.findings[0].name, path[1]);
	assert_int_equal(report.findings[0].stack_cnt, 2);
}

/* The program's own loop holds everything, and no one function below it grew more than others. */
static void a_rank_that_lacks_a_cpu_is_found_below_its_loop(void **state)
{
	static const char *const steps[] = { "a.py(1): a", "a.py(2): b", "a.py(3): c",
					     "a.py(4): d" };
	struct test_job *jobs[] = { &before, &job };

	(void)state;
	for (size_t k = 0; k < 2; k++) {
		uint32_t top;

		test_job_init(jobs[k], 1, k == 0 ? 200 : 700, ITERATIONS);
		top = test_frame(jobs[k], 0, FRAME_NONE, KIND_PYTHON, "a.py(1): <module>");
		for (size_t i = 0; i < ARRAY_SIZE(steps); i++)
			(void)test_function(jobs[k], 0,
					    test_frame(jobs[k], 0, top, KIND_PYTHON, steps[i]),
					    CLASS_HOST, 0.25);
		jobs[k]->workers[0].fp.host_stats.run_delay_frac = k == 0 ? 0.025 : 0.675;
	}
	compare(50);
	assert_int_equal(report.finding_cnt, 1);
	assert_string_equal(report.findings[0].cause, "cpu-starvation");
}

/* Everything takes longer, and the thread had no CPU for as long. */
static void a_rank_that_lacks_a_cpu_more_than_before_is_found(void **state)
{
	static const char *const steps[] = { "a.py(1): a", "a.py(2): b", "a.py(3): c",
					     "a.py(4): d" };
	struct test_job *jobs[] = { &before, &job };

	(void)state;
	for (size_t k = 0; k < 2; k++) {
		test_job_init(jobs[k], 1, k == 0 ? 600 : 900, ITERATIONS);
		for (size_t i = 0; i < ARRAY_SIZE(steps); i++)
			(void)test_function(
				jobs[k], 0,
				test_frame(jobs[k], 0, FRAME_NONE, KIND_PYTHON, steps[i]),
				CLASS_HOST, 0.25);
		jobs[k]->workers[0].fp.host_stats.run_delay_frac = k == 0 ? 0.01 : 0.34;
	}
	compare(50);
	assert_int_equal(report.finding_cnt, 1);
	assert_string_equal(report.findings[0].cause, "cpu-starvation");
	assert_string_equal(report.findings[0].name, "the whole iteration");
	assert_float_equal(report.findings[0].gain_ms_per_iteration, 50, 1);
	assert_true(has_evidence(&report.findings[0], "100.0 ms per iteration there before"));
}

/* A job of one process: steps take as long each, in both windows. */
static void play_steps(double before_ms, double now_ms, double longer_share)
{
	static const char *const steps[] = { "a.py(1): a", "a.py(2): b", "a.py(3): c",
					     "a.py(4): d" };
	struct test_job *jobs[] = { &before, &job };

	for (size_t k = 0; k < 2; k++) {
		double rest = k == 0 ? 0.25 : (1 - longer_share) / 3;

		test_job_init(jobs[k], 1, ITERATIONS * (k == 0 ? before_ms : now_ms), ITERATIONS);
		for (size_t i = 0; i < ARRAY_SIZE(steps); i++)
			(void)test_function(
				jobs[k], 0,
				test_frame(jobs[k], 0, FRAME_NONE, KIND_PYTHON, steps[i]),
				CLASS_HOST, i == 0 ? 1 - 3 * rest : rest);
	}
}

static void set_threads(struct test_job *of, double cpu_frac, double other_frac, const char *name)
{
	struct fp_host *stats = &of->workers[0].fp.host_stats;

	stats->cpu_frac = cpu_frac;
	stats->run_delay_frac = 0.01;
	stats->other_cpu_frac = other_frac;
	stats->other_name = name;
}

/* The thread is delayed in all it does, as long as another one runs Python. */
static void a_rank_held_everywhere_by_a_thread_of_its_own_waits_for_the_gil(void **state)
{
	(void)state;
	play_steps(100, 200, 0.25);
	set_threads(&before, 0.95, 0.02, "export.py(9): export");
	set_threads(&job, 0.48, 0.5, "export.py(9): export");
	compare(100);
	assert_int_equal(report.finding_cnt, 1);
	assert_string_equal(report.findings[0].cause, "gil-contention");
	assert_non_null(strstr(report.findings[0].title, "export.py(9): export"));
}

static void a_rank_that_waits_in_one_place_for_a_thread_is_not_held_by_the_gil(void **state)
{
	(void)state;
	play_steps(100, 200, 0.625);
	set_threads(&before, 0.95, 0.02, "export.py(9): export");
	set_threads(&job, 0.48, 0.5, "export.py(9): export");
	compare(100);
	assert_non_null(test_find(&report, "more-than-before"));
	assert_null(test_find(&report, "gil-contention"));
}

static void a_thread_without_python_holds_no_gil(void **state)
{
	(void)state;
	play_steps(100, 200, 0.25);
	set_threads(&before, 0.95, 0.02, "compressor");
	set_threads(&job, 0.48, 0.5, "compressor");
	compare(100);
	assert_null(test_find(&report, "gil-contention"));
}

/* JAX: its compiled step is time of main(), and no frame is known to be a backward pass. */
static void a_loop_without_a_backward_pass_is_no_place(void **state)
{
	const char *names[] = { "train.py(9): main", "train.py(20): load",
				"train.py(30): augment" };

	(void)state;
	for (int now = 0; now < 2; now++) {
		struct test_job *to = now ? &job : &before;
		double iteration_ms = now ? 60 : 20;
		const double ms[] = { now ? 24 : 12, now ? 14 : 8, now ? 22 : 0 };
		uint32_t frame = FRAME_NONE;

		test_job_init(to, 1, 10 * iteration_ms, 10);
		for (size_t i = 0; i < 3; i++) {
			frame = test_frame(to, 0, frame, KIND_PYTHON, names[i]);
			(void)test_function(to, 0, frame, CLASS_HOST, ms[i] / iteration_ms);
		}
	}
	compare(40);
	assert_int_equal(report.finding_cnt, 1);
	assert_string_equal(report.findings[0].name, "train.py(30): augment");
}

static const struct test_place step = { NULL, KIND_PYTHON, "train.py(50): train_step", CLASS_HOST };
static const struct test_place forward = { "train.py(50): train_step", KIND_PYTHON,
					   "model.py(9): forward", CLASS_HOST };
static const struct test_place mine = { "train.py(50): train_step", KIND_PYTHON,
					"losses.py(7): mine_negatives", CLASS_HOST };

static void a_new_callee_is_named_though_its_caller_grew_a_little_too(void **state)
{
	(void)state;
	for (int now = 0; now < 2; now++) {
		struct test_job *to = now ? &job : &before;

		test_job_init(to, 1, 0, 0);
		for (size_t i = 0; i < ITERATIONS; i++) {
			test_iterate(to);
			test_work(to, 0, &step, 30);
			test_work(to, 0, &forward, now ? 33 : 25);
			if (now)
				test_work(to, 0, &mine, 30);
		}
		test_finish(to);
	}
	compare(38);
	assert_int_equal(report.finding_cnt, 1);
	assert_string_equal(report.findings[0].name, "losses.py(7): mine_negatives");
}

/* Hogwild, one model a process: none waits, so each loses time of its own iterations. */
static void ranks_apart_lose_a_share_of_their_own_iterations(void **state)
{
	const struct finding *f;

	(void)state;
	for (int now = 0; now < 2; now++) {
		struct test_job *to = now ? &job : &before;

		test_job_init(to, 2, 0, 0);
		for (size_t i = 0; i < ITERATIONS; i++) {
			test_iterate(to);
			test_work(to, 0, &test_mm, 30);
			test_work(to, 1, &test_mm, 30);
			test_work(to, 1, &batch, now ? 90 : 0.1);
		}
		test_finish(to);
	}
	compare(90);
	f = test_find(&report, "more-than-before");
	assert_non_null(f);
	test_assert_ranks(f, "1");
	assert_true(f->apart);
	assert_float_equal(f->gain_ms_per_iteration, 90, 0.5);
	assert_float_equal(f->gain_pct, 75, 1);
}

static void failed_allocations_are_errors_and_leak_nothing(void **state)
{
	struct localize_options options = localize_defaults();
	int error = -ENOMEM;

	(void)state;
	play(&before, 4, 90, &batch, 0, 4, 10);
	play(&job, 4, 90, &batch, 0, 4, 60);
	options.past = before.fps;
	options.past_cnt = before.cnt;
	for (int n = 0; error == -ENOMEM && n < 10000; n++) {
		struct err err;

		allocations_left = n;
		error = localize(job.fps, job.cnt, &options, &report, &err);
		allocations_left = -1;
		assert_true(error == 0 || error == -ENOMEM);
	}
	assert_int_equal(error, 0);
	assert_non_null(test_find(&report, "more-than-before"));
}

#define TEST(f) cmocka_unit_test_teardown(f, done_both)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_grew_in_a_job_of_one_process_is_found),
		TEST(what_grew_on_all_ranks_is_found_on_all),
		TEST(who_waits_for_another_rank_is_not_accused),
		TEST(a_place_that_one_rank_shows_is_not_lost_in_the_callers_of_another),
		TEST(who_waits_at_a_socket_is_no_culprit_beside_who_does_as_much_more),
		TEST(where_all_functions_grew_alike_none_is_accused),
		TEST(without_a_trigger_a_job_that_grew_everywhere_is_not_healthy),
		TEST(a_fault_on_a_slower_machine_is_found),
		TEST(a_job_about_as_fast_as_before_has_no_finding_by_its_past),
		TEST(a_job_as_fast_as_ever_has_no_finding_by_its_past),
		TEST(what_is_long_as_ever_is_no_finding_by_expectation),
		TEST(what_explains_little_of_the_slowdown_is_only_listed),
		TEST(growth_within_the_noise_of_its_iterations_is_no_finding),
		TEST(what_happens_in_every_tenth_iteration_and_explains_the_slowdown_is_found),
		TEST(what_happens_in_every_tenth_iteration_and_explains_little_is_not_found),
		TEST(what_happened_once_is_not_found),
		TEST(a_rank_without_a_past_is_left_to_the_others),
		TEST(a_rank_that_lacks_a_cpu_is_found_below_its_loop),
		TEST(a_rank_that_lacks_a_cpu_more_than_before_is_found),
		TEST(a_rank_held_everywhere_by_a_thread_of_its_own_waits_for_the_gil),
		TEST(a_rank_that_waits_in_one_place_for_a_thread_is_not_held_by_the_gil),
		TEST(a_thread_without_python_holds_no_gil),
		TEST(a_loop_without_a_backward_pass_is_no_place),
		TEST(a_new_callee_is_named_though_its_caller_grew_a_little_too),
		TEST(ranks_apart_lose_a_share_of_their_own_iterations),
		TEST(failed_allocations_are_errors_and_leak_nothing),
		TEST(the_function_of_the_user_around_a_system_call_is_named),
	};

	return cmocka_run_group_tests_name("by_past", tests, NULL, NULL);
}
