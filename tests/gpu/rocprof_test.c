/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rocprofiler-sdk back end on a double of that library (doubles/librocprofiler-sdk.c):
 * each test in a process of its own, as a training process has it. DOUBLE_ROCPROF names the
 * double of ROCm 7, DOUBLE_ROCPROF_OLD that of ROCm 6.4.
 */
#include "agent/gpu/gputrace.h"
#include "base/clock.h"
#include "doubles/rocprof_double.h"
#include "test_sink.h"

#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

/* What the back end exports, and what it takes for an interpreter. */
void *rocprofiler_configure(uint32_t version, const char *text, uint32_t priority, void *client);
int Py_IsInitialized(void);

static int python = 1;

int Py_IsInitialized(void)
{
	return python;
}

static struct {
	__typeof__(&double_begin) begin;
	__typeof__(&double_symbol) symbol;
	__typeof__(&double_kernel) kernel;
	__typeof__(&double_copy) copy;
	__typeof__(&double_call) call;
	__typeof__(&double_end) end;
	__typeof__(&double_set) set;
	__typeof__(&double_count) count;
	__typeof__(&double_fault) fault;
} job;

static void open_double(const char *variable)
{
	void *sdk = dlopen(getenv(variable), RTLD_NOW);

	CHECK(sdk != NULL);
	find(sdk, "double_begin", &job.begin);
	find(sdk, "double_symbol", &job.symbol);
	find(sdk, "double_kernel", &job.kernel);
	find(sdk, "double_copy", &job.copy);
	find(sdk, "double_call", &job.call);
	find(sdk, "double_end", &job.end);
	find(sdk, "double_set", &job.set);
	find(sdk, "double_count", &job.count);
	find(sdk, "double_fault", &job.fault);
}

/* --- a window --- */

static char why[GPUTRACE_WHY_MAX];

/* The job loads ROCm, which calls rocprofiler_configure(). */
static void load(void)
{
	job.begin((void *)rocprofiler_configure);
	job.symbol(11, "Cijk_Ailk_Bljk_SB_MT64x64.kd");
	job.symbol(12, "_Z4reluPf");
}

static void begin(void)
{
	seen.cnt = 0;
	CHECK(gputrace_rocprof.probe(why) == 0);
	CHECK(gputrace_rocprof.start(&sink, why) == 0);
}

static int end(void)
{
	gputrace_rocprof.stop();
	while (gputrace_rocprof.drain(1000) > 0)
		;
	return gputrace_rocprof.close(why);
}

static void work(size_t kernels)
{
	for (size_t i = 0; i < kernels; i++) {
		job.call("hipLaunchKernel", i + 1);
		job.call("hipGetDevice", i + 1);
		job.kernel(11 + i % 2, 0x7f0000001000 + i % 2 * 64, i + 1);
	}
	job.copy(2, 4096, 900);
	job.copy(3, 512, 901);
	job.call("hipStreamSynchronize", 902);
}

static void check_window(size_t kernels)
{
	const struct gputrace_event *gemm, *launch, *copy;

	CHECK(count(GPUTRACE_KERNEL, "Cijk_Ailk_Bljk_SB_MT64x64") == kernels / 2);
	CHECK(count(GPUTRACE_KERNEL, "_Z4reluPf") == kernels / 2);
	CHECK(count(GPUTRACE_API, "hipLaunchKernel") == kernels);
	CHECK(count(GPUTRACE_API, "hipStreamSynchronize") == 1);
	CHECK(seen.cnt == 2 * kernels + 3);
	gemm = first(GPUTRACE_KERNEL, "Cijk_Ailk_Bljk_SB_MT64x64");
	launch = first(GPUTRACE_API, "hipLaunchKernel");
	copy = first(GPUTRACE_MEMOP, "Memcpy HtoD (Host -> Device)");
	CHECK(gemm->device == 0 && gemm->id == 1 && gemm->size == 2048);
	CHECK(first(GPUTRACE_KERNEL, "_Z4reluPf")->id == 2);
	CHECK(gemm->correlation == 1 && launch->correlation == 1);
	CHECK(launch->device == GPUTRACE_THREAD && launch->id == (uint32_t)getpid());
	CHECK(gemm->dur_ns == 5000 && launch->dur_ns == 700);
	CHECK(llabs(gemm->start_ns - clock_mono_ns()) < 60 * NSEC_PER_SEC);
	CHECK(copy->size == 4096 && copy->device == 0);
	CHECK(first(GPUTRACE_MEMOP, "Memcpy DtoH (Device -> Host)")->device == 0);
	CHECK(strcmp(seen.device, "AMD gfx90a") == 0);
}

