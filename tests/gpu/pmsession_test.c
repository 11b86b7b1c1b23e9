/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host/counters/pmsampling_session.c on doubles of libcupti (PM_DOUBLE) and libcuda
 * (PM_DOUBLE_CUDA).
 */
#include "host/counters/pmsampling_session.h"
#include "host/counters/pmsampling_target_abi.h"
#include "pm_double.h"

#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

#define DEVICE 3 /* the only one that the double has */
#define SECOND NSEC_PER_SEC
#define AHEAD_NS (7 * SECOND) /* the host's clock before the device's */

static struct {
	struct pm_library library;
	struct pm_double *device;
	int *cuda_status;
	int (*hosts)(void);
	int64_t late_ns; /* the host's clock, beyond AHEAD_NS */

	size_t taken;
	int64_t first_ns, last_ns;
	struct gpuhw_values values; /* the latest */
} fixture;

static int64_t now_ns(void)
{
	return fixture.device->clock_ns + AHEAD_NS + fixture.late_ns;
}

static void take(void *arg, int64_t time_ns, const struct gpuhw_values *values)
{
	assert_ptr_equal(arg, &fixture);
	assert_true(fixture.taken == 0 || time_ns >= fixture.last_ns);
	if (fixture.taken++ == 0)
		fixture.first_ns = time_ns;
	fixture.last_ns = time_ns;
	fixture.values = *values;
}

static const struct gpucounters_setup setup = {
	.bucket_ns = NSEC_PER_MSEC, .now_ns = now_ns, .take = take, .arg = &fixture
};

static int load(void **state _unused_)
{
	static void *cuda;
	char why[GPUHW_WHY] = "";
	pm_double_fn *get;
	void *symbol;

	memset(&fixture, 0, sizeof(fixture));
	if (cuda == NULL)
		cuda = dlopen(getenv("PM_DOUBLE_CUDA"), RTLD_NOW);
	assert_non_null(cuda);
	fixture.cuda_status = dlsym(cuda, "double_cuda_status");
	*fixture.cuda_status = 0;
	if (pm_library_open(&fixture.library, getenv("PM_DOUBLE"), why) < 0)
		fail_msg("%s", why);
	symbol = dlsym(fixture.library.handle, "double_pm");
	memcpy(&get, &symbol, sizeof(get));
	symbol = dlsym(fixture.library.handle, "double_pm_hosts");
	memcpy(&fixture.hosts, &symbol, sizeof(fixture.hosts));
	fixture.device = get();
	fixture.device->clock_ns = 100 * SECOND;
	return 0;
}

/* Each test leaves the counters free for other processes. */
static int unload(void **state _unused_)
{
	assert_int_equal(fixture.device->initialized, 0);
	assert_int_equal(fixture.device->enabled, 0);
	assert_int_equal(fixture.device->running, 0);
	assert_int_equal(fixture.hosts(), 0);
	pm_library_close(&fixture.library);
	return 0;
}

static struct pm_session *start(void)
{
	struct pm_session *session = NULL;
	char why[GPUHW_WHY] = "";

	if (pm_session_start(&fixture.library, DEVICE, &setup, &session, why) < 0)
		fail_msg("%s", why);
	return session;
}

static void drain_for(struct pm_session *session, int64_t ns)
{
	char why[GPUHW_WHY] = "";

	for (int64_t done_ns = 0; done_ns < ns; done_ns += GPUCOUNTERS_DRAIN_MS * NSEC_PER_MSEC) {
		fixture.device->clock_ns += GPUCOUNTERS_DRAIN_MS * NSEC_PER_MSEC;
		if (pm_session_drain(session, why) < 0)
			fail_msg("%s", why);
	}
}

static void assert_value(enum gpu_metric metric, double expected)
{
	assert_true((fixture.values.set >> metric & 1) != 0);
	assert_true(fabs(fixture.values.values[metric] - expected) < 1e-6 * fmax(1, expected));
}

static void a_window_of_20_s_at_10_khz_loses_nothing(void **state _unused_)
{
	struct pm_session *session = start();
	struct pm_counts counts;

	assert_int_equal(fixture.device->interval, NSEC_PER_SEC / PM_FAST_HZ);
	assert_int_equal(fixture.device->trigger, PM_EVERY_NS);
	drain_for(session, 20 * SECOND);
	assert_int_equal(pm_session_hz(session), PM_FAST_HZ);
	assert_null(pm_session_stop(session, &counts));
	assert_int_equal(counts.samples, 20 * PM_FAST_HZ - 1); /* without the first */
	assert_int_equal(counts.buckets, fixture.taken);
	/* One more: the last sample ends on the border. */
	assert_int_equal(counts.buckets, 20 * 1000 + 1);
	assert_int_equal(counts.overflows + counts.failed + counts.unfinished, 0);
}

