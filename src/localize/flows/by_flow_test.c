/* SPDX-License-Identifier: Apache-2.0 */
/* Rings and pairs of hosts whose paths carry data at known rates. */
#include "localize/test_job.h"

#include <stdio.h>
#include <string.h>

#define ITERATIONS 10
#define BYTES_PER_MS 37500.0 /* 300 Mbit/s */
#define SENT 10000000u	     /* bytes of a window: 267 ms at that rate */

/* Hosts named host-0, ..., one worker each, in all_reduce for 80 % of a window. */
static void make_job(struct test_job *job, size_t hosts, double window_ms)
{
	test_job_init(job, hosts, window_ms, ITERATIONS);
	for (size_t w = 0; w < hosts; w++) {
		struct fingerprint *fp = &job->workers[w].fp;
		uint32_t frame = test_frame(job, w, FRAME_NONE, KIND_KERNEL, "all_reduce");

		(void)test_function(job, w, frame, CLASS_COMM, 0.8);
		fp->class_ns[CLASS_COMM] = (int64_t)(0.8e6 * window_ms);
		fp->class_ns[CLASS_COMPUTE] = (int64_t)(0.2e6 * window_ms);
		fp->host = arena_printf(&fp->arena, "host-%zu", w);
		fp->flows.list = arena_calloc(&fp->arena, hosts + 1, sizeof(*fp->flows.list));
	}
}

/* From one host to another, at a share of the usual rate. */
static struct fp_flow *send_to(struct test_job *job, size_t from, size_t to, double rate_frac)
{
	struct fingerprint *fp = &job->workers[from].fp;
	struct fp_flow *flow = &fp->flows.list[fp->flows.cnt++];

	*flow = (struct fp_flow){ .local = arena_printf(&fp->arena, "10.0.0.%zu", from),
				  .remote = arena_printf(&fp->arena, "10.0.0.%zu", to),
				  .card = "eth1",
				  .tx_bytes = SENT,
				  .busy_ns = (int64_t)(SENT / (BYTES_PER_MS * rate_frac) * 1e6),
				  .rtt_ns = NSEC_PER_MSEC,
				  .socket_cnt = 1 };
	return flow;
}

/* Each host sends to the next; rate_frac by sender. */
static void make_ring(struct test_job *job, size_t hosts, const double *rate_frac)
{
	make_job(job, hosts, 1000);
	for (size_t w = 0; w < hosts; w++)
		(void)send_to(job, w, (w + 1) % hosts, rate_frac[w]);
}

static struct report judge(struct test_job *job, const struct test_job *before)
{
	struct localize_options options = localize_defaults();
	struct report report;

	if (before != NULL) {
		options.past = (const struct fingerprint *const *)before->fps;
		options.past_cnt = before->cnt;
	}
	report = test_localize(job, &options);
	test_job_done(job);
	return report;
}

static bool says(const struct report *report, const char *text)
{
	const struct finding *finding = test_find(report, "slow-link");

	for (size_t i = 0; finding != NULL && i < finding->evidence_cnt; i++) {
		if (strstr(finding->evidence[i], text) != NULL)
			return true;
	}
	return false;
}

static void the_host_that_slow_paths_share_has_the_slow_link(void **state)
{
	struct test_job job;
	struct report report;

	(void)state;
	make_ring(&job, 4, (const double[]){ 1, 1. / 3, 1. / 3, 1 });
	report = judge(&job, NULL);
	test_assert_ranks(test_find(&report, "slow-link"), "2");
	assert_int_equal(report.finding_cnt, 1);
	/* 800 ms on the slow path, 267 ms at the usual rate, in ten iterations. */
	assert_float_equal(report.findings[0].gain_ms_per_iteration, 53.3, 0.1);
	assert_true(says(&report,
			 "eth1 of host-1 sends to host-2 (10.0.0.1 to 10.0.0.2) at 100 Mbit/s") ||
		    says(&report,
			 "eth1 of host-2 sends to host-3 (10.0.0.2 to 10.0.0.3) at 100 Mbit/s"));
	assert_true(says(&report, "the other 2 paths between hosts carry 300 Mbit/s"));
	report_done(&report);
}

static void paths_that_differ_by_little_are_healthy(void **state)
{
	struct test_job job;
	struct report report;

	(void)state;
	make_ring(&job, 4, (const double[]){ 1, 0.8, 0.75, 0.9 });
	report = judge(&job, NULL);
	assert_null(test_find(&report, "slow-link"));
	report_done(&report);
}

/* Two racks: the paths between them share no host. */
static void paths_that_are_slow_by_design_accuse_no_host(void **state)
{
	struct test_job job;
	struct report report;

	(void)state;
	make_ring(&job, 6, (const double[]){ 1, 1, 0.3, 1, 1, 0.3 });
	report = judge(&job, NULL);
	assert_null(test_find(&report, "slow-link"));
	report_done(&report);
}