static void run(const char *variable, void (*scenario)(void))
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		open_seen();
		(void)setenv("PERFTRACKER_SOCKET", "/tmp/none", 1);
		(void)setenv("ROCP_TOOL_LIBRARIES", "/usr/lib/libperftracker-agent.so", 1);
		open_double(variable);
		scenario();
		if (job.count("faults") > 0)
			fprintf(stderr, "the double complains: %s\n", job.fault());
		_exit(job.count("faults") > 0);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* --- scenarios --- */

static void whole_window(void)
{
	load();
	CHECK(job.count("contexts") == 2 && job.count("services") == 4);
	CHECK(job.count("active") == 1); /* names alone */
	work(10);			 /* before the window */
	begin();
	CHECK(job.count("active") == 2);
	work(100);
	CHECK(end() == 0);
	check_window(100);
	CHECK(job.count("active") == 1);
	CHECK(seen.untimed == 0 && seen.dropped == 0);
}

static void a_window_has_what_ran_and_the_context_stops(_unused_ void **state)
{
	run("DOUBLE_ROCPROF", whole_window);
}

static void layouts_before_1_0_are_read(_unused_ void **state)
{
	run("DOUBLE_ROCPROF_OLD", whole_window);
}

static void windows_again(void)
{
	load();
	for (size_t i = 0; i < 3; i++) {
		begin();
		work(20);
		CHECK(end() == 0);
		check_window(20);
		work(20); /* between windows */
		job.symbol(50 + i, "loaded_later");
	}
	begin();
	job.kernel(51, 7, 1);
	CHECK(end() == 0);
	CHECK(seen.cnt == 1 && count(GPUTRACE_KERNEL, "loaded_later") == 1);
}

static void windows_follow_each_other(_unused_ void **state)
{
	run("DOUBLE_ROCPROF", windows_again);
}

static void larger(void)
{
	load();
	for (int64_t bytes = 8; bytes <= 1000; bytes += 62) {
		job.set("larger", bytes);
		begin();
		work(10);
		CHECK(end() == 0);
		check_window(10);
		CHECK(seen.dropped == 0);
	}
}

static void records_of_later_versions_are_larger(_unused_ void **state)
{
	run("DOUBLE_ROCPROF", larger);
}

static void strangers(void)
{
	load();
	job.set("stranger", 1);
	begin();
	work(10);
	CHECK(end() == 0);
	check_window(10);
	CHECK(seen.dropped == 0);
}

static void unknown_records_are_passed_over(_unused_ void **state)
{
	run("DOUBLE_ROCPROF", strangers);
}

static void broken(void)
{
	load();
	job.set("broken", 1);
	begin();
	work(10);
	CHECK(end() == 0);
	check_window(10);
	CHECK(seen.dropped == 23); /* one beside each */
}

static void records_that_are_too_short_are_counted(_unused_ void **state)
{
	run("DOUBLE_ROCPROF", broken);
}

static void drops(void)
{
	load();
	job.set("dropped", 30); /* before the first window, perhaps another tool's */
	begin();
	work(10);
	CHECK(end() == 0);
	CHECK(seen.dropped == 30);
	seen.dropped = 0;
	job.set("dropped", 37);
	begin();
	work(10);
	CHECK(end() == 0);
	CHECK(seen.dropped == 7);
}

static void records_the_sdk_dropped_are_counted_once(_unused_ void **state)
{
	run("DOUBLE_ROCPROF", drops);
}

/* 32 MiB hold 180 thousand kernels. */
static void exhausted(void)
{
	const size_t cnt = 250000;

	load();
	begin();
	for (size_t i = 0; i < cnt; i++)
		job.kernel(11, 0x7f0000001000, i + 1);
	CHECK(end() == 0);
	CHECK(seen.cnt > 100000 && seen.dropped > 0 && seen.cnt + seen.dropped == cnt);
	seen.dropped = 0;
	begin();
	work(10);
	CHECK(end() == 0);
	check_window(10);
}

static void a_pool_that_is_empty_refuses_and_counts(_unused_ void **state)
{
	run("DOUBLE_ROCPROF", exhausted);
}

static void untimed(void)
{
	load();
	job.set("untimed", 1);
	begin();
	work(10);
	CHECK(end() == 0);
	CHECK(seen.untimed == 10 && seen.cnt == 13);
}

static void kernels_without_times_are_left_out(_unused_ void **state)
{
	run("DOUBLE_ROCPROF", untimed);
}

