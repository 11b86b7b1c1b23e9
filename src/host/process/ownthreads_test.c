/* SPDX-License-Identifier: Apache-2.0 */
#include "host/process/ownthreads.h"

#include "host/process/test_tree.h"

#define NOW_NS (5 * NSEC_PER_SEC)

static void write_thread(const char *root, unsigned tid, const char *comm, const char *schedstat)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "proc/40/task/%u/comm", tid);
	write_file(root, path, comm);
	(void)snprintf(path, sizeof(path), "proc/40/task/%u/schedstat", tid);
	write_file(root, path, schedstat);
}

static void expect_sum(const struct ownthreads *own, enum own_thread thread, int64_t cpu_ns)
{
	int64_t sums[OWN_THREAD_CNT] = { 0 };

	ownthreads_add(own, sums);
	assert_int_equal(sums[thread], cpu_ns);
}

static void test_the_agents_threads_are_found_among_the_jobs(void **state)
{
	const char *root = *state;
	struct ownthreads own;

	write_thread(root, 40, "python3\n", "900 5 1\n");
	write_thread(root, 41, "pt-sampler\n", "1200 5 1\n");
	write_thread(root, 42, "pt-gpucalls\n", "30 5 1\n");
	write_thread(root, 43, "pt-gpu\n", "4 5 1\n");
	write_thread(root, 44, "pt_main\n", "800 5 1\n");
	ownthreads_open(&own, root, 40, OWN_THREAD_CNT);
	ownthreads_look(&own, NOW_NS);
	assert_int_equal(own.cnt, 3);
	expect_sum(&own, OWN_THREAD_SAMPLER, 1200);
	expect_sum(&own, OWN_THREAD_GPU_CALLS, 30);
	expect_sum(&own, OWN_THREAD_GPU_RECORDS, 4);
}

static void test_all_threads_of_the_daemon_are_counted(void **state)
{
	const char *root = *state;
	struct ownthreads own;

	write_thread(root, 40, "perftracker\n", "900 5 1\n");
	write_thread(root, 41, "MHD-single\n", "70 5 1\n");
	write_thread(root, 42, "pt-gpuwatch\n", "30 5 1\n");
	ownthreads_open(&own, root, 40, OWN_THREAD_DAEMON);
	ownthreads_look(&own, NOW_NS);
	expect_sum(&own, OWN_THREAD_DAEMON, 900);
	expect_sum(&own, OWN_THREAD_METRICS, 70);
	expect_sum(&own, OWN_THREAD_GPUWATCH, 30);
}

static void test_what_a_thread_used_stays_when_it_has_ended(void **state)
{
	const char *root = *state;
	struct ownthreads own;

	write_thread(root, 41, "pt-gpu\n", "1200 5 1\n");
	ownthreads_open(&own, root, 40, OWN_THREAD_CNT);
	ownthreads_look(&own, NOW_NS);
	write_thread(root, 41, "python3\n", "7 5 1\n"); /* its number was given again */
	ownthreads_look(&own, NOW_NS);
	expect_sum(&own, OWN_THREAD_GPU_RECORDS, 1200);
	assert_int_equal(remove_root(state), 0);
	ownthreads_look(&own, NOW_NS + 100 * NSEC_PER_SEC);
	expect_sum(&own, OWN_THREAD_GPU_RECORDS, 1200);
	assert_int_equal(mkdir(root, 0700), 0);
}

static void test_a_thread_that_begins_later_is_found_later(void **state)
{
	const char *root = *state;
	struct ownthreads own;

	write_thread(root, 40, "python3\n", "900 5 1\n");
	ownthreads_open(&own, root, 40, OWN_THREAD_CNT);
	ownthreads_look(&own, NOW_NS);
	write_thread(root, 41, "pt-sampler\n", "1200 5 1\n");
	ownthreads_look(&own, NOW_NS + NSEC_PER_SEC / 2);
	assert_int_equal(own.cnt, 0);
	ownthreads_look(&own, NOW_NS + NSEC_PER_SEC);
	expect_sum(&own, OWN_THREAD_SAMPLER, 1200);
}

static void test_ticks_count_where_the_scheduler_keeps_no_account(void **state)
{
	const char *root = *state;
	struct ownthreads own;

	write_file(root, "proc/40/task/41/comm", "pt-sampler\n");
	write_file(
		root, "proc/40/task/41/stat",
		"41 (pt-sampler) S 1 1 1 0 -1 64 0 0 0 0 3 4 0 0 20 0 1 0 99 0 0 0 0 0 0 0 0 0 0 "
		"0 0 0 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 0\n");
	ownthreads_open(&own, root, 40, OWN_THREAD_CNT);
	ownthreads_look(&own, NOW_NS);
	expect_sum(&own, OWN_THREAD_SAMPLER, 7 * 10 * NSEC_PER_MSEC);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_root, remove_root)
	const struct CMUnitTest tests[] = {
		TEST(test_the_agents_threads_are_found_among_the_jobs),
		TEST(test_all_threads_of_the_daemon_are_counted),
		TEST(test_what_a_thread_used_stays_when_it_has_ended),
		TEST(test_a_thread_that_begins_later_is_found_later),
		TEST(test_ticks_count_where_the_scheduler_keeps_no_account),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
