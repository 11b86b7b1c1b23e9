/* SPDX-License-Identifier: Apache-2.0 */
/*
 * live/gpuwatch/gpuwatch_sampler.c with short limits, on doubles of libcupti (PM_DOUBLE) and libcuda
 * (PM_DOUBLE_CUDA). What processes do when they are killed is in pm_test.py.
 */
#include "base/clock.h"
#include "host/counters/gpushare.h"
#include "host/process/test_tree.h"
#include "live/gpuwatch/gpuwatch_sampler.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static struct {
	bool asleep;	    /* children are, in a driver: no signal ends them */
	bool ignores_child; /* the keeper is started with SIGCHLD ignored */
	char note[128];
	struct gpushare_reader reader;
	pid_t keeper;
	int stop_fd; /* -1: standing */
	size_t samples;
	char dcgm[128], held[160]; /* folder and file of a DCGM; "": there is none */
	char why[64];		   /* the latest reason that was reported for all devices */
} fixture;

/* These two replace libc's. */
int kill(pid_t pid, int number)
{
	return fixture.asleep && number == SIGKILL ? 0 : (int)syscall(SYS_kill, pid, number);
}

unsigned alarm(unsigned limit_s)
{
	const struct itimerval timer = { .it_value.tv_sec = limit_s };

	return fixture.asleep ? 0 : (unsigned)setitimer(ITIMER_REAL, &timer, NULL);
}

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
	assert_int_equal(setenv("PERFTRACKER_CUPTI", getenv("PM_DOUBLE"), 1), 0);
	assert_int_equal(setenv("XDG_RUNTIME_DIR", dir, 1), 0);
	if (!standing)
		assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	fixture.keeper = fork();
	if (fixture.keeper == 0) {
		const struct gpusampler_options options = { .dir = dir,
							    .note = fixture.note,
							    .stop_fd = fds[0],
							    .silent_ms = silent_ms,
							    .again_ns = 50 * NSEC_PER_MSEC,
							    .longest_ns = 300 * NSEC_PER_MSEC,
							    .rest_ns = 700 * NSEC_PER_MSEC };

		if (fds[1] >= 0)
			(void)close(fds[1]);
		if (fixture.ignores_child)
			(void)signal(SIGCHLD, SIG_IGN);
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
	*state = fixture.dcgm;
	return fixture.dcgm[0] != '\0' ? remove_root(state) : 0;
}

static void a_silent_sampler_is_killed_in_the_window(void **state)
{
	start(*state, "live hang", false, 300);
	while (strcmp(fixture.why, "PM sampling: killed, it did not answer") != 0)
		read_all();
	assert_int_equal(end(), GPUSAMPLER_HUNG);
}

static void a_working_sampler_is_left_alone(void **state)
{
	start(*state, "live", false, 60000);
	while (fixture.samples < 100)
		read_all();
	assert_string_equal(fixture.why, "");
	assert_int_equal(end(), GPUSAMPLER_DONE);
}

/* Its only child; 0: there is none. */
static pid_t child_of_keeper(void)
{
	char path[64], text[64] = "", *end;
	pid_t child;
	FILE *file;

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)fixture.keeper,
		       (int)fixture.keeper);
	file = fopen(path, "r");
	assert_non_null(file);
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	(void)fclose(file);
	child = (pid_t)strtol(text, &end, 10);
	assert_string_equal(end + strspn(end, " "), "");
	return child;
}

/* Reads the rest, and requests more if the keeper is a standing one. */
static void request_and_read(void)
{
	if (fixture.stop_fd < 0)
		(void)gpushare_request(&fixture.reader);
	read_all();
}

static void await_why(const char *why)
{
	while (strcmp(fixture.why, why) != 0)
		request_and_read();
}

static void no_sampler_is_started_beside_one_that_cannot_be_killed(void **state)
{
	int64_t reported_ns;
	pid_t stuck, next;

	fixture.asleep = true;
	start(*state, "live hang", true, 300);
	await_why("PM sampling: killed, it did not answer");
	stuck = child_of_keeper();
	assert_true(stuck > 0);
	/* Long enough for another: child_of_keeper() takes no second one. */
	reported_ns = clock_mono_ns();
	while (clock_mono_ns() - reported_ns < NSEC_PER_SEC) {
		request_and_read();
		assert_int_equal(child_of_keeper(), stuck);
	}
	assert_int_equal(syscall(SYS_kill, stuck, SIGKILL), 0); /* the driver has let go of it */
	while ((next = child_of_keeper()) == stuck || next == 0)
		request_and_read();
	assert_int_equal(syscall(SYS_kill, next, SIGKILL), 0);
	gpushare_close(&fixture.reader);
	assert_int_equal(end(), GPUSAMPLER_CRASHED);
}