static void nameless(void)
{
	char text[1500];

	load();
	memset(text, 'n', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	job.symbol(70, text);
	begin();
	job.kernel(69, 1, 1);
	job.kernel(70, 1, 2);
	CHECK(end() == 0);
	CHECK(count(GPUTRACE_KERNEL, "unknown kernel") == 1);
	CHECK(seen.cnt == 2 && strlen(seen.names[seen.events[1].name]) == 1000);
}

static void unknown_and_endless_names_do_no_harm(_unused_ void **state)
{
	run("DOUBLE_ROCPROF", nameless);
}

static void refused(void)
{
	load();
	CHECK(gputrace_rocprof.probe(why) == 0);
	job.set("refuse", 12);
	CHECK(gputrace_rocprof.start(&sink, why) == -EBUSY);
	CHECK(strstr(why, "another profiler") != NULL);
	job.set("refuse", 11);
	CHECK(gputrace_rocprof.start(&sink, why) == -ENOTSUP);
	CHECK(strstr(why, "status 11") != NULL);
	CHECK(job.count("active") == 1);
	job.set("refuse", 0);
	begin();
	work(10);
	CHECK(end() == 0);
	check_window(10);
}

static void a_context_that_does_not_start_is_reported(_unused_ void **state)
{
	run("DOUBLE_ROCPROF", refused);
}

static void fails_at_load(void)
{
	job.set("refuse", 1);
	load();
	job.set("refuse", 0);
	CHECK(gputrace_rocprof.probe(why) == -ENOTSUP);
}

static void a_declaration_that_fails_takes_all_back(_unused_ void **state)
{
	run("DOUBLE_ROCPROF", fails_at_load);
}

static void declines(void)
{
	load();
	CHECK(job.count("contexts") == 0 && job.count("active") == 0);
	CHECK(gputrace_rocprof.probe(why) == -ENOTSUP);
	CHECK(strstr(why, "ROCP_TOOL_LIBRARIES") != NULL);
}

static void without_daemon(void)
{
	(void)unsetenv("PERFTRACKER_SOCKET");
	declines();
}

static void not_asked_for(void)
{
	(void)setenv("ROCP_TOOL_LIBRARIES", "/usr/lib/libother.so", 1);
	declines();
}

static void no_interpreter(void)
{
	python = 0;
	declines();
}

static void from_the_future(void)
{
	job.set("version", 20000);
	declines();
}

static void processes_other_than_workers_declare_nothing(_unused_ void **state)
{
	run("DOUBLE_ROCPROF", without_daemon);
	run("DOUBLE_ROCPROF", not_asked_for);
	run("DOUBLE_ROCPROF", no_interpreter);
	run("DOUBLE_ROCPROF", from_the_future);
}

static void unused(void)
{
	CHECK(gputrace_rocprof.probe(why) == -ENOENT); /* ROCm has not started */
	job.begin((void *)rocprofiler_configure);
	CHECK(gputrace_rocprof.probe(why) == -ENOENT); /* no code was loaded */
}

static void a_process_without_kernels_is_no_user_of_the_gpu(_unused_ void **state)
{
	run("DOUBLE_ROCPROF", unused);
}

static void forks(void)
{
	pid_t pid;
	int status;

	load();
	begin();
	work(10);
	pid = fork();
	if (pid == 0) {
		gputrace_rocprof.forked();
		job.symbol(99, "of_the_child");
		_exit(gputrace_rocprof.probe(why) == -ENOENT ? 0 : 1);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	CHECK(end() == 0);
	check_window(10);
}

static void a_forked_child_has_no_gpu(_unused_ void **state)
{
	run("DOUBLE_ROCPROF", forks);
}

static void ends(void)
{
	load();
	begin();
	work(10);
	job.end(); /* the SDK must not be called any more */
	CHECK(end() == 0);
	CHECK(gputrace_rocprof.probe(why) == -ENOENT || gputrace_rocprof.probe(why) == -ENOTSUP);
}

static void a_window_may_be_open_when_the_process_ends(_unused_ void **state)
{
	run("DOUBLE_ROCPROF", ends);
}

static void no_sdk_is_no_gpu(_unused_ void **state)
{
	assert_int_equal(gputrace_rocprof.probe(why), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_sdk_is_no_gpu),
		cmocka_unit_test(a_window_has_what_ran_and_the_context_stops),
		cmocka_unit_test(layouts_before_1_0_are_read),
		cmocka_unit_test(windows_follow_each_other),
		cmocka_unit_test(records_of_later_versions_are_larger),
		cmocka_unit_test(unknown_records_are_passed_over),
		cmocka_unit_test(records_that_are_too_short_are_counted),
		cmocka_unit_test(records_the_sdk_dropped_are_counted_once),
		cmocka_unit_test(a_pool_that_is_empty_refuses_and_counts),
		cmocka_unit_test(kernels_without_times_are_left_out),
		cmocka_unit_test(unknown_and_endless_names_do_no_harm),
		cmocka_unit_test(a_context_that_does_not_start_is_reported),
		cmocka_unit_test(a_declaration_that_fails_takes_all_back),
		cmocka_unit_test(processes_other_than_workers_declare_nothing),
		cmocka_unit_test(a_process_without_kernels_is_no_user_of_the_gpu),
		cmocka_unit_test(a_forked_child_has_no_gpu),
		cmocka_unit_test(a_window_may_be_open_when_the_process_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