static void values_are_means_in_the_units_of_the_metric(void **state _unused_)
{
	struct pm_session *session = start();

	drain_for(session, SECOND / 10);
	assert_value(GPU_METRIC_ACTIVE, 0.5);
	assert_value(GPU_METRIC_CORES_ACTIVE, 0.5);
	assert_value(GPU_METRIC_ISSUE_ACTIVE, 0.5);
	assert_value(GPU_METRIC_MATRIX_ACTIVE, 0.5);
	assert_value(GPU_METRIC_MEMORY_ACTIVE, 1); /* read and written */
	assert_value(GPU_METRIC_PCIE_TX_RATE, 1e9);
	assert_value(GPU_METRIC_LINK_RX_RATE, 1e9);
	assert_value(GPU_METRIC_CORE_CLOCK, 1e9);
	assert_value(GPU_METRIC_SYSTEM_CLOCK, 1e9);
	assert_value(GPU_METRIC_MEMORY_CLOCK, 1e9);
	assert_int_equal(fixture.values.set >> GPU_METRIC_PCIE_ACTIVE & 1, 0);
	(void)pm_session_stop(session, NULL);
}

static void the_sum_of_pcie_replaces_its_directions(void **state _unused_)
{
	struct pm_session *session;

	fixture.device->chip = "WAYS";
	session = start();
	drain_for(session, SECOND / 10);
	assert_value(GPU_METRIC_PCIE_ACTIVE, 0.5);
	assert_int_equal(fixture.values.set >> GPU_METRIC_PCIE_TX_RATE & 1, 0);
	(void)pm_session_stop(session, NULL);
}

static void values_that_are_not_numbers_are_left_out(void **state _unused_)
{
	struct pm_session *session;

	fixture.device->no_number = true;
	session = start();
	drain_for(session, SECOND / 10);
	assert_int_equal(fixture.values.set >> GPU_METRIC_ACTIVE & 1, 0);
	assert_value(GPU_METRIC_CORES_ACTIVE, 0.5);
	(void)pm_session_stop(session, NULL);
}

static void metrics_the_chip_lacks_are_left_out(void **state _unused_)
{
	struct pm_session *session;

	fixture.device->chip = "SMALL";
	session = start();
	drain_for(session, SECOND / 10);
	assert_value(GPU_METRIC_MEMORY_ACTIVE, 1);
	assert_int_equal(fixture.values.set >> GPU_METRIC_CORE_CLOCK & 1, 0);
	assert_int_equal(fixture.values.set >> GPU_METRIC_LINK_RX_RATE & 1, 0);
	(void)pm_session_stop(session, NULL);
}

/* The best of all drains is kept, and no time goes back. */
static void times_are_in_the_hosts_clock(void **state _unused_)
{
	struct pm_session *session = start();

	fixture.late_ns = 3 * NSEC_PER_MSEC;
	drain_for(session, SECOND / 10);
	assert_int_equal(fixture.last_ns % NSEC_PER_MSEC, 900 * NSEC_PER_USEC);
	fixture.late_ns = 0;
	drain_for(session, SECOND / 10);
	fixture.late_ns = 5 * NSEC_PER_MSEC;
	drain_for(session, SECOND / 10);
	(void)pm_session_stop(session, NULL);
	assert_int_equal(fixture.last_ns, fixture.device->clock_ns + AHEAD_NS);
}

static void an_overflow_slows_the_session_and_the_next_ends_it(void **state _unused_)
{
	struct pm_session *session = start();
	char why[GPUHW_WHY] = "";
	struct pm_counts counts;

	drain_for(session, SECOND / 10);
	fixture.device->overflows = 1;
	drain_for(session, GPUCOUNTERS_DRAIN_MS * NSEC_PER_MSEC);
	assert_int_equal(pm_session_hz(session), PM_SLOW_HZ);
	assert_int_equal(fixture.device->interval, NSEC_PER_SEC / PM_SLOW_HZ);
	assert_int_equal(fixture.device->running, 1);
	drain_for(session, SECOND / 10);
	fixture.device->overflows = 1;
	fixture.device->clock_ns += NSEC_PER_MSEC;
	assert_int_equal(pm_session_drain(session, why), -EOVERFLOW);
	assert_string_equal(why, "PM sampling: overflow at 1000 Hz");
	assert_int_equal(pm_session_hz(session), 0);
	assert_int_equal(fixture.device->enabled, 0);
	assert_int_equal(pm_session_drain(session, why), -EIO);
	(void)pm_session_stop(session, &counts);
	assert_int_equal(counts.overflows, 2);
	assert_int_equal(counts.samples, 1099 + 100);
}