static void the_starter_learns_of_a_sampler_that_cannot_be_killed(void **state)
{
	pid_t stuck;

	fixture.asleep = true;
	start(*state, "live hang", false, 300);
	await_why("PM sampling: killed, it did not answer");
	stuck = child_of_keeper();
	assert_int_equal(end(), GPUSAMPLER_STUCK);
	assert_int_equal(syscall(SYS_kill, stuck, SIGKILL), 0);
}

/* DCGM has the counters while `held` is there, and takes them back once `mended` is. */
static void make_dcgm(const char *root)
{
	char path[256], script[512];

	(void)snprintf(script, sizeof(script),
		       "#!/bin/sh\ncd %s.dcgm\ncase $2 in\n--pause) mv held paused ;;\n"
		       "--resume) [ -e mended ] && mv paused held ;;\nesac\n",
		       root);
	(void)snprintf(fixture.dcgm, sizeof(fixture.dcgm), "%s.dcgm", root);
	assert_int_equal(mkdir(fixture.dcgm, 0700), 0);
	write_file(fixture.dcgm, "dcgmi", script);
	write_file(fixture.dcgm, "held", "");
	(void)snprintf(path, sizeof(path), "%s/dcgmi", fixture.dcgm);
	assert_int_equal(chmod(path, 0700), 0);
	(void)snprintf(path, sizeof(path), "%s:/usr/bin:/bin", fixture.dcgm);
	assert_int_equal(setenv("PATH", path, 1), 0);
	(void)snprintf(fixture.held, sizeof(fixture.held), "%s/held", fixture.dcgm);
	assert_int_equal(setenv("PM_DOUBLE_HELD", fixture.held, 1), 0);
	assert_int_equal(setenv("PM_DOUBLE_CHIP", "GA100", 1), 0);
}

static void a_resume_that_fails_is_tried_again(void **state)
{
	make_dcgm(*state);
	start(*state, "live held", true, 60000);
	while (fixture.samples == 0)
		request_and_read();
	assert_int_not_equal(access(fixture.held, F_OK), 0);
	gpushare_close(&fixture.reader);
	while (child_of_keeper() != 0) /* it, then dcgmi; both come and go */
		read_all();
	assert_int_not_equal(access(fixture.held, F_OK), 0);
	assert_int_equal(access(fixture.note, F_OK), 0);
	write_file(fixture.dcgm, "mended", "");
	while (access(fixture.held, F_OK) != 0 || access(fixture.note, F_OK) == 0)
		read_all();
	assert_int_equal(end(), GPUSAMPLER_DONE);
}

/* With SIGCHLD ignored the kernel keeps no exit status, neither dcgmi's nor the child's. */
static void a_tool_is_paused_by_a_keeper_that_inherits_an_ignored_sigchld(void **state)
{
	make_dcgm(*state);
	write_file(fixture.dcgm, "mended", "");
	fixture.ignores_child = true;
	start(*state, "live held", false, 60000);
	while (fixture.samples == 0 && fixture.why[0] == '\0')
		read_all();
	assert_string_equal(fixture.why, "");
	assert_int_equal(end(), GPUSAMPLER_DONE);
	assert_int_equal(access(fixture.held, F_OK), 0);
	assert_int_not_equal(access(fixture.note, F_OK), 0);
}

/* Samples come, then none for the rest, then some again: samples are requested all the time. */
static void no_sampler_has_the_counters_forever(void **state)
{
	int64_t come_ns, gap_ns = 0, requested_ns = 0;

	start(*state, "live", true, 60000);
	come_ns = clock_mono_ns();
	while (gap_ns < 500 * NSEC_PER_MSEC || fixture.samples == 0) {
		size_t before = fixture.samples;

		if (clock_mono_ns() - requested_ns > 100 * NSEC_PER_MSEC &&
		    gpushare_request(&fixture.reader) == 0)
			requested_ns = clock_mono_ns();
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
		TEST(a_silent_sampler_is_killed_in_the_window),
		TEST(a_working_sampler_is_left_alone),
		TEST(no_sampler_is_started_beside_one_that_cannot_be_killed),
		TEST(the_starter_learns_of_a_sampler_that_cannot_be_killed),
		TEST(no_sampler_has_the_counters_forever),
		/* The last two: there is a DCGM from now on. */
		TEST(a_tool_is_paused_by_a_keeper_that_inherits_an_ignored_sigchld),
		TEST(a_resume_that_fails_is_tried_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
