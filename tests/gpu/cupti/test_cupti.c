/* SPDX-License-Identifier: Apache-2.0 */
#include "test_cupti.h"

#include "base/clock.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- the doubles --- */

struct cupti_job job;

static void open_doubles(void)
{
	void *cuda = dlopen(getenv("DOUBLE_CUDA"), RTLD_NOW);
	void *cupti = dlopen(getenv("DOUBLE_CUPTI"), RTLD_NOW);

	CHECK(cuda != NULL && cupti != NULL);
	find(cuda, "double_context", &job.context);
	find(cuda, "double_launch", &job.launch);
	find(cuda, "double_copy", &job.copy);
	find(cuda, "double_graph", &job.graph);
	find(cuda, "double_synchronize", &job.synchronize);
	find(cuda, "cuStreamBeginCapture_v2", &job.begin_capture);
	find(cuda, "cuStreamEndCapture", &job.end_capture);
	find(cuda, "cuThreadExchangeStreamCaptureMode", &job.capture_mode);
	find(cupti, "double_set", &job.set);
	find(cupti, "double_count", &job.count);
	find(cupti, "double_fault", &job.fault);
	job.context(1);
}

/* --- a window --- */

char why[GPUTRACE_WHY_MAX];

void begin_window(void)
{
	seen.cnt = 0;
	CHECK(gputrace_cupti.probe(why) == 0);
	CHECK(gputrace_cupti.start(&sink, why) == 0);
}

void drain_all(void)
{
	while (gputrace_cupti.drain(1000) > 0)
		;
}

int end_window(void)
{
	gputrace_cupti.stop();
	drain_all();
	return gputrace_cupti.close(why);
}

void work(size_t kernels)
{
	for (size_t i = 0; i < kernels; i++)
		job.launch(i % 2 == 0 ? "gemm" : "_Z4reluPf", 7, 1000, 1);
	job.copy(1, 4096, 9, 1000);
	job.copy(0, 512, 9, 1000);
	job.synchronize(7);
	job.synchronize(9);
}

static void check_no_fault(void)
{
	if (job.count("faults") > 0)
		fprintf(stderr, "the double complains: %s\n", job.fault());
	CHECK(job.count("faults") == 0);
}

void run_in_child(void (*scenario)(void))
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		open_seen();
		open_doubles();
		scenario();
		check_no_fault();
		_exit(0);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* --- scenarios --- */

void check_window(size_t kernels)
{
	const struct gputrace_event *gemm, *launch;

	CHECK(count(GPUTRACE_KERNEL, "gemm") == kernels / 2);
	CHECK(count(GPUTRACE_KERNEL, "_Z4reluPf") == kernels / 2);
	CHECK(count(GPUTRACE_API, "cudaLaunchKernel") == kernels);
	CHECK(count(GPUTRACE_MEMOP, "Memcpy HtoD (Pinned -> Device)") == 1);
	CHECK(count(GPUTRACE_MEMOP, "Memset (Device)") == 1);
	CHECK(count(GPUTRACE_SYNC, "Stream Sync") == 2);
	gemm = first(GPUTRACE_KERNEL, "gemm");
	launch = first(GPUTRACE_API, "cudaLaunchKernel");
	CHECK(gemm->device == 0 && gemm->id == 7 && gemm->size == 1024);
	CHECK(gemm->correlation != 0 && gemm->correlation == launch->correlation);
	CHECK(launch->device == GPUTRACE_THREAD && launch->id == (uint32_t)getpid());
	CHECK(gemm->dur_ns >= 1000 && llabs(gemm->start_ns - clock_mono_ns()) < 60 * NSEC_PER_SEC);
	CHECK(first(GPUTRACE_MEMOP, "Memset (Device)")->size == 512);
	CHECK(strcmp(seen.device, "Double GPU") == 0);
}