/* The size passed is that of the version's headers. */
static void cuda_12_6_gets_the_shorter_configuration(void **state _unused_)
{
	fixture.device->version = PM_NO_APPEND;
	(void)pm_session_stop(start(), NULL);
	assert_int_equal(fixture.device->configured_bytes, PM_SIZE(pm_configure, trigger));
	fixture.device->version = PM_NO_APPEND + 2; /* 12.8 */
	(void)pm_session_stop(start(), NULL);
	assert_int_equal(fixture.device->configured_bytes, PM_SIZE(pm_configure, append));
}

/* Another process has the counters by the time of the restart. */
static void a_restart_may_fail(void **state _unused_)
{
	struct pm_session *session = start();
	char why[GPUHW_WHY] = "";

	fixture.device->overflows = 1;
	fixture.device->enable = PM_BUSY;
	assert_int_equal(pm_session_drain(session, why), -EBUSY);
	assert_int_equal(pm_session_hz(session), 0);
	(void)pm_session_stop(session, NULL);
}

static void a_drain_is_bounded(void **state _unused_)
{
	struct pm_session *session = start();
	struct pm_counts counts;
	int before = fixture.device->decodings;

	fixture.device->endless = true;
	drain_for(session, GPUCOUNTERS_DRAIN_MS * NSEC_PER_MSEC);
	assert_int_equal(fixture.device->decodings - before, 8);
	(void)pm_session_stop(session, &counts);
	assert_int_equal(counts.unfinished, 2);
	assert_int_equal(counts.samples, 99);
}

static void samples_left_by_a_drain_come_later(void **state _unused_)
{
	struct pm_session *session = start();
	char why[GPUHW_WHY] = "";
	struct pm_counts counts;
	int before = fixture.device->decodings;

	fixture.device->clock_ns += 2 * SECOND; /* the thread was kept away */
	assert_int_equal(pm_session_drain(session, why), 0);
	assert_int_equal(fixture.device->decodings, 8 + before);
	(void)pm_session_stop(session, &counts);
	assert_int_equal(counts.unfinished, 1);
	assert_int_equal(counts.samples, 2 * PM_FAST_HZ - 1);
}

static void samples_that_cannot_be_read_are_counted(void **state _unused_)
{
	struct pm_session *session = start();
	struct pm_counts counts;

	fixture.device->sample = 1;
	drain_for(session, GPUCOUNTERS_DRAIN_MS * NSEC_PER_MSEC);
	(void)pm_session_stop(session, &counts);
	assert_int_equal(counts.failed, 100);
	assert_int_equal(counts.samples, 0);
	assert_int_equal(fixture.taken, 0);
}

static void a_failed_decoding_ends_the_session(void **state _unused_)
{
	struct pm_session *session = start();
	char why[GPUHW_WHY] = "";

	fixture.device->decode = 9;
	assert_int_equal(pm_session_drain(session, why), -EIO);
	assert_string_equal(why, "PM sampling: decode: CUPTI's error 9");
	assert_int_equal(fixture.device->enabled, 0);
	(void)pm_session_stop(session, NULL);
}

static void old_chips_count_cycles(void **state _unused_)
{
	const char *const chips[] = { "TU102", "GA100" };

	for (size_t i = 0; i < ARRAY_SIZE(chips); i++) {
		struct pm_session *session;

		fixture.device->chip = chips[i];
		session = start();
		assert_int_equal(fixture.device->trigger, PM_EVERY_CYCLES);
		assert_int_equal(fixture.device->interval, 150000);
		drain_for(session, SECOND / 10);
		(void)pm_session_stop(session, NULL);
	}
}

static void assert_no_start(int *status, int value, int error, const char *expected)
{
	struct pm_session *session = NULL;
	char why[GPUHW_WHY] = "";

	*status = value;
	assert_int_equal(pm_session_start(&fixture.library, DEVICE, &setup, &session, why), error);
	*status = 0;
	assert_string_equal(why, expected);
	assert_null(session);
	assert_int_equal(fixture.device->enabled, 0);
	assert_int_equal(fixture.device->initialized, 0);
}

/* A monitor that lets go of the counters, or does not. */
static struct {
	bool lets_go;
	int asked;
	const struct gpupause_tool *tool;
} monitor;

static bool let_go(void *arg, const struct gpupause_tool *tool)
{
	assert_ptr_equal(arg, &fixture);
	monitor.asked++;
	monitor.tool = tool;
	if (monitor.lets_go)
		fixture.device->availability = fixture.device->enable = PM_OK;
	return monitor.lets_go;
}

