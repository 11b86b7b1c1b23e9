/* SPDX-License-Identifier: Apache-2.0 */
#include "localize/late/blame.h"

#include "base/test_random.h"
#include "localize/late/chance.h"
#include "localize/peers.h"
#include "localize/test_job.h"

#include <math.h>
#include <string.h>

/* Blame alone, before any accusation. */
struct heard {
	struct job job;
	struct blame blame;
	struct arena arena;
};

static void hear(struct heard *h, const struct test_job *job)
{
	*h = (struct heard){ 0 };
	assert_int_equal(job_init(&h->job, job->fps, job->cnt), 0);
	assert_int_equal(peers_find(&h->job), 0);
	assert_int_equal(blame_find(&h->job, &h->arena, &h->blame), 0);
}

static void forget(struct heard *h)
{
	blame_done(&h->blame);
	job_done(&h->job);
	arena_done(&h->arena);
}

/* Three iterations of 100 ms with two collectives; `late` pauses in each. */
static void play(struct test_job *job, size_t cnt, size_t late, double pause_ms)
{
	test_job_init(job, cnt, 0, 0);
	for (int i = 0; i < 3; i++) {
		test_iterate(job);
		for (size_t w = 0; w < cnt; w++) {
			test_work(job, w, &test_mm, 50);
			if (w == late)
				test_work(job, w, &test_nap, pause_ms);
		}
		test_meet(job, 0, 0, cnt, 2);
		for (size_t w = 0; w < cnt; w++)
			test_work(job, w, &test_mm, 46);
		test_meet(job, 0, 0, cnt, 2);
	}
	test_finish(job);
}

/* The report accuses worker 2 alone of a pause of 20 ms. */
static void assert_pause_of_worker_2(const struct test_job *job)
{
	struct report report = test_localize(job, NULL);

	assert_int_equal(report.verdict, VERDICT_ABNORMAL);
	for (size_t i = 0; i < report.finding_cnt && report.finding_cnt > 1; i++)
		print_error("%s (gain %.1f %%)\n", report.findings[i].title,
			    report.findings[i].gain_pct);
	assert_int_equal(report.finding_cnt, 1);
	assert_string_equal(report.findings[0].cause, "host-stall");
	assert_string_equal(report.findings[0].name, "idle in forward, after aten::view");
	test_assert_ranks(&report.findings[0], "2");
	assert_float_equal(report.findings[0].delta_ms_per_iteration, 20, 1e-6);
	assert_float_equal(report.findings[0].gain_ms_per_iteration, 20, 1e-6);
	report_done(&report);
}

/* Of 60 ms that workers 0, 1 and 3 each waited for worker 2. */
static void assert_sums(const struct blame *blame)
{
	const double half_of_2[] = { 0, 0, 0.5, 0 }, all_but_2[] = { 1, 1, 0, 1 };
	double waited[4] = { 0 }, other[4] = { 0 };
	uint32_t function = blame->why.data[0].function;

	blame_sum_waits(blame, half_of_2, waited);
	blame_sum_waits(blame, all_but_2, other);
	for (uint32_t w = 0; w < 4; w++) {
		assert_float_equal(waited[w], w == 2 ? 0 : 30e6, 1);
		assert_float_equal(other[w], 0, 0);
		assert_float_equal(blame_why_ns(blame, w, function), w == 2 ? 60e6 : 0, 1);
	}
	assert_float_equal(blame_why_ns(blame, 2, function + 1), 0, 0);
}

