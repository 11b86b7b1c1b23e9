/* SPDX-License-Identifier: Apache-2.0 */
#include "live/metrics/hostvalues.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

static struct metrics_host *host;
static struct gpuwatch_state state;

static int make_host(void **unused _unused_)
{
	static const struct run_options options = { .min_gain_pct = 1 };

	host = metrics_host_new(&options);
	state = (struct gpuwatch_state){ .device_cnt = 2 };
	for (uint32_t i = 0; i < 2; i++) {
		(void)snprintf(state.devices[i].name, sizeof(state.devices[i].name), "A GPU");
		(void)snprintf(state.devices[i].uuid, sizeof(state.devices[i].uuid), "0-%u", i);
	}
	return host != NULL ? 0 : -1;
}

static int free_host(void **unused _unused_)
{
	host = metrics_host_free(host);
	return 0;
}

static struct str page(void)
{
	struct str out = { 0 };

	assert_int_equal(metrics_render(metrics_host_borrow(host), EXPOSITION_PROMETHEUS, &out), 0);
	return out;
}

static bool shows(const char *line)
{
	struct str out = page();
	bool ret = strstr(out.data, line) != NULL;

	str_done(&out);
	return ret;
}

static void expect(const char *line)
{
	struct str out = page();

	if (strstr(out.data, line) == NULL)
		fail_msg("expected %s found %s", line, out.data);
	str_done(&out);
}

static void values_are_in_base_units(void **unused _unused_)
{
	gpuhw_set(&state.values[1], GPU_METRIC_CORE_CLOCK, 1.98e9);
	gpuhw_set(&state.values[1], GPU_METRIC_POWER, 650.5);
	gpuhw_set(&state.values[1], GPU_METRIC_TEMPERATURE, 41);
	gpuhw_set(&state.values[1], GPU_METRIC_ENERGY, 12345.6);
	gpuhw_set(&state.values[1], GPU_METRIC_THROTTLED_POWER, 2.5);
	gpuhw_set(&state.values[1], GPU_METRIC_THROTTLED_THERMAL, 0);
	gpuhw_set(&state.values[1], GPU_METRIC_PCIE_RX, 4096);
	gpuhw_set(&state.values[1], GPU_METRIC_ECC_UNCORRECTED, 3);
	gpuhw_set(&state.values[1], GPU_METRIC_LINK_REPLAYS, 4);
	gpuhw_set(&state.values[1], GPU_METRIC_C2C_ERRORS, 5);
	metrics_host_gpus(host, &state);
	expect("\nperftracker_gpu_device_info{gpu=\"1\",name=\"A GPU\",uuid=\"0-1\"} 1\n");
	expect("\nperftracker_gpu_lost{gpu=\"1\"} 0\n");
	expect("\nperftracker_gpu_core_clock_hertz{gpu=\"1\"} 1980000000\n");
	expect("\nperftracker_gpu_power_watts{gpu=\"1\"} 650.5\n");
	expect("\nperftracker_gpu_temperature_celsius{gpu=\"1\"} 41\n");
	expect("\nperftracker_gpu_energy_joules_total{gpu=\"1\"} 12345\n");
	expect("\nperftracker_gpu_throttled_seconds_total{gpu=\"1\",reason=\"power\"} 2.5\n");
	expect("\nperftracker_gpu_throttled_seconds_total{gpu=\"1\",reason=\"heat\"} 0\n");
	expect("\nperftracker_gpu_pcie_bytes_total{gpu=\"1\",direction=\"rx\"} 4096\n");
	expect("\nperftracker_gpu_memory_errors_total{gpu=\"1\",kind=\"uncorrected\"} 3\n");
	expect("\nperftracker_gpu_link_errors_total{gpu=\"1\",kind=\"replay\"} 4\n");
	expect("\nperftracker_gpu_c2c_errors_total{gpu=\"1\"} 5\n");
	assert_false(shows("perftracker_gpu_power_watts{gpu=\"0\"}"));
	assert_false(shows("perftracker_gpu_link_bytes_total{"));
}

/* A counter that wraps or starts anew in the driver must not go back here. */
static void what_is_counted_never_goes_back(void **unused _unused_)
{
	static const double readings[] = { 7, 3, -1, 1e300 };

	for (size_t i = 0; i < ARRAY_SIZE(readings); i++) {
		gpuhw_set(&state.values[0], GPU_METRIC_PCIE_REPLAYS, readings[i]);
		metrics_host_gpus(host, &state);
		expect("\nperftracker_gpu_pcie_errors_total{gpu=\"0\",kind=\"replay\"} 7\n");
	}
}

static void shares_are_shown_while_they_are_measured(void **unused _unused_)
{
	gpuhw_set(&state.values[0], GPU_METRIC_CORES_ACTIVE, 0.75);
	state.fed[0] = 1;
	metrics_host_gpus(host, &state);
	expect("\nperftracker_gpu_active_ratio{gpu=\"0\",part=\"cores\"} 0.75\n");
	expect("\nperftracker_gpu_counters_sampled{gpu=\"0\"} 1\n");
	state.values[0].set = state.fed[0] = 0; /* the window is over */
	metrics_host_gpus(host, &state);
	assert_false(shows("perftracker_gpu_active_ratio{"));
	expect("\nperftracker_gpu_counters_sampled{gpu=\"0\"} 0\n");
	gpuhw_set(&state.values[0], GPU_METRIC_CORES_ACTIVE, 0.5);
	metrics_host_gpus(host, &state);
	expect("\nperftracker_gpu_active_ratio{gpu=\"0\",part=\"cores\"} 0.5\n");
}

static void a_lost_gpu_keeps_its_counts_alone(void **unused _unused_)
{
	gpuhw_set(&state.values[0], GPU_METRIC_POWER, 650);
	gpuhw_set(&state.values[0], GPU_METRIC_ENERGY, 9);
	metrics_host_gpus(host, &state);
	state.devices[0].lost = true;
	metrics_host_gpus(host, &state);
	expect("\nperftracker_gpu_lost{gpu=\"0\"} 1\n");
	expect("\nperftracker_gpu_energy_joules_total{gpu=\"0\"} 9\n");
	assert_false(shows("perftracker_gpu_power_watts{"));
}

static void faults_and_samplers_are_counted(void **unused _unused_)
{
	metrics_host_gpu_fault(host, 1, 79);
	metrics_host_gpu_fault(host, 1, 79);
	state.samplers = 4;
	state.hung = 1;
	metrics_host_gpus(host, &state);
	expect("\nperftracker_gpu_faults_total{gpu=\"1\",number=\"79\"} 2\n");
	expect("\nperftracker_gpu_samplers_total{how=\"started\"} 4\n");
	expect("\nperftracker_gpu_samplers_total{how=\"hung\"} 1\n");
	expect("\nperftracker_gpu_samplers_total{how=\"crashed\"} 0\n");
}

static void a_host_without_gpus_has_no_such_series(void **unused _unused_)
{
	state.device_cnt = 0;
	metrics_host_gpus(host, &state);
	assert_false(shows("perftracker_gpu_"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_host, free_host)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(values_are_in_base_units),
		TEST(what_is_counted_never_goes_back),
		TEST(shares_are_shown_while_they_are_measured),
		TEST(a_lost_gpu_keeps_its_counts_alone),
		TEST(faults_and_samplers_are_counted),
		TEST(a_host_without_gpus_has_no_such_series),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
