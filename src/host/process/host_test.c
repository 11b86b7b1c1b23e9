/* SPDX-License-Identifier: Apache-2.0 */
#include "host/process/contenders.h"
#include "host/process/procfs.h"
#include "host/process/test_tree.h"
#include "host/process/threads.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define MS NSEC_PER_MSEC

/* The clock that contenders_look() asks; each test sets it. */
static int64_t fake_now_ns;

static int64_t fake_clock(void)
{
	return fake_now_ns;
}

static void put_file(const char *root, const char *path, const char *text, size_t len)
{
	char below[256];

	(void)snprintf(below, sizeof(below), "proc/%s", path);
	write_bytes(root, below, text, len);
}

static void put_thread(const char *root, uint32_t pid, uint32_t tid, uint64_t cpu_ns,
		       uint64_t delay_ns)
{
	char path[128], text[128];
	int len;

	(void)snprintf(path, sizeof(path), "%" PRIu32 "/task/%" PRIu32 "/schedstat", pid, tid);
	len = snprintf(text, sizeof(text), "%" PRIu64 " %" PRIu64 " 12\n", cpu_ns, delay_ns);
	put_file(root, path, text, (size_t)len);
	(void)snprintf(path, sizeof(path), "%" PRIu32 "/task/%" PRIu32 "/comm", pid, tid);
	put_file(root, path, "python\n", 7);
}

/* ticks of user time; last on CPU `processor`, allowed on `cpus`. */
static void put_process(const char *root, uint32_t pid, uint32_t ppid, uint64_t ticks,
			int processor, const char *cpus, const char *command)
{
	char path[128], text[512];
	int len;

	len = snprintf(text, sizeof(text),
		       "%" PRIu32 " (some (odd) name) R %" PRIu32 " 1 1 0 -1 0 0 0 0 0 %" PRIu64
		       " 0 0 0 20 0 1 0 777 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 %d 0 0 0 0 0\n",
		       pid, ppid, ticks, processor);
	(void)snprintf(path, sizeof(path), "%" PRIu32 "/stat", pid);
	put_file(root, path, text, (size_t)len);
	(void)snprintf(path, sizeof(path), "%" PRIu32 "/task/%" PRIu32 "/stat", pid, pid);
	put_file(root, path, text, (size_t)len);
	(void)snprintf(path, sizeof(path), "%" PRIu32 "/cmdline", pid);
	put_file(root, path, command, strlen(command) + 1);
	len = snprintf(text, sizeof(text), "Name:\tx\nCpus_allowed_list:\t%s\nMems:\t0\n", cpus);
	(void)snprintf(path, sizeof(path), "%" PRIu32 "/status", pid);
	put_file(root, path, text, (size_t)len);
}

static void stat_survives_parentheses_in_a_name(void **state)
{
	struct procfs_stat stat;

	put_process(*state, 7, 3, 250, 5, "0", "x");
	assert_int_equal(procfs_read_stat(*state, 7, 0, &stat), 0);
	assert_int_equal(stat.pid, 7);
	assert_int_equal(stat.ppid, 3);
	assert_int_equal(stat.ticks, 250);
	assert_int_equal(stat.processor, 5);
	assert_int_equal(stat.start, 777);
	assert_int_equal(stat.state, 'R');
	assert_string_equal(stat.comm, "some (odd) name");
}

static void garbage_in_proc_is_refused(void **state)
{
	struct procfs_stat stat;
	uint64_t a, b;
	cpu_set_t cpus;

	(void)state;
	assert_int_equal(procfs_parse_stat("", &stat), -EINVAL);
	assert_int_equal(procfs_parse_stat("7 )x( R 1", &stat), -EINVAL);
	assert_int_equal(procfs_parse_stat("7 (x) R 1 2 3", &stat), -EINVAL);
	assert_int_equal(procfs_parse_schedstat("12", &a, &b), -EINVAL);
	assert_int_equal(procfs_parse_cpus("", &cpus), -EINVAL);
	assert_int_equal(procfs_parse_cpus("3-1", &cpus), -EINVAL);
	assert_int_equal(procfs_parse_cpus("1,", &cpus), -EINVAL);
	assert_int_equal(procfs_parse_cpus("1x", &cpus), -EINVAL);
}