static void two_hosts_are_compared_with_their_own_past(void **state)
{
	struct test_job job, before;
	struct report report;

	(void)state;
	make_job(&before, 2, 400);
	(void)send_to(&before, 0, 1, 1);
	(void)send_to(&before, 1, 0, 1);
	make_ring(&job, 2, (const double[]){ 0.3, 0.3 });
	report = judge(&job, &before);
	test_assert_ranks(test_find(&report, "slow-link"), "0-1");
	assert_true(says(&report, "in the job's own past: 300 Mbit/s"));
	assert_true(says(&report, "cannot be told"));
	report_done(&report);
	/* As fast as before, whatever the path does. */
	test_job_done(&before);
	make_ring(&before, 2, (const double[]){ 1, 1 });
	make_ring(&job, 2, (const double[]){ 0.3, 0.3 });
	report = judge(&job, &before);
	assert_null(test_find(&report, "slow-link"));
	report_done(&report);
	make_ring(&job, 2, (const double[]){ 0.3, 0.3 });
	report = judge(&job, NULL);
	assert_null(test_find(&report, "slow-link"));
	report_done(&report);
	test_job_done(&before);
}

/* Host 1 also receives from host 2 as fast as ever, so host 0 sends slowly. */
static void another_path_of_the_same_direction_clears_an_end(void **state)
{
	struct test_job job;
	struct report report;

	(void)state;
	make_job(&job, 3, 1000);
	(void)send_to(&job, 0, 1, 0.3);
	(void)send_to(&job, 2, 1, 1);
	(void)send_to(&job, 1, 2, 1);
	(void)send_to(&job, 1, 0, 1);
	report = judge(&job, NULL);
	test_assert_ranks(test_find(&report, "slow-link"), "0");
	report_done(&report);
}

/* The receiver reads too late: no fault of the path. Storage outside the job is no path of it. */
static void a_full_receiver_and_other_machines_are_left_out(void **state)
{
	struct test_job job;
	struct report report;
	struct fp_flow *flow;

	(void)state;
	make_ring(&job, 4, (const double[]){ 1, 1, 1, 1 });
	flow = &job.workers[1].fp.flows.list[0];
	flow->limited_ns = 400 * NSEC_PER_MSEC;
	flow->busy_ns += flow->limited_ns;
	flow = send_to(&job, 3, 9, 0.1);
	report = judge(&job, NULL);
	assert_null(test_find(&report, "slow-link"));
	report_done(&report);
}

/* Rank 1 comes 60 ms late to each collective, and data waits for its acknowledgement meanwhile. */
static void a_receiver_that_comes_late_is_no_slow_path(void **state)
{
	struct test_job job, before;
	struct report report;

	(void)state;
	make_ring(&before, 2, (const double[]){ 1, 1 });
	make_job(&job, 2, 1400);
	job.workers[0].fp.class_ns[CLASS_COMM] = 1000 * NSEC_PER_MSEC;
	job.workers[1].fp.class_ns[CLASS_COMM] = 400 * NSEC_PER_MSEC;
	send_to(&job, 0, 1, 1)->busy_ns += 400 * NSEC_PER_MSEC;
	(void)send_to(&job, 1, 0, 1);
	report = judge(&job, &before);
	assert_null(test_find(&report, "slow-link"));
	report_done(&report);
	test_job_done(&before);
}

/* Data waits on its way when the ends wait for CPUs. */
static void hosts_without_cpus_have_no_slow_path(void **state)
{
	static const struct {
		double run_delay_frac, psi_cpu_frac;
		bool slow;
	} cases[] = { { -1, -1, true },
		      { 0.05, 0.3, true },
		      { 0.5, 0.3, false },
		      { 0.05, 0.9, false },
		      { -1, 0.9, false } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct test_job job;
		struct report report;

		make_ring(&job, 4, (const double[]){ 1, 1. / 3, 1. / 3, 1 });
		job.workers[2].fp.host_stats.run_delay_frac = cases[i].run_delay_frac;
		job.workers[2].fp.host_stats.psi_cpu_frac = cases[i].psi_cpu_frac;
		report = judge(&job, NULL);
		assert_true((test_find(&report, "slow-link") != NULL) == cases[i].slow);
		report_done(&report);
	}
}

/* Another part of the communication takes the time. */
static void a_path_that_is_seldom_used_is_not_slow(void **state)
{
	struct test_job job, before;
	struct report report;

	(void)state;
	make_job(&before, 2, 1000);
	(void)send_to(&before, 0, 1, 10);
	(void)send_to(&before, 1, 0, 10);
	make_job(&job, 2, 1400);
	(void)send_to(&job, 0, 1, 4);
	(void)send_to(&job, 1, 0, 4);
	report = judge(&job, &before);
	assert_null(test_find(&report, "slow-link"));
	report_done(&report);
	test_job_done(&before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_host_that_slow_paths_share_has_the_slow_link),
		cmocka_unit_test(paths_that_differ_by_little_are_healthy),
		cmocka_unit_test(paths_that_are_slow_by_design_accuse_no_host),
		cmocka_unit_test(two_hosts_are_compared_with_their_own_past),
		cmocka_unit_test(another_path_of_the_same_direction_clears_an_end),
		cmocka_unit_test(a_full_receiver_and_other_machines_are_left_out),
		cmocka_unit_test(a_receiver_that_comes_late_is_no_slow_path),
		cmocka_unit_test(hosts_without_cpus_have_no_slow_path),
		cmocka_unit_test(a_path_that_is_seldom_used_is_not_slow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