static void the_monitor_is_asked_once_for_the_counters(void **state _unused_)
{
	int *const refusals[] = { &fixture.device->availability, &fixture.device->enable };
	struct gpucounters_setup asking = setup;
	struct pm_session *session;
	char why[GPUHW_WHY] = "";

	asking.let_go = let_go;
	fixture.device->chip = "GA100";
	for (size_t i = 0; i < ARRAY_SIZE(refusals); i++) {
		memset(&monitor, 0, sizeof(monitor));
		*refusals[i] = PM_BUSY;
		session = NULL;
		assert_int_equal(pm_session_start(&fixture.library, DEVICE, &asking, &session, why),
				 -EBUSY);
		assert_int_equal(monitor.asked, 1);
		monitor.lets_go = true;
		assert_int_equal(pm_session_start(&fixture.library, DEVICE, &asking, &session, why),
				 0);
		assert_int_equal(monitor.asked, 2);
		assert_ptr_equal(monitor.tool, &gpucounters_dcgm);
		drain_for(session, SECOND / 10);
		(void)pm_session_stop(session, NULL);
	}
	fixture.device->enable = PM_NO_PERMISSION;
	assert_int_equal(pm_session_start(&fixture.library, DEVICE, &asking, &session, why),
			 -EPERM);
	assert_int_equal(monitor.asked, 2); /* the monitor could not free them */
	fixture.device->enable = PM_BUSY;
	fixture.device->chip = "EASY"; /* where DCGM takes GPM's */
	assert_int_equal(pm_session_start(&fixture.library, DEVICE, &asking, &session, why),
			 -EBUSY);
	assert_int_equal(monitor.asked, 2);
}

static void devices_are_sampled_beside_each_other(void **state _unused_)
{
	struct pm_session *first = start(), *second = NULL;
	char why[GPUHW_WHY] = "";
	struct pm_counts counts;

	assert_int_equal(pm_session_start(&fixture.library, 1, &setup, &second, why), 0);
	assert_int_equal(fixture.device->initialized, 1);
	assert_int_equal(fixture.device->running, 2);
	assert_null(pm_session_stop(first, NULL));
	assert_int_equal(fixture.device->initialized, 1);
	fixture.taken = 0;
	drain_for(second, SECOND / 10);
	assert_null(pm_session_stop(second, &counts));
	assert_int_equal(counts.samples, PM_FAST_HZ / 10 - 1);
}

static void a_start_that_fails_says_why(void **state _unused_)
{
	struct pm_double *device = fixture.device;

	assert_no_start(fixture.cuda_status, 100, -ENODEV, "cuInit: CUDA's error 100");
	assert_no_start(&device->initialize, 999, -EIO, "PM sampling: CUPTI's error 999");
	assert_no_start(&device->availability, PM_UNSUPPORTED, -ENOTSUP,
			"PM sampling: not on this GPU (CUPTI: 27)");
	assert_no_start(&device->enable, PM_NO_PERMISSION, -EPERM,
			"PM sampling: needs CAP_SYS_ADMIN (CUPTI: 35)");
	assert_no_start(&device->enable, PM_BUSY, -EBUSY,
			"PM sampling: another tool has the counters (CUPTI: 26)");
	assert_no_start(&device->enable, PM_INVALID_OPERATION, -EBUSY,
			"PM sampling: another tool has the counters (CUPTI: 7)");
	assert_no_start(&device->configure, PM_UNSUPPORTED, -ENOTSUP,
			"PM sampling: set up: not on this GPU (CUPTI: 27)");
	assert_no_start(&device->start, 9, -EIO, "PM sampling: start: CUPTI's error 9");
	device->chip = "GV100";
	assert_no_start(fixture.cuda_status, 0, -ENOTSUP, "no PM sampling on GV100 (CUPTI: 27)");
	assert_null(pm_session_stop(NULL, NULL));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, load, unload)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_window_of_20_s_at_10_khz_loses_nothing),
		TEST(values_are_means_in_the_units_of_the_metric),
		TEST(the_sum_of_pcie_replaces_its_directions),
		TEST(values_that_are_not_numbers_are_left_out),
		TEST(metrics_the_chip_lacks_are_left_out),
		TEST(times_are_in_the_hosts_clock),
		TEST(an_overflow_slows_the_session_and_the_next_ends_it),
		TEST(cuda_12_6_gets_the_shorter_configuration),
		TEST(a_restart_may_fail),
		TEST(a_drain_is_bounded),
		TEST(samples_left_by_a_drain_come_later),
		TEST(samples_that_cannot_be_read_are_counted),
		TEST(a_failed_decoding_ends_the_session),
		TEST(old_chips_count_cycles),
		TEST(the_monitor_is_asked_once_for_the_counters),
		TEST(devices_are_sampled_beside_each_other),
		TEST(a_start_that_fails_says_why),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
