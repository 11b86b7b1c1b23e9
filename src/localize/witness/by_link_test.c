/* SPDX-License-Identifier: Apache-2.0 */
/* Links classified by mean and deviation: slow, on a detour, or only waiting. */
#include "localize/test_job.h"

#include <math.h>
#include <string.h>

#define WORKERS 8
#define RATE 0.8 /* of a healthy link while it sends */

/* A transfer of 10 % of the window over a link that sends at a rate, a share of the time. */
static struct fp_function *transfer(struct test_job *job, size_t w, const char *name,
				    enum resource resource, double rate, double busy)
{
	uint32_t frame = test_frame(job, w, FRAME_NONE, KIND_KERNEL, name);
	struct fp_function *f = test_function(job, w, frame, CLASS_COMM, 0.1);

	test_utilize(f, resource, rate * busy, rate * sqrt(busy * (1 - busy)) + 0.02);
	return f;
}

/* Workers of one group, two on a host, that compute for half of the window. */
static void begin(struct test_job *job)
{
	static const char *const hosts[] = { "a", "b", "c", "d" };

	test_job_init(job, WORKERS, 10000, 10);
	for (size_t w = 0; w < WORKERS; w++) {
		struct test_worker *worker = &job->workers[w];
		uint32_t frame = test_frame(job, w, FRAME_NONE, KIND_KERNEL, "GEMM");

		(void)test_function(job, w, frame, CLASS_COMPUTE, 0.5);
		assert_int_equal(
			vec_push(&worker->collectives, (struct fp_collective){ .group = 1,
									       .group_known = true,
									       .seq = 0,
									       .dur_ns = 100000000,
									       .bytes = -1 }),
			0);
		worker->fp.collectives = worker->collectives.data;
		worker->fp.collective_cnt = worker->collectives.cnt;
		worker->fp.host = hosts[w / 2];
	}
}

/* The only finding has this cause and these ranks; a cause of NULL: there is none. */
static void expect_one(struct test_job *job, const char *cause, const char *ranks)
{
	struct report report = test_localize(job, NULL);

	if (report.finding_cnt != (cause != NULL))
		print_error("found %zu: %s\n", report.finding_cnt, report.reason);
	assert_int_equal(report.finding_cnt, cause != NULL ? 1 : 0);
	if (cause != NULL) {
		assert_string_equal(report.findings[0].cause, cause);
		test_assert_ranks(&report.findings[0], ranks);
	}
	report_done(&report);
	test_job_done(job);
}

/* Two rings, of even and of odd ranks; both functions use both. */
static void a_slow_link_is_one_finding_whatever_it_carries(void **state)
{
	struct test_job job;

	(void)state;
	begin(&job);
	for (size_t w = 0; w < WORKERS; w++) {
		double rate = w == 5 ? RATE / 2 : RATE, busy = w % 2 == 0 || w == 5 ? 1 : 0.5;

		(void)transfer(&job, w, "AllGather", RESOURCE_NIC_TX, rate, busy);
		(void)transfer(&job, w, "ReduceScatter", RESOURCE_NIC_TX, rate, busy);
	}
	expect_one(&job, "slow-link", "5");
}

/* Two groups: samples may say what they like of a link if its collectives last no longer. */
static void a_link_is_slow_only_if_its_collectives_last_longer(void **state)
{
	struct test_job job;

	(void)state;
	for (int longer = 0; longer < 2; longer++) {
		begin(&job);
		for (size_t w = 0; w < WORKERS; w++) {
			double rate = w == 5 ? RATE / 2 : RATE, busy = w < 4 || w == 5 ? 1 : 0.5;
			struct fp_function *f =
				transfer(&job, w, "AllReduce", RESOURCE_NIC_TX, rate, busy);

			job.workers[w].collectives.data[0].group = 1 + w / 4;
			f->executions = 10;
			f->total_ns = w < 4 || !longer ? 1000000000 : 2000000000;
		}
		expect_one(&job, longer ? "slow-link" : NULL, "5");
	}
}

/* It sends all the time, but more than the others on the average. */
static void a_link_that_carries_more_than_the_others_is_not_slow(void **state)
{
	struct test_job job;

	(void)state;
	begin(&job);
	for (size_t w = 0; w < WORKERS; w++)
		(void)transfer(&job, w, "AllGather", RESOURCE_NVLINK_TX, w == 5 ? 0.6 * RATE : RATE,
			       w == 5 ? 1 : 0.5);
	expect_one(&job, NULL, NULL);
}