static void a_cpu_list_is_a_set(void **state)
{
	cpu_set_t cpus;

	(void)state;
	assert_int_equal(procfs_parse_cpus("0-2,7\n", &cpus), 0);
	assert_int_equal(CPU_COUNT(&cpus), 4);
	assert_true(CPU_ISSET(7, &cpus));
	assert_int_equal(procfs_parse_cpus("5-99999999", &cpus), 0);
	assert_int_equal(CPU_COUNT(&cpus), CPU_SETSIZE - 5);
}

static void a_command_line_is_one_printable_line(void **state)
{
	char text[64];

	put_file(*state, "9/cmdline", "python\0-c\0a\nb\x1b[m\0", 18);
	assert_int_equal(procfs_read_command(*state, 9, text, sizeof(text)), 0);
	assert_string_equal(text, "python -c a b?[m");
}

static void an_idle_thread_costs_no_records(void **state)
{
	struct sidecar out = { 0 };
	struct thread_sampler sampler;

	put_thread(*state, 70, 70, 1000, 10);
	thread_sampler_open(&sampler, *state, 70);
	for (int i = 1; i <= 5; i++)
		assert_int_equal(thread_sampler_look(&sampler, i * 10 * MS, 2, &out), 0);
	assert_int_equal(out.samples.cnt, 1);
	put_thread(*state, 70, 70, 2000, 20);
	assert_int_equal(thread_sampler_look(&sampler, 60 * MS, 2, &out), 0);
	assert_int_equal(out.samples.cnt, 3);
	assert_int_equal(out.samples.data[1].time_ns, 50 * MS);
	assert_int_equal(out.samples.data[1].cpu_ns, 1000);
	assert_int_equal(out.samples.data[2].cpu_ns, 2000);
	assert_int_equal(out.samples.data[2].run_delay_ns, 20);
	assert_int_equal(out.process_samples.cnt, 6);
	thread_sampler_close(&sampler);
	sidecar_done(&out);
}

static void a_new_thread_is_found_and_named(void **state)
{
	struct sidecar out = { 0 };
	struct thread_sampler sampler;

	put_thread(*state, 70, 70, 1000, 10);
	thread_sampler_open(&sampler, *state, 70);
	assert_int_equal(thread_sampler_look(&sampler, 10 * MS, 2, &out), 0);
	put_thread(*state, 70, 71, 5, 6);
	assert_int_equal(thread_sampler_look(&sampler, 20 * MS, 2, &out), 0);
	assert_int_equal(out.threads.cnt, 1);
	assert_int_equal(thread_sampler_look(&sampler, 70 * MS, 2, &out), 0);
	assert_int_equal(out.threads.cnt, 2);
	assert_int_equal(out.threads.data[1].tid, 71);
	assert_string_equal(out.threads.data[1].name, "python");
	thread_sampler_close(&sampler);
	sidecar_done(&out);
}

static void a_process_that_is_gone_is_reported(void **state)
{
	struct sidecar out = { 0 };
	struct thread_sampler sampler;

	thread_sampler_open(&sampler, *state, 4242);
	assert_int_equal(thread_sampler_look(&sampler, 10 * MS, 2, &out), -ESRCH);
	thread_sampler_close(&sampler);
	sidecar_done(&out);
}

/* 20 looks in 2 s; the process `pid` uses a whole CPU, worker 70 half of one. */
static void watch(const char *root, struct contenders *contenders, uint32_t pid, uint32_t ppid,
		  const char *cpus, const char *command)
{
	const struct contenders_worker worker = { 70, 70 };

	contenders_open(contenders, root);
	put_process(root, 60, 1, 0, 0, "0-3", "torchrun");
	for (int i = 0; i <= 20; i++) {
		put_process(root, 70, 60, (uint64_t)(5 * i), 1, "0-1", "python train.py");
		put_process(root, pid, ppid, (uint64_t)(10 * i), i % 4 == 0 ? 0 : 1, cpus, command);
		fake_now_ns = (1000 + 100 * i) * MS;
		assert_int_equal(contenders_look(contenders, &worker, 1, fake_clock), 0);
	}
}

static size_t name(const struct contenders *contenders, struct sidecar *ret)
{
	const struct contenders_worker worker = { 70, 70 };
	const struct contenders_query query = { &worker, 1, 0, 60, 50 };

	assert_int_equal(contenders_name(contenders, &query, ret), 0);
	return ret->thieves.cnt;
}