static void the_late_worker_its_reason_and_its_victims_are_found(void **state)
{
	struct test_job job;
	struct heard h;

	(void)state;
	play(&job, 4, 2, 20);
	hear(&h, &job);
	assert_int_equal(h.blame.matched_cnt, 6);
	assert_int_equal(h.blame.unmatched_cnt, 0);
	for (size_t w = 0; w < 4; w++) {
		assert_float_equal(h.blame.workers[w].lost_ns, w == 2 ? 60e6 : 0, 1);
		assert_int_equal(h.blame.workers[w].last_cnt, w == 2 ? 3 : 0);
		assert_int_equal(h.blame.workers[w].late_iterations, w == 2 ? 3 : 0);
	}
	assert_int_equal(h.blame.why.cnt, 1);
	assert_int_equal(h.blame.why.data[0].worker, 2);
	assert_int_equal(h.job.functions.data[h.blame.why.data[0].function].class, CLASS_IDLE);
	assert_float_equal(h.blame.why.data[0].ns, 60e6, 1);
	assert_int_equal(h.blame.waits.cnt, 3);
	vec_foreach(wait, &h.blame.waits) {
		assert_int_equal(wait->from, 2);
		assert_float_equal(wait->ns, 60e6, 1);
	}
	assert_sums(&h.blame);
	forget(&h);
	assert_pause_of_worker_2(&job);
	test_job_done(&job);
}

/* The thread of worker 2 launched late because it waited for its device, which stood still. */
static void a_thread_that_waits_for_its_device_is_late_for_what_that_does(void **state)
{
	struct test_job job;
	struct test_worker *late;
	struct heard h;
	uint32_t wait;

	(void)state;
	play(&job, 4, 2, 20);
	late = &job.workers[2];
	wait = (uint32_t)late->functions.cnt;
	(void)test_function(&job, 2,
			    test_frame(&job, 2, FRAME_NONE, KIND_RUNTIME, "cudaStreamSynchronize"),
			    CLASS_HOST, 0);
	vec_foreach(c, &late->collectives) {
		c->host_gated = true;
		c->host_first = (uint32_t)late->shares.cnt;
		c->host_cnt = 1;
	}
	assert_int_equal(vec_push(&late->shares, (struct fp_share){ wait, 70000000 }), 0);
	late->fp.shares = late->shares.data;
	late->fp.share_cnt = late->shares.cnt;
	hear(&h, &job);
	assert_int_equal(h.blame.why.cnt, 1);
	assert_int_equal(h.job.functions.data[h.blame.why.data[0].function].class, CLASS_IDLE);
	forget(&h);
	test_job_done(&job);
}

static void of_two_workers_the_late_one_is_known_too(void **state)
{
	struct test_job job;
	struct report report;

	(void)state;
	play(&job, 2, 1, 20);
	report = test_localize(&job, NULL);
	assert_int_equal(report.finding_cnt, 1);
	test_assert_ranks(&report.findings[0], "1");
	assert_int_equal(report.findings[0].victim_cnt, 1);
	assert_int_equal(report.findings[0].victims[0], 0);
	report_done(&report);
	test_job_done(&job);
}

static void clocks_that_differ_change_nothing(void **state)
{
	static const double shifts_ms[] = { -10, 10, 3600e3 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(shifts_ms); i++) {
		struct test_job job;

		play(&job, 4, 2, 20);
		test_shift_clock(&job, i, shifts_ms[i]);
		test_shift_clock(&job, 2, -2 * shifts_ms[i]);
		assert_pause_of_worker_2(&job);
		test_job_done(&job);
	}
}

/* A starved thread learns of an end when it gets a CPU: long after it happened. */
static void an_end_that_a_member_learns_late_does_not_break_the_match(void **state)
{
	struct report report;
	struct test_job job;

	(void)state;
	play(&job, 4, 2, 20);
	/* Groups are unknown: collectives are matched by their ends alone. */
	for (size_t w = 0; w < job.cnt; w++) {
		vec_foreach(c, &job.workers[w].collectives)
			c->group_known = false;
	}
	job.workers[2].collectives.data[3].dur_ns += 150 * NSEC_PER_MSEC;
	report = test_localize(&job, NULL);
	assert_int_equal(report.verdict, VERDICT_ABNORMAL);
	assert_int_equal(report.finding_cnt, 1);
	test_assert_ranks(&report.findings[0], "2");
	assert_string_equal(report.findings[0].cause, "host-stall");
	report_done(&report);
	test_job_done(&job);
}