static void a_worker_that_waits_longer_has_no_slow_link(void **state)
{
	struct test_job job;

	(void)state;
	begin(&job);
	for (size_t w = 0; w < WORKERS; w++) {
		struct fp_function *f = transfer(&job, w, "AllReduce", RESOURCE_NIC_TX, RATE, 1);

		f->beta_frac = w < 5 ? 0.1 : 0.3;
	}
	expect_one(&job, NULL, NULL);
}

static void a_worker_on_pcie_with_peers_on_nvlink_is_found(void **state)
{
	struct test_job job;

	(void)state;
	begin(&job);
	for (size_t w = 0; w < WORKERS; w++) {
		if (w == 2)
			(void)transfer(&job, w, "AllReduce", RESOURCE_PCIE_TX, 0.9, 1);
		else
			(void)transfer(&job, w, "AllReduce", RESOURCE_NVLINK_TX, 0.75, 0.2);
	}
	expect_one(&job, "nvlink-fallback", "2");
}

/* Between hosts all send over PCIe: rank 6 also what it should send inside its host. */
static void a_worker_that_sends_more_than_its_ring_takes_a_detour(void **state)
{
	struct test_job job;

	(void)state;
	begin(&job);
	for (size_t w = 0; w < WORKERS; w++)
		(void)transfer(&job, w, "AllReduce", RESOURCE_PCIE_TX, RATE, w == 6 ? 0.9 : 0.1);
	expect_one(&job, "nvlink-fallback", "6");
}

/* All wait by turns, most of them send slower at times, and one is never the slow one. */
static void play_collisions(struct test_job *job)
{
	begin(job);
	for (size_t w = 0; w < WORKERS; w++)
		(void)transfer(job, w, "AllReduce", RESOURCE_NIC_TX, w < 7 ? 0.9 * RATE : RATE,
			       0.5 + 0.02 * (double)w);
}

static void where_all_wait_by_turns_it_is_the_network(void **state)
{
	struct test_job job;

	(void)state;
	play_collisions(&job);
	expect_one(&job, "slow-collective", "0-7");
}

/* Small pauses on all links; the ring of rank 5 is held up by its link besides. */
static void where_all_pause_a_little_it_is_the_network_too(void **state)
{
	struct test_job job;
	struct report report;

	(void)state;
	begin(&job);
	for (size_t w = 0; w < WORKERS; w++) {
		double rate = w == 5 ? RATE / 2 : RATE, busy = w == 5 ? 1 : w % 2 == 1 ? 0.5 : 0.9;

		(void)transfer(&job, w, "AllGather", RESOURCE_NIC_TX, rate, busy);
		(void)transfer(&job, w, "ReduceScatter", RESOURCE_NIC_TX, rate, busy);
	}
	report = test_localize(&job, NULL);
	assert_int_equal(report.finding_cnt, 2);
	test_assert_ranks(test_find(&report, "slow-link"), "5");
	test_assert_ranks(test_find(&report, "slow-collective"), "0-7");
	report_done(&report);
	test_job_done(&job);
}

/* Chunks that jitter leave pauses in a healthy ring. */
static void smaller_pauses_are_what_links_have(void **state)
{
	struct test_job job;

	(void)state;
	begin(&job);
	for (size_t w = 0; w < WORKERS; w++) {
		struct fp_function *f = transfer(&job, w, "AllReduce", RESOURCE_NIC_TX, RATE, 0.96);

		f->beta_frac = 0.3;
	}
	expect_one(&job, NULL, NULL);
}

/* What the host asks of its device, now and then. */
static void links_that_hardly_send_bound_nothing(void **state)
{
	struct test_job job;

	(void)state;
	begin(&job);
	for (size_t w = 0; w < WORKERS; w++) {
		uint32_t frame = test_frame(&job, w, FRAME_NONE, KIND_KERNEL, "AllReduce");

		test_utilize(test_function(&job, w, frame, CLASS_COMM, 0.3), RESOURCE_PCIE_TX, 0.02,
			     0.02);
	}
	expect_one(&job, NULL, NULL);
}

static void an_absent_worker_may_have_the_slow_link(void **state)
{
	struct test_job job;

	(void)state;
	play_collisions(&job);
	for (size_t w = 0; w < WORKERS; w++)
		job.workers[w].fp.world_size = WORKERS + 1;
	expect_one(&job, NULL, NULL);
}