static void a_hog_outside_the_job_is_named(void **state)
{
	struct contenders contenders;
	struct sidecar out = { 0 };

	watch(*state, &contenders, 99, 1, "1", "stress --cpu 1");
	assert_int_equal(name(&contenders, &out), 1);
	assert_int_equal(out.thieves.data[0].pid, 99);
	assert_int_equal(out.thieves.data[0].flags, 0);
	assert_true(fabs(out.thieves.data[0].cpu_frac - 1.0) < 1e-9);
	assert_true(fabs(out.thieves.data[0].overlap_frac - 0.75) < 0.02);
	assert_string_equal(out.thieves.data[0].command, "stress --cpu 1");
	assert_string_equal(out.thieves.data[0].cpus, "1");
	contenders_close(&contenders);
	sidecar_done(&out);
}

/*
 * 70 has no window and is not looked at. 72 comes later, listed before 71. The hog runs on the CPU
 * of 71, which is present in a part of the looks, and the list is in another order each time.
 */
static void a_contender_is_reported_for_the_worker_that_loses_its_cpu(void **state)
{
	static const struct contenders_worker all[] = { { 70, 70 }, { 71, 71 }, { 72, 72 } };
	static const double overlap_fracs[] = { 0, 1, 0 };
	const struct contenders_worker turned[] = { all[2], all[1] };
	struct contenders contenders;

	contenders_open(&contenders, *state);
	for (int i = 0; i <= 20; i++) {
		for (int rank = 0; rank < 3; rank++)
			put_process(*state, all[rank].pid, 60, (uint64_t)(5 * i), rank, "0-3",
				    "python train.py");
		put_process(*state, 99, 1, (uint64_t)(10 * i), 1, "0-3", "stress --cpu 1");
		fake_now_ns = (1000 + 100 * i) * MS;
		assert_int_equal(contenders_look(&contenders, i % 2 != 0 ? turned : all + 1,
						 i == 0 || i % 3 == 1 ? 1 : 2, fake_clock),
				 0);
	}
	for (size_t rank = 0; rank < 3; rank++) {
		const struct contenders_query query = { all, 3, rank, 60, 50 };
		struct sidecar out = { 0 };

		assert_int_equal(contenders_name(&contenders, &query, &out), 0);
		assert_int_equal(out.thieves.cnt, 1);
		assert_true(fabs(out.thieves.data[0].overlap_frac - overlap_fracs[rank]) < 1e-9);
		sidecar_done(&out);
	}
	contenders_close(&contenders);
}

static void workers_beyond_the_limit_are_left_out(void **state)
{
	struct contenders_worker many[CONTENDERS_WORKER_MAX + 2];
	struct contenders contenders;

	contenders_open(&contenders, *state);
	for (uint32_t i = 0; i < ARRAY_SIZE(many); i++)
		many[i] = (struct contenders_worker){ 100 + i, 100 + i };
	for (int i = 0; i <= 20; i++) {
		put_process(*state, many[0].pid, 60, (uint64_t)i, 0, "0-3", "python train.py");
		put_process(*state, many[33].pid, 60, (uint64_t)i, 1, "0-3", "python train.py");
		put_process(*state, 99, 1, (uint64_t)(10 * i), 1, "0-3", "stress --cpu 1");
		fake_now_ns = (1000 + 100 * i) * MS;
		assert_int_equal(contenders_look(&contenders, many, ARRAY_SIZE(many), fake_clock),
				 0);
	}
	for (size_t i = 0; i < ARRAY_SIZE(many); i += 33) {
		const struct contenders_query query = { many, ARRAY_SIZE(many), i, 60, 50 };
		struct sidecar out = { 0 };

		assert_int_equal(contenders_name(&contenders, &query, &out), 0);
		assert_int_equal(out.thieves.cnt, 1);
		assert_true(out.thieves.data[0].overlap_frac == 0);
		sidecar_done(&out);
	}
	contenders_close(&contenders);
}