/* A recorder that starts late makes the others wait, too. */
static void before_its_record_begins_no_worker_is_late(void **state)
{
	struct test_job job;
	struct heard h;

	(void)state;
	play(&job, 4, 2, 20);
	job.workers[2].fp.collectives[0].lead_ns = 5000000;
	job.workers[2].fp.collectives[0].host_ns = 0;
	hear(&h, &job);
	assert_float_equal((h.blame.workers[2].lost_ns / 1e6), 5 + 20 + 20, 1e-3);
	forget(&h);
	test_job_done(&job);
}

static void lists_of_different_length_are_matched(void **state)
{
	static const struct {
		size_t worker, first, last;
	} lost[] = { { 0, 1, 0 }, { 0, 2, 0 }, { 1, 0, 1 }, { 3, 1, 1 } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lost); i++) {
		struct test_job job;
		struct heard h;

		play(&job, 4, 2, 20);
		test_lose_collectives(&job, lost[i].worker, lost[i].first, lost[i].last);
		hear(&h, &job);
		assert_int_equal(h.blame.matched_cnt, 6);
		forget(&h);
		assert_pause_of_worker_2(&job);
		test_job_done(&job);
	}
}

/* Equal work makes the ends fit at any shift: only sequence numbers match collectives. */
static void sequence_numbers_leave_nothing_to_guess(void **state)
{
	struct test_job job;
	struct heard h;

	(void)state;
	test_job_init(&job, 2, 0, 0);
	for (size_t w = 0; w < 2; w++)
		job.workers[w].seq[0] = 70;
	for (int i = 0; i < 8; i++) {
		test_iterate(&job);
		test_work(&job, 0, &test_mm, 10);
		test_work(&job, 1, &test_mm, i == 4 ? 17 : 10);
		test_meet(&job, 0, 0, 2, 1);
	}
	test_finish(&job);
	test_lose_collectives(&job, 0, 0, 2);
	test_lose_collectives(&job, 1, 2, 0);
	hear(&h, &job);
	assert_float_equal(h.blame.workers[1].lost_ns, 7e6, 1);
	assert_float_equal(h.blame.workers[0].lost_ns, 0, 1);
	forget(&h);
	test_job_done(&job);
}

/* One stall delays a whole bucket of asynchronous collectives: it cost once. */
static void overlapping_collectives_are_counted_once(void **state)
{
	struct test_job job;
	struct heard h;

	(void)state;
	test_job_init(&job, 4, 0, 0);
	for (int i = 0; i < 3; i++) {
		test_iterate(&job);
		for (size_t w = 0; w < 4; w++)
			test_work(&job, w, &test_mm, 50);
		test_work(&job, 1, &test_nap, 30);
		for (int k = 0; k < 4; k++) {
			test_launch(&job, 0, 0, 4, 5);
			for (size_t w = 0; w < 4; w++)
				test_work(&job, w, &test_mm, 1);
		}
		for (size_t w = 0; w < 4; w++)
			test_wait(&job, w);
	}
	test_finish(&job);
	hear(&h, &job);
	assert_int_equal(h.blame.matched_cnt, 12);
	assert_float_equal(h.blame.workers[1].lost_ns, 90e6, 1e6);
	assert_float_equal(h.blame.lost_ns, 90e6, 1e6);
	forget(&h);
	test_job_done(&job);
}

/*
 * Groups 0-1 and 2-3 meet, then the pairs (1, 2). Worker 0 is late: 1 waits for it
 * and comes late to 2 without a fault of its own.
 */