/*
 * Two stages on two hosts each: a slow link holds up one other in each stage at most, and
 * four more wait.
 */
static void a_slow_link_explains_waiting_on_the_hosts_of_its_group_only(void **state)
{
	struct test_job job;

	(void)state;
	begin(&job);
	for (size_t w = 0; w < WORKERS; w++) {
		bool slow = w % 4 == 0;

		(void)transfer(&job, w, "AllReduce", RESOURCE_NIC_TX, slow ? RATE / 2 : RATE,
			       slow ? 1 : 0.5);
		job.workers[w].collectives.data[0].group = 1 + w / 4;
	}
	expect_one(&job, "slow-collective", "0-7");
}

/* Ranks 0, 2 and 4 had bad luck each time; they are on three of four hosts. */
static void slow_links_on_most_hosts_are_the_network(void **state)
{
	struct test_job job;

	(void)state;
	begin(&job);
	for (size_t w = 0; w < WORKERS; w++) {
		bool slow = w == 0 || w == 2 || w == 4;

		(void)transfer(&job, w, "AllReduce", RESOURCE_NIC_TX, slow ? RATE / 2 : RATE,
			       slow ? 1 : 0.5);
	}
	expect_one(&job, "slow-collective", "0-7");
}

/* Flows that meet by chance: rates that differ by as much between any two as from the least. */
static void the_least_of_rates_that_differ_by_chance_is_no_slow_link(void **state)
{
	static const double close[WORKERS] = { 0.66, 0.62, 0.58, 0.62, 0.54, 0.66, 0.66, 0.66 };
	static const double far[WORKERS] = { 0.48, 0.34, 0.26, 0.41, 0.34, 0.56, 0.56, 0.56 };
	struct report report;
	struct test_job job;

	(void)state;
	begin(&job);
	for (size_t w = 0; w < WORKERS; w++)
		(void)transfer(&job, w, "AllReduce", RESOURCE_PCIE_TX, close[w], 1);
	report = test_localize(&job, NULL);
	assert_null(test_find(&report, "slow-link"));
	report_done(&report);
	test_job_done(&job);
	begin(&job);
	for (size_t w = 0; w < WORKERS; w++)
		(void)transfer(&job, w, "AllReduce", RESOURCE_PCIE_TX, far[w], 1);
	expect_one(&job, "slow-collective", "0-7");
}

/* The last stage of a pipeline receives more than it sends. */
static void messages_are_no_evidence_of_a_slow_link(void **state)
{
	struct test_job job;

	(void)state;
	begin(&job);
	for (size_t w = 0; w < WORKERS; w++) {
		struct fp_function *f = transfer(&job, w, "ncclDevKernel_SendRecv",
						 RESOURCE_PCIE_TX, w < 6 ? 0.2 : 0.05, 1);

		f->executions = 80;
	}
	expect_one(&job, NULL, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_slow_link_is_one_finding_whatever_it_carries),
		cmocka_unit_test(a_link_is_slow_only_if_its_collectives_last_longer),
		cmocka_unit_test(a_link_that_carries_more_than_the_others_is_not_slow),
		cmocka_unit_test(a_worker_that_waits_longer_has_no_slow_link),
		cmocka_unit_test(a_worker_on_pcie_with_peers_on_nvlink_is_found),
		cmocka_unit_test(a_worker_that_sends_more_than_its_ring_takes_a_detour),
		cmocka_unit_test(where_all_wait_by_turns_it_is_the_network),
		cmocka_unit_test(where_all_pause_a_little_it_is_the_network_too),
		cmocka_unit_test(smaller_pauses_are_what_links_have),
		cmocka_unit_test(links_that_hardly_send_bound_nothing),
		cmocka_unit_test(an_absent_worker_may_have_the_slow_link),
		cmocka_unit_test(a_slow_link_explains_waiting_on_the_hosts_of_its_group_only),
		cmocka_unit_test(slow_links_on_most_hosts_are_the_network),
		cmocka_unit_test(the_least_of_rates_that_differ_by_chance_is_no_slow_link),
		cmocka_unit_test(messages_are_no_evidence_of_a_slow_link),
	};

	return cmocka_run_group_tests_name("by_link", tests, NULL, NULL);
}
