/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the CUPTI back end detaches on doubles of libcupti and libcuda, see test_cupti.h: from calls of
 * the job, late or not at all, while graphs are captured, and after fatal errors.
 */
#include "test_cupti.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

static void *call_driver(void *arg)
{
	int (*get_version)(int *);
	int version, *stop = arg;

	find(dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD), "cuDriverGetVersion", &get_version);
	while (__atomic_load_n(stop, __ATOMIC_ACQUIRE) == 0)
		(void)get_version(&version);
	return NULL;
}

static void finalize_races(void)
{
	pthread_t thread;
	int stop = 0;

	CHECK(pthread_create(&thread, NULL, call_driver, &stop) == 0);
	for (size_t i = 0; i < 50; i++) {
		begin_window();
		work(4);
		CHECK(end_window() == 0);
		CHECK(job.count("finalized") == (int64_t)i + 1);
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	CHECK(pthread_join(thread, NULL) == 0);
}

static void a_call_of_the_job_may_detach(_unused_ void **state)
{
	run_in_child(finalize_races);
}

static void deaf(void)
{
	job.set("deaf", 1);
	begin_window();
	work(10);
	CHECK(end_window() == -ETIMEDOUT);
	CHECK(strstr(why, "stays attached") != NULL);
	CHECK(job.count("attached") == 1 && job.count("enabled") == 0);
	job.set("deaf", 0);
	begin_window(); /* with what is attached */
	work(10);
	CHECK(end_window() == 0);
	check_window(10);
	CHECK(job.count("finalized") == 1);
}

static void a_detach_that_does_not_come_is_given_up_and_tried_again(_unused_ void **state)
{
	run_in_child(deaf);
}

static int start_when_detached(void)
{
	int ret;

	while ((ret = gputrace_cupti.start(&sink, why)) == -EBUSY)
		(void)sched_yield();
	return ret;
}

static void slow(void)
{
	pthread_t thread;
	int stop = 0;

	CHECK(pthread_create(&thread, NULL, call_driver, &stop) == 0);
	job.set("slow", 1);
	begin_window();
	work(10);
	CHECK(end_window() == -EBUSY);
	check_window(10);
	CHECK(gputrace_cupti.start(&sink, why) == -EBUSY);
	CHECK(strstr(why, "still") != NULL);
	job.set("slow", 0);
	seen.cnt = 0;
	CHECK(start_when_detached() == 0);
	work(20);
	CHECK(end_window() == 0);
	check_window(20);
	CHECK(job.count("finalized") == 2 && job.count("attached") == 0);
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	CHECK(pthread_join(thread, NULL) == 0);
}

static void a_detach_that_ends_late_is_known_to_the_next_window(_unused_ void **state)
{
	run_in_child(slow);
}

static void old_version(void)
{
	job.set("version", 23);
	for (size_t i = 0; i < 3; i++) {
		begin_window();
		work(10);
		if (i == 0)
			job.graph(7, 3, 1000);
		job.synchronize(7);
		CHECK(end_window() == -EOPNOTSUPP);
		CHECK(strstr(why, "12.6") != NULL);
		CHECK(job.count("finalized") == 0 && job.count("attached") == 0);
		CHECK(job.count("enabled") == 0 && job.count("calls") == 0);
		CHECK(job.count("sites") == 0);
		CHECK(count(GPUTRACE_KERNEL, "gemm") == 5);
		CHECK(count(GPUTRACE_KERNEL, "_Z10graph_nodePf") == (i == 0 ? 3 : 0));
	}
}

static void launched_graphs(void)
{
	for (size_t i = 0; i < 3; i++) {
		begin_window();
		work(10);
		if (i == 1)
			job.graph(7, 3, 1000);
		job.synchronize(7);
		CHECK(end_window() == (i == 0 ? 0 : -EOPNOTSUPP));
		CHECK(i == 0 || strstr(why, "the job launches CUDA graphs") != NULL);
		CHECK(job.count("finalized") == 1 && job.count("attached") == 0);
		CHECK(job.count("enabled") == 0 && job.count("calls") == 0);
		CHECK(count(GPUTRACE_KERNEL, "gemm") == 5);
	}
}

static void once_a_graph_was_launched_cupti_is_left_idle(_unused_ void **state)
{
	run_in_child(launched_graphs);
}

static void before_cuda_12_6_cupti_is_left_idle_and_to_others(_unused_ void **state)
{
	run_in_child(old_version);
}

static int stream;

static int end_capture(void)
{
	void *graph;

	return job.end_capture(&stream, &graph);
}

static void captures(void)
{
	int mode = 0;

	CHECK(job.begin_capture(&stream, 0) == 0);
	begin_window();
	CHECK(job.capture_mode(&mode) == 0 && mode == 0); /* as it was */
	CHECK(end_capture() == 0);
	CHECK(job.begin_capture(NULL, 0) != 0);
	work(10);
	CHECK(job.begin_capture(&stream, 0) == 0);
	gputrace_cupti.stop();
	drain_all();
	CHECK(job.capture_mode(&mode) == 0 && mode == 0);
	CHECK(end_capture() == 0);
	CHECK(gputrace_cupti.close(why) == 0);
	check_window(10);
	CHECK(job.count("finalized") == 1);
}

static void graphs_are_captured_while_a_window_begins_and_ends(_unused_ void **state)
{
	run_in_child(captures);
}

static void *end_capture_later(void *arg)
{
	const _Atomic bool *closing = arg;

	while (!atomic_load(closing))
		(void)sched_yield();
	for (size_t i = 0; i < 5; i++)
		(void)sched_yield();
	CHECK(end_capture() == 0);
	return NULL;
}

static void captures_at_close(void)
{
	_Atomic bool closing = false;
	pthread_t thread;

	begin_window();
	work(10);
	CHECK(job.begin_capture(&stream, 0) == 0);
	CHECK(pthread_create(&thread, NULL, end_capture_later, &closing) == 0);
	gputrace_cupti.stop();
	drain_all();
	atomic_store(&closing, true);
	CHECK(gputrace_cupti.close(why) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
	CHECK(job.count("finalized") == 1);
}

static void cupti_is_detached_when_a_capture_has_ended(_unused_ void **state)
{
	run_in_child(captures_at_close);
}

static void captures_for_ever(void)
{
	begin_window();
	CHECK(job.begin_capture(&stream, 0) == 0);
	CHECK(end_window() == -EAGAIN);
	CHECK(strstr(why, "captures") != NULL);
	CHECK(job.count("finalized") == 0 && job.count("enabled") == 0);
	CHECK(end_capture() == 0);
	begin_window();
	work(10);
	CHECK(end_window() == 0);
	check_window(10);
	CHECK(job.count("finalized") == 1 && job.count("attached") == 0);
}

static void a_capture_that_does_not_end_leaves_cupti_attached(_unused_ void **state)
{
	run_in_child(captures_for_ever);
}

static void fatal(void)
{
	begin_window();
	work(10);
	job.set("fatal", 1);
	CHECK(end_window() == -EIO);
	CHECK(strstr(why, "fatal") != NULL);
	CHECK(gputrace_cupti.probe(why) == -ENOTSUP);
	CHECK(job.count("finalized") == 0);
}

static void after_a_fatal_error_cupti_is_left_alone(_unused_ void **state)
{
	run_in_child(fatal);
}

static void *fail_cupti(_unused_ void *arg)
{
	job.set("fatal", 1);
	return NULL;
}

static pthread_t failing_thread;

/* What CUPTI names is read while it fails on another thread, and is still there. */
static uint32_t name_in_failure(const char *text, size_t len)
{
	if (job.count("failing") == 0) {
		CHECK(pthread_create(&failing_thread, NULL, fail_cupti, NULL) == 0);
		while (job.count("failing") == 0)
			(void)sched_yield();
		for (size_t i = 0; i < 20; i++)
			(void)sched_yield();
	}
	CHECK(memchr(text, '?', len) == NULL);
	return sink_name(text, len);
}

static void fatal_meanwhile(void)
{
	static const struct gputrace_sink failing = { name_in_failure, sink_event, sink_lose,
						      sink_device };

	CHECK(gputrace_cupti.probe(why) == 0);
	CHECK(gputrace_cupti.start(&failing, why) == 0);
	work(10);
	gputrace_cupti.stop();
	CHECK(gputrace_cupti.drain(1000) > 10);
	CHECK(pthread_join(failing_thread, NULL) == 0);
	CHECK(gputrace_cupti.drain(1000) == 0);
	CHECK(gputrace_cupti.close(why) == -EIO);
}

static void a_fatal_error_waits_for_the_reader(_unused_ void **state)
{
	run_in_child(fatal_meanwhile);
}

static void fatal_half_read(void)
{
	const size_t kernels = 20000;

	job.set("repeat", 1000);
	begin_window();
	for (size_t i = 0; i < kernels / 1000; i++)
		job.launch("gemm", 7, 1000, 1);
	job.synchronize(7);
	while (seen.cnt < kernels * 95 / 100)
		(void)gputrace_cupti.drain(kernels * 95 / 100 - seen.cnt);
	job.set("fatal", 1);
	CHECK(end_window() == -EIO);
	CHECK(seen.dropped > 0 && seen.cnt + seen.dropped <= kernels);
}

static void records_read_before_a_fatal_error_are_not_lost(_unused_ void **state)
{
	run_in_child(fatal_half_read);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_call_of_the_job_may_detach),
		cmocka_unit_test(a_detach_that_does_not_come_is_given_up_and_tried_again),
		cmocka_unit_test(a_detach_that_ends_late_is_known_to_the_next_window),
		cmocka_unit_test(before_cuda_12_6_cupti_is_left_idle_and_to_others),
		cmocka_unit_test(once_a_graph_was_launched_cupti_is_left_idle),
		cmocka_unit_test(graphs_are_captured_while_a_window_begins_and_ends),
		cmocka_unit_test(cupti_is_detached_when_a_capture_has_ended),
		cmocka_unit_test(a_capture_that_does_not_end_leaves_cupti_attached),
		cmocka_unit_test(after_a_fatal_error_cupti_is_left_alone),
		cmocka_unit_test(a_fatal_error_waits_for_the_reader),
		cmocka_unit_test(records_read_before_a_fatal_error_are_not_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