static void lateness_inherited_from_another_group_is_not_accused(void **state)
{
	struct test_job job;
	struct report report;
	struct heard h;

	(void)state;
	test_job_init(&job, 4, 0, 0);
	for (int i = 0; i < 5; i++) {
		test_iterate(&job);
		for (size_t w = 0; w < 4; w++)
			test_work(&job, w, &test_mm, 50);
		test_work(&job, 0, &test_nap, 25);
		test_meet(&job, 0, 0, 2, 1);
		test_meet(&job, 1, 2, 2, 1);
		test_meet(&job, 2, 1, 2, 1);
		for (size_t w = 0; w < 4; w++)
			test_work(&job, w, &test_mm, 10);
		test_meet(&job, 3, 0, 4, 1);
	}
	test_finish(&job);
	report = test_localize(&job, NULL);
	assert_int_equal(report.finding_cnt, 1);
	test_assert_ranks(&report.findings[0], "0");
	report_done(&report);
	hear(&h, &job); /* 1 is later than 0 by as much, but that is no rival of 0 */
	assert_false(chance_explains(&h.job, &h.blame, 0));
	assert_true(chance_explains(&h.job, &h.blame, 1));
	forget(&h);
	test_job_done(&job);
}

static void a_rotating_collector_is_one_finding_of_all_its_ranks(void **state)
{
	static const struct test_place gc = { NULL, KIND_GC, "gc: collect generation 2",
					      CLASS_HOST };
	struct test_job job;
	struct report report;

	(void)state;
	test_job_init(&job, 4, 0, 0);
	for (size_t i = 0; i < 8; i++) {
		test_iterate(&job);
		for (size_t w = 0; w < 4; w++) {
			test_work(&job, w, &test_mm, 80);
			if (w == i % 4)
				test_work(&job, w, &gc, 30);
		}
		test_meet(&job, 0, 0, 4, 2);
	}
	test_finish(&job);
	report = test_localize(&job, NULL);
	assert_int_equal(report.finding_cnt, 1);
	assert_string_equal(report.findings[0].cause, "garbage-collection");
	test_assert_ranks(&report.findings[0], "0-3");
	assert_float_equal(report.findings[0].gain_ms_per_iteration, 30, 1);
	report_done(&report);
	test_job_done(&job);
}

/* The second of each two collectives begins when the first ends, which hides all but ns. */
static void queue_on_one_stream(struct test_worker *w, int64_t ns)
{
	for (size_t i = 0; i < w->collectives.cnt; i += 2) {
		struct fp_collective *c = &w->collectives.data[i];
		int64_t wait_ns = MAX(c[0].start_ns + c[0].dur_ns - c[1].start_ns, (int64_t)0);

		c[0].critical_ns = ns;
		c[1].start_ns += wait_ns;
		c[1].dur_ns -= wait_ns;
		c[1].critical_ns = c[1].dur_ns;
	}
}

/*
 * Worker 1 is late by 30 ms for the first of two asynchronous collectives, and still by 5 for
 * the second. Between them all have 10 ms of work, which the others do while the first waits.
 */
static void a_late_worker_costs_what_the_others_stand_still(void **state)
{
	static const uint32_t who[] = { 1 };
	struct test_job job;
	struct heard h;
	double cost_ns;

	(void)state;
	test_job_init(&job, 4, 0, 0);
	for (int i = 0; i < 4; i++) {
		test_iterate(&job);
		for (size_t w = 0; w < 4; w++)
			test_work(&job, w, &test_mm, w == 1 ? 80 : 50);
		test_launch(&job, 0, 0, 4, 5);
		for (size_t w = 0; w < 4; w++)
			test_work(&job, w, &test_mm, 10);
		test_launch(&job, 0, 0, 4, 5);
		for (size_t w = 0; w < 4; w++)
			test_wait(&job, w);
	}
	test_finish(&job);
	for (size_t w = 0; w < 4; w++)
		queue_on_one_stream(&job.workers[w], w == 1 ? 0 : 25000000);
	hear(&h, &job);
	assert_int_equal(blame_cost(&h.job, &h.blame, who, 1, &cost_ns), 0);
	assert_float_equal((cost_ns / 1e6), 30, 0.1);
	forget(&h);
	test_job_done(&job);
}

