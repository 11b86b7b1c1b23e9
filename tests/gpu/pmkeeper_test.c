/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve/gpuwatch_sampler.c with short limits, on doubles of libcupti (PM_DOUBLE) and libcuda
 * (PM_DOUBLE_CUDA). What processes do when they are killed is in pm_test.py.
 */
#include "base/clock.h"
#include "collect/host/gpushare.h"
#include "collect/host/testtree.h"
#include "serve/gpuwatch_sampler.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct {
	char note[128];
	struct gpushare_reader reader;
	pid_t keeper;
	int stop_fd; /* -1: standing */
	size_t samples;
	char why[64]; /* the latest that was told of all devices */
} fixture;

static int make_dir(void **state)
{
	memset(&fixture, 0, sizeof(fixture));
	fixture.stop_fd = -1;
	/* By its SONAME the keeper's child finds the copy that is mapped. */
	assert_non_null(dlopen(getenv("PM_DOUBLE_CUDA"), RTLD_NOW));
	if (make_root(state) < 0)
		return -1;
	(void)snprintf(fixture.note, sizeof(fixture.note), "%s.note", (const char *)*state);
	gpushare_open(*state, 0, &fixture.reader);
	return 0;
}

static void take(void *arg, const struct sidecar *piece)
{
	assert_ptr_equal(arg, &fixture);
	fixture.samples += piece->gpu_samples.cnt;
	vec_foreach(gpu, &piece->gpus) {
		if (gpu->index == SIDECAR_GPU_NONE)
			(void)snprintf(fixture.why, sizeof(fixture.why), "%s", gpu->why);
	}
}

static void read_all(void)
{
	(void)gpushare_read(&fixture.reader, take, &fixture);
	(void)usleep(5000);
}

static void start(const char *dir, const char *words, bool standing, int silent_ms)
{
	int fds[2] = { -1, -1 };
	struct err err = { "" };

	assert_int_equal(setenv("PM_DOUBLE_DO", words, 1), 0);
	if (!standing)
		assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	fixture.keeper = fork();
	if (fixture.keeper == 0) {
		const struct gpusampler_options options = { .dir = dir,
							    .note = fixture.note,
							    .library = getenv("PM_DOUBLE"),
							    .stop_fd = fds[0],
							    .silent_ms = silent_ms,
							    .longest_ns = 300 * NSEC_PER_MSEC,
							    .rest_ns = 700 * NSEC_PER_MSEC };

		if (fds[1] >= 0)
			(void)close(fds[1]);
		_exit((int)gpusampler_run(&options, &err));
	}
	assert_true(fixture.keeper > 0);
	if (fds[0] >= 0)
		(void)close(fds[0]);
	fixture.stop_fd = fds[1];
}

static int end(void)
{
	int status = 0;

	if (fixture.stop_fd >= 0)
		assert_int_equal(close(fixture.stop_fd), 0);
	else
		assert_int_equal(kill(fixture.keeper, SIGTERM), 0);
	assert_int_equal(waitpid(fixture.keeper, &status, 0), fixture.keeper);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* The folder may be gone already. */
static int remove_dir(void **state)
{
	(void)remove_root(state);
	return 0;
}

static void one_that_is_silent_is_killed_in_the_window(void **state)
{
	start(*state, "live hang", false, 300);
	while (strcmp(fixture.why, "PM sampling: killed, it did not answer") != 0)
		read_all();
	assert_int_equal(end(), GPUSAMPLER_HUNG);
}

static void one_that_works_is_left_alone(void **state)
{
	start(*state, "live", false, 60000);
	while (fixture.samples < 100)
		read_all();
	assert_string_equal(fixture.why, "");
	assert_int_equal(end(), GPUSAMPLER_DONE);
}

/* Samples come, then none for the rest, then some again: all the while somebody wishes. */
static void nobody_has_the_counters_for_ever(void **state)
{
	int64_t come_ns, gap_ns = 0, wished_ns = 0;

	start(*state, "live", true, 60000);
	come_ns = clock_mono_ns();
	while (gap_ns < 500 * NSEC_PER_MSEC || fixture.samples == 0) {
		size_t before = fixture.samples;

		if (clock_mono_ns() - wished_ns > 100 * NSEC_PER_MSEC &&
		    gpushare_wish(&fixture.reader) == 0)
			wished_ns = clock_mono_ns();
		read_all();
		if (fixture.samples == before)
			continue;
		gap_ns = before > 0 ? clock_mono_ns() - come_ns : 0;
		come_ns = clock_mono_ns();
	}
	gpushare_close(&fixture.reader);
	assert_int_equal(end(), GPUSAMPLER_DONE);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_dir, remove_dir)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(one_that_is_silent_is_killed_in_the_window),
		TEST(one_that_works_is_left_alone),
		TEST(nobody_has_the_counters_for_ever),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