static void small_hogs_of_one_command_are_taken_together(void **state)
{
	const struct contenders_worker worker = { 70, 70 };
	struct contenders contenders;
	struct sidecar out = { 0 };

	contenders_open(&contenders, *state);
	for (int i = 0; i <= 20; i++) {
		put_process(*state, 70, 60, (uint64_t)(5 * i), 1, "0-1", "python train.py");
		for (uint32_t pid = 90; pid < 94; pid++)
			put_process(*state, pid, 1, (uint64_t)(i / 2), 1, "1", "hog");
		put_process(*state, 95, 1, (uint64_t)(i / 2), 1, "1", "small");
		fake_now_ns = (1000 + 100 * i) * MS;
		assert_int_equal(contenders_look(&contenders, &worker, 1, fake_clock), 0);
	}
	assert_int_equal(name(&contenders, &out), 1);
	assert_int_equal(out.thieves.data[0].process_cnt, 4);
	assert_true(fabs(out.thieves.data[0].cpu_frac - 0.2) < 1e-9);
	contenders_close(&contenders);
	sidecar_done(&out);
}

static void a_hog_on_other_cpus_is_not_named(void **state)
{
	struct contenders contenders;
	struct sidecar out = { 0 };

	watch(*state, &contenders, 99, 1, "2-3", "stress --cpu 1");
	assert_int_equal(name(&contenders, &out), 0);
	contenders_close(&contenders);
}

static void a_stray_process_of_the_job_is_marked_as_such(void **state)
{
	struct contenders contenders;
	struct sidecar out = { 0 };

	watch(*state, &contenders, 99, 70, "0-3", "python hog.py");
	assert_int_equal(name(&contenders, &out), 1);
	assert_int_equal(out.thieves.data[0].flags, SIDECAR_THIEF_IN_JOB);
	contenders_close(&contenders);
	sidecar_done(&out);
}

static void helpers_of_a_worker_are_not_contenders(void **state)
{
	struct contenders contenders;
	struct sidecar out = { 0 };

	watch(*state, &contenders, 99, 70, "0-3", "python train.py");
	assert_int_equal(name(&contenders, &out), 0);
	contenders_close(&contenders);
	watch(*state, &contenders, 99, 70, "0-3", "python -c from multiprocessing.spawn import x");
	assert_int_equal(name(&contenders, &out), 0);
	contenders_close(&contenders);
}

static void summarizers_of_perftracker_are_not_contenders(void **state)
{
	struct contenders contenders;
	struct sidecar out = { 0 };

	put_process(*state, 50, 1, 0, 0, "0-3", "perftracker run");
	watch(*state, &contenders, 99, 50, "0-3", "perftracker summarize");
	assert_int_equal(name(&contenders, &out), 0);
	contenders_close(&contenders);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(stat_survives_parentheses_in_a_name, make_root,
						remove_root),
		cmocka_unit_test(garbage_in_proc_is_refused),
		cmocka_unit_test(a_cpu_list_is_a_set),
		cmocka_unit_test_setup_teardown(a_command_line_is_one_printable_line, make_root,
						remove_root),
		cmocka_unit_test_setup_teardown(an_idle_thread_costs_no_records, make_root,
						remove_root),
		cmocka_unit_test_setup_teardown(a_new_thread_is_found_and_named, make_root,
						remove_root),
		cmocka_unit_test_setup_teardown(a_process_that_is_gone_is_reported, make_root,
						remove_root),
		cmocka_unit_test_setup_teardown(a_hog_outside_the_job_is_named, make_root,
						remove_root),
		cmocka_unit_test_setup_teardown(
			a_contender_is_reported_for_the_worker_that_loses_its_cpu, make_root,
			remove_root),
		cmocka_unit_test_setup_teardown(workers_beyond_the_limit_are_left_out, make_root,
						remove_root),
		cmocka_unit_test_setup_teardown(small_hogs_of_one_command_are_taken_together,
						make_root, remove_root),
		cmocka_unit_test_setup_teardown(a_hog_on_other_cpus_is_not_named, make_root,
						remove_root),
		cmocka_unit_test_setup_teardown(a_stray_process_of_the_job_is_marked_as_such,
						make_root, remove_root),
		cmocka_unit_test_setup_teardown(helpers_of_a_worker_are_not_contenders, make_root,
						remove_root),
		cmocka_unit_test_setup_teardown(summarizers_of_perftracker_are_not_contenders,
						make_root, remove_root),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