/* Late by 10 ms for its pair and so where all meet, for which it is late by 1 ms more. */
static void lateness_in_two_groups_costs_once(void **state)
{
	static const uint32_t who[] = { 1 };
	struct test_job job;
	struct heard h;
	double cost_ns;

	(void)state;
	test_job_init(&job, 8, 0, 0);
	for (int i = 0; i < 4; i++) {
		test_iterate(&job);
		for (size_t w = 0; w < 8; w++)
			test_work(&job, w, &test_mm, w == 1 ? 60 : 50);
		test_meet(&job, 1, 0, 2, 2);
		test_meet(&job, 2, 2, 6, 2);
		test_work(&job, 1, &test_mm, 1);
		test_meet(&job, 0, 0, 8, 2);
	}
	test_finish(&job);
	hear(&h, &job);
	assert_int_equal(blame_cost(&h.job, &h.blame, who, 1, &cost_ns), 0);
	assert_float_equal((cost_ns / 1e6), 11, 0.1);
	forget(&h);
	test_job_done(&job);
}

/*
 * Two pairs meet beside each other, then all; in each iteration worker 1 is late by 10 ms,
 * worker 3 by 20, and worker 0 by 5 where all meet.
 */
static void groups_that_meet_beside_each_other_lose_time_once(void **state)
{
	static const uint32_t who[] = { 0, 1, 3 };
	struct test_job job;
	struct heard h;
	double cost_ns;

	(void)state;
	test_job_init(&job, 4, 0, 0);
	for (int i = 0; i < 4; i++) {
		test_iterate(&job);
		for (size_t w = 0; w < 4; w++)
			test_work(&job, w, &test_mm, w == 1 ? 60 : w == 3 ? 70 : 50);
		test_meet(&job, 1, 0, 2, 2);
		test_meet(&job, 2, 2, 2, 2);
		test_work(&job, 0, &test_mm, 15);
		test_meet(&job, 0, 0, 4, 2);
	}
	test_finish(&job);
	hear(&h, &job);
	assert_int_equal(blame_cost(&h.job, &h.blame, &who[1], 1, &cost_ns), 0);
	assert_float_equal((cost_ns / 1e6), 10, 0.1);
	assert_int_equal(blame_cost(&h.job, &h.blame, &who[1], 2, &cost_ns), 0);
	assert_float_equal((cost_ns / 1e6), 20, 0.1);
	assert_int_equal(blame_cost(&h.job, &h.blame, who, 3, &cost_ns), 0);
	assert_float_equal((cost_ns / 1e6), 20, 0.1);
	forget(&h);
	test_job_done(&job);
}

/* The two largest losses in an iteration, and a worker's waits, as a look at all workers finds them. */
static void assert_index(const struct heard *h)
{
	for (uint32_t w = 0; w < h->job.worker_cnt; w++) {
		size_t first = h->blame.wait_first[w], cnt = 0;

		for (size_t i = 0; i < h->job.workers[w].fp->iteration_cnt; i++) {
			const struct blame_worst *worst = &h->blame.worst[i];
			double others = 0;

			for (uint32_t other = 0; other < h->job.worker_cnt; other++) {
				if (other != w)
					others = fmax(others,
						      h->blame.workers[other].iteration_lost_ns[i]);
			}
			assert_float_equal(worst->worker == w && worst->most_ns > 0
						   ? worst->second_ns
						   : worst->most_ns,
					   others, 0);
		}
		for (uint32_t i = 0; i < h->blame.waits.cnt; i++) {
			if (h->blame.waits.data[i].from == w)
				assert_int_equal(h->blame.wait_idx[first + cnt++], i);
		}
		assert_int_equal(h->blame.wait_first[w + 1], first + cnt);
	}
}

static void what_is_kept_for_each_worker_is_what_all_workers_show(void **state)
{
	uint64_t random = 9;

	(void)state;
	for (int round = 0; round < 50; round++) {
		size_t cnt = 2 + test_random(&random) % 5;
		struct test_job job;
		struct heard h;

		test_job_init(&job, cnt, 0, 0);
		for (int i = 0; i < 4; i++) {
			test_iterate(&job);
			for (size_t w = 0; w < cnt; w++) {
				test_work(&job, w, &test_mm, 50);
				if (test_random(&random) % 2 == 0)
					test_work(&job, w, &test_nap,
						  (double)(test_random(&random) % 40));
			}
			test_meet(&job, 0, 0, cnt, 2);
		}
		test_finish(&job);
		hear(&h, &job);
		assert_index(&h);
		forget(&h);
		test_job_done(&job);
	}
}

static void equal_workers_are_healthy(void **state)
{
	struct test_job job;
	struct report report;

	(void)state;
	play(&job, 4, SIZE_MAX, 0);
	report = test_localize(&job, NULL);
	assert_int_equal(report.verdict, VERDICT_HEALTHY);
	assert_int_equal(report.finding_cnt, 0);
	assert_int_equal(report.wait_cnt, 0);
	report_done(&report);
	test_job_done(&job);
}

/* Sum of four uniform draws: bell-shaped, mean 0, deviation 1. */
static double bell(uint64_t *state)
{
	double sum = 0;

	for (int i = 0; i < 4; i++)
		sum += test_uniform(state);
	return (sum - 2) * sqrt(3);
}

/* No worker is slow: compute varies by some percent, launching by more, at random. */
static void play_jitter(struct test_job *job, uint64_t seed)
{
	static const struct test_place launch = { "forward", KIND_OPERATOR, "aten::linear",
						  CLASS_HOST };
	size_t cnt = 2 + seed % 7;
	int iterations = 3 + (int)(seed % 5);

	seed *= 0x9e3779b97f4a7c15ULL;
	(void)test_uniform(&seed);
	test_job_init(job, cnt, 0, 0);
	for (int i = 0; i < iterations; i++) {
		test_iterate(job);
		for (int k = 0; k < 3; k++) {
			for (size_t w = 0; w < cnt; w++) {
				test_work(job, w, &test_mm, 30 * (1 + 0.04 * bell(&seed)));
				test_work(job, w, &launch, 1 + 0.3 * bell(&seed));
				test_work(job, w, &test_nap, 0.2 + 0.15 * test_uniform(&seed));
			}
			test_meet(job, 0, 0, cnt, 2);
		}
	}
	test_finish(job);
}

static void chance_alone_accuses_no_worker_in_1000_jobs(void **state)
{
	int accused = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 1000; seed++) {
		struct test_job job;
		struct report report;

		play_jitter(&job, seed);
		report = test_localize(&job, NULL);
		if (report.finding_cnt > 0 || report.verdict != VERDICT_HEALTHY) {
			print_error("seed %d: %s\n", (int)seed, report.reason);
			accused++;
		}
		report_done(&report);
		test_job_done(&job);
	}
	assert_int_equal(accused, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_late_worker_its_reason_and_its_victims_are_found),
		cmocka_unit_test(a_thread_that_waits_for_its_device_is_late_for_what_that_does),
		cmocka_unit_test(of_two_workers_the_late_one_is_known_too),
		cmocka_unit_test(clocks_that_differ_change_nothing),
		cmocka_unit_test(an_end_that_a_member_learns_late_does_not_break_the_match),
		cmocka_unit_test(before_its_record_begins_no_worker_is_late),
		cmocka_unit_test(lists_of_different_length_are_matched),
		cmocka_unit_test(sequence_numbers_leave_nothing_to_guess),
		cmocka_unit_test(overlapping_collectives_are_counted_once),
		cmocka_unit_test(lateness_inherited_from_another_group_is_not_accused),
		cmocka_unit_test(a_rotating_collector_is_one_finding_of_all_its_ranks),
		cmocka_unit_test(a_late_worker_costs_what_the_others_stand_still),
		cmocka_unit_test(lateness_in_two_groups_costs_once),
		cmocka_unit_test(groups_that_meet_beside_each_other_lose_time_once),
		cmocka_unit_test(what_is_kept_for_each_worker_is_what_all_workers_show),
		cmocka_unit_test(equal_workers_are_healthy),
		cmocka_unit_test(chance_alone_accuses_no_worker_in_1000_jobs),
	};

	return cmocka_run_group_tests_name("blame", tests, NULL, NULL);
}
