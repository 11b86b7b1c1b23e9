/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host/gpu/nvml.c against the double of libnvidia-ml.so.1. The variables
 * NVML_DOUBLE_FULL, _OLD and _BARE name its builds: one that is open already is what
 * dlopen() finds by the name of the library.
 */
#include "host/gpu/gpuhw.h"
#include "nvml_double.h"

#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

extern const bool nvml_abi_checked;

#define NOT_SUPPORTED 3

/* A fresh library for each test: its state begins anew when it is loaded. */
struct fixture {
	void *library;
	struct nvml_double *nvml;
	struct gpuhw hw;
	char why[GPUHW_WHY];
};

static struct fixture load(const char *variable)
{
	struct fixture f = { .library = dlopen(getenv(variable), RTLD_NOW) };
	double_nvml_fn *get;
	void *symbol;

	if (f.library == NULL)
		fail_msg("%s: %s", variable, dlerror());
	symbol = dlsym(f.library, "double_nvml");
	memcpy(&get, &symbol, sizeof(symbol));
	assert_non_null(symbol);
	f.nvml = get();
	return f;
}

static struct fixture load_open(const char *variable)
{
	struct fixture f = load(variable);

	assert_int_equal(gpuhw_open(&f.hw, f.why), 0);
	assert_string_equal(f.why, "");
	return f;
}

static void finish(struct fixture *f)
{
	gpuhw_close(&f->hw);
	assert_int_equal(f->nvml->inits, f->nvml->shutdowns);
	assert_int_equal(f->nvml->samples, 0);
	assert_int_equal(f->nvml->sets, 0);
	assert_int_equal(dlclose(f->library), 0);
	assert_null(dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_NOLOAD));
}

static double value_of(const struct gpuhw_values *values, enum gpu_metric metric)
{
	return (values->set >> metric & 1) != 0 ? values->values[metric] : -1;
}

static void assert_near(double value, double expected)
{
	assert_true(fabs(value - expected) < 1e-6 * fmax(1, fabs(expected)));
}

static struct gpuhw_values slow(struct fixture *f, size_t idx)
{
	struct gpuhw_values values = { 0 };

	assert_int_equal(f->hw.ops->slow(f->hw.state, idx, &values), 0);
	return values;
}

static struct gpuhw_values fast(struct fixture *f, size_t idx)
{
	struct gpuhw_values values = { 0 };

	assert_int_equal(f->hw.ops->fast(f->hw.state, idx, &values), 0);
	return values;
}

static void our_interface_is_that_of_the_header(void **state _unused_)
{
	if (!nvml_abi_checked)
		skip();
}

static void a_device_is_described(void **state _unused_)
{
	struct fixture f = load_open("NVML_DOUBLE_FULL");
	const struct gpuhw_device *device = f.hw.ops->device(f.hw.state, 1);

	assert_int_equal(f.hw.ops->count(f.hw.state), 2);
	assert_string_equal(device->name, "NVIDIA H100 80GB HBM3");
	assert_string_equal(device->uuid, "00000001-0001-0203-0405-060708090a0b");
	assert_near(device->core_hz, 1980e6);
	assert_near(device->pcie_bytes_per_sec, 16 * 3.938e9);
	assert_near(device->link_bytes_per_sec, 18 * 26562e6);
	assert_string_equal(device->why, "");
	finish(&f);
}

static void gauges_are_of_now_and_counters_from_the_first_look(void **state _unused_)
{
	struct fixture f = load_open("NVML_DOUBLE_FULL");
	struct nvml_double_gpu *gpu = &f.nvml->gpus[0];
	struct gpuhw_values values = slow(&f, 0);

	assert_near(value_of(&values, GPU_METRIC_CORE_CLOCK), 1755e6);
	assert_near(value_of(&values, GPU_METRIC_MEMORY_CLOCK), 2619e6);
	assert_near(value_of(&values, GPU_METRIC_POWER), 650);
	assert_near(value_of(&values, GPU_METRIC_TEMPERATURE), 61);
	assert_near(value_of(&values, GPU_METRIC_THROTTLED_POWER), 0);
	assert_near(value_of(&values, GPU_METRIC_LINK_TX), 0);
	assert_near(value_of(&values, GPU_METRIC_ECC_CORRECTED), 0);

	gpu->fields[74].value += 250000000;
	gpu->fields[269].value += 1000000000;
	gpu->fields[270].value += 500000000;
	gpu->fields[138].value += 3;
	gpu->fields[186].value = 300000;
	gpu->ecc[0] = 9;
	values = slow(&f, 0);
	assert_near(value_of(&values, GPU_METRIC_THROTTLED_POWER), 0.25);
	assert_near(value_of(&values, GPU_METRIC_THROTTLED_THERMAL), 1.5);
	assert_near(value_of(&values, GPU_METRIC_LINK_TX), 3 * 1024);
	assert_near(value_of(&values, GPU_METRIC_POWER), 300);
	assert_near(value_of(&values, GPU_METRIC_ECC_CORRECTED), 9);
	values = slow(&f, 1); /* the other has not moved */
	assert_near(value_of(&values, GPU_METRIC_THROTTLED_POWER), 0);
	finish(&f);
}

static void a_counter_that_wraps_goes_on_and_one_that_is_reset_stays(void **state _unused_)
{
	struct fixture f = load_open("NVML_DOUBLE_FULL");
	struct nvml_double_gpu *gpu = &f.nvml->gpus[0];
	struct gpuhw_values values;

	gpu->fields[197].value = UINT32_MAX - 9; /* 32 bits */
	gpu->fields[83].value = 1000000;	 /* 64 bits */
	(void)slow(&f, 0);
	gpu->fields[197].value = 90;
	gpu->fields[83].value = 10;
	values = slow(&f, 0);
	assert_near(value_of(&values, GPU_METRIC_PCIE_TX), 100);
	assert_near(value_of(&values, GPU_METRIC_ENERGY), 0);
	gpu->fields[83].value = 2010;
	values = slow(&f, 0);
	assert_near(value_of(&values, GPU_METRIC_ENERGY), 2);
	finish(&f);
}

static void the_meaning_of_a_field_depends_on_the_driver(void **state _unused_)
{
	static const struct {
		const char *driver;
		uint16_t moves; /* the field that grows */
		double expected;
	} cases[] = {
		{ "580.95.05", 269, 1 }, { "580.95.05", 251, 0 }, { "575.57.08", 251, 1 },
		{ "575.57.08", 269, 0 }, { "550.54.15", 75, 1 },  { "550.54.15", 251, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct fixture f = load("NVML_DOUBLE_FULL");
		struct nvml_double_gpu *gpu = &f.nvml->gpus[0];
		struct gpuhw_values values;

		gpu->fields[251] = gpu->fields[252] = gpu->fields[253] = gpu->fields[75];
		f.nvml->driver = cases[i].driver;
		assert_int_equal(gpuhw_open(&f.hw, f.why), 0);
		(void)slow(&f, 0);
		gpu->fields[cases[i].moves].value += NSEC_PER_SEC;
		values = slow(&f, 0);
		assert_near(value_of(&values, GPU_METRIC_THROTTLED_THERMAL), cases[i].expected);
		finish(&f);
	}
}

static void fields_that_a_chip_lacks_take_only_their_values_away(void **state _unused_)
{
	struct fixture f = load("NVML_DOUBLE_FULL");
	struct gpuhw_values values;

	f.nvml->gpus[0].fields[186].status = NOT_SUPPORTED;
	f.nvml->gpus[1].fields[202] = f.nvml->gpus[1].fields[138]; /* NVLink 5 */
	f.nvml->gpus[1].fields[138].status = NOT_SUPPORTED;
	assert_int_equal(gpuhw_open(&f.hw, f.why), 0);
	values = slow(&f, 0);
	assert_near(value_of(&values, GPU_METRIC_POWER), -1);
	assert_near(value_of(&values, GPU_METRIC_CORE_CLOCK), 1755e6);
	(void)slow(&f, 1);
	f.nvml->gpus[1].fields[202].value += 7; /* bytes, not KiB */
	values = slow(&f, 1);
	assert_near(value_of(&values, GPU_METRIC_LINK_TX), 7);
	assert_near(value_of(&values, GPU_METRIC_LINK_REPLAYS), -1);
	f.nvml->fields_fail = true;
	values = slow(&f, 0);
	assert_near(value_of(&values, GPU_METRIC_THROTTLED_POWER), -1);
	assert_near(value_of(&values, GPU_METRIC_CORE_CLOCK), 1755e6);
	finish(&f);
}

static void errors_on_links_are_counted_by_kind(void **state _unused_)
{
	static const struct {
		enum gpu_metric metric;
		uint16_t fields[2]; /* those of another are absent */
		double expected;
	} cases[] = {
		{ GPU_METRIC_LINK_CRC_ERRORS, { 38, 45 }, 10 },
		{ GPU_METRIC_LINK_CRC_ERRORS, { 163, 163 }, 5 },
		{ GPU_METRIC_LINK_REPLAYS, { 52, 161 }, 5 },
		{ GPU_METRIC_LINK_REPLAYS, { 161, 161 }, 5 },
		{ GPU_METRIC_LINK_RECOVERIES, { 59, 162 }, 5 },
		{ GPU_METRIC_LINK_RECOVERIES, { 162, 215 }, 5 },
		{ GPU_METRIC_LINK_RECOVERIES, { 215, 215 }, 5 },
		{ GPU_METRIC_LINK_RX_ERRORS, { 208, 208 }, 5 },
		{ GPU_METRIC_C2C_ERRORS, { 231, 231 }, 5 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct fixture f = load("NVML_DOUBLE_FULL");
		struct nvml_double_gpu *gpu = &f.nvml->gpus[0];
		const uint16_t *fields = cases[i].fields;
		struct gpuhw_values values;

		gpu->fields[fields[0]] = gpu->fields[fields[1]] = gpu->fields[75];
		assert_int_equal(gpuhw_open(&f.hw, f.why), 0);
		(void)slow(&f, 0);
		gpu->fields[fields[0]].value += 5;
		if (fields[1] != fields[0])
			gpu->fields[fields[1]].value += 5;
		values = slow(&f, 0);
		for (uint32_t m = 0; m < GPU_METRIC_CNT; m++) {
			if (m == cases[i].metric)
				assert_near(value_of(&values, m), cases[i].expected);
			else if (m == GPU_METRIC_C2C_ERRORS || m >= GPU_METRIC_LINK_REPLAYS)
				assert_near(value_of(&values, m), -1);
		}
		finish(&f);
	}
}

static void fast_samples_begin_with_the_second_look(void **state _unused_)
{
	struct fixture f = load_open("NVML_DOUBLE_FULL");
	struct gpuhw_values values;

	f.nvml->gpus[0].gpm_status[5] = NOT_SUPPORTED;
	f.nvml->gpm_clears_all = true;
	assert_true(fast(&f, 0).set == 0);
	values = fast(&f, 0);
	assert_near(value_of(&values, GPU_METRIC_CORES_ACTIVE), 0.875);
	assert_near(value_of(&values, GPU_METRIC_MEMORY_ACTIVE), 0.4);
	assert_near(value_of(&values, GPU_METRIC_MATRIX_ACTIVE), -1);
	assert_near(value_of(&values, GPU_METRIC_PCIE_TX_RATE), 1024 * 1048576.0);
	assert_near(value_of(&values, GPU_METRIC_LINK_TX_RATE), 2048 * 1048576.0);
	assert_true(fast(&f, 1).set == 0);
	assert_near(fast(&f, 0).values[GPU_METRIC_CORES_ACTIVE], 0.875);
	finish(&f);
}

static void gpm_of_another_version_is_left_alone_and_said(void **state _unused_)
{
	struct fixture f = load_open("NVML_DOUBLE_FULL");
	struct gpuhw_values values = { 0 };

	f.nvml->gpm_version = 2;
	assert_true(fast(&f, 0).set == 0);
	assert_int_equal(f.hw.ops->fast(f.hw.state, 0, &values), -ENOTSUP);
	assert_int_equal(f.hw.ops->fast(f.hw.state, 0, &values), -ENOTSUP);
	assert_true(values.set == 0);
	assert_string_equal(f.hw.ops->device(f.hw.state, 0)->why,
			    "GPM: Argument version mismatch (25)");
	assert_near(value_of((struct gpuhw_values[]){ slow(&f, 0) }, GPU_METRIC_POWER), 650);
	finish(&f);
}

static void a_gpu_without_gpm_says_so(void **state _unused_)
{
	struct fixture f = load("NVML_DOUBLE_FULL");
	struct gpuhw_values values;

	f.nvml->gpus[1].gpm = false;
	assert_int_equal(gpuhw_open(&f.hw, f.why), 0);
	assert_string_equal(f.hw.ops->device(f.hw.state, 0)->why, "");
	assert_string_equal(f.hw.ops->device(f.hw.state, 1)->why, "this GPU has no GPM");
	assert_int_equal(f.hw.ops->fast(f.hw.state, 1, &values), -ENOTSUP);
	finish(&f);
}

static void a_lost_gpu_is_asked_no_more_and_the_other_goes_on(void **state _unused_)
{
	struct fixture f = load_open("NVML_DOUBLE_FULL");
	struct gpuhw_values values;
	int calls;

	(void)slow(&f, 0);
	f.nvml->gpus[0].lost = true;
	f.nvml->gpus[0].xids[f.nvml->gpus[0].xid_cnt++] = 79;
	values = slow(&f, 0); /* the reason of the loss is still reported */
	assert_int_equal(values.fault_cnt, 1);
	assert_int_equal(values.faults[0], 79);
	assert_true(f.hw.ops->device(f.hw.state, 0)->lost);
	assert_string_equal(f.hw.ops->device(f.hw.state, 0)->why, "the GPU is lost");
	calls = f.nvml->calls_when_lost;
	assert_int_equal(f.hw.ops->slow(f.hw.state, 0, &values), -ENODEV);
	assert_int_equal(f.hw.ops->fast(f.hw.state, 0, &values), -ENODEV);
	assert_int_equal(f.nvml->calls_when_lost, calls);
	assert_near(value_of((struct gpuhw_values[]){ slow(&f, 1) }, GPU_METRIC_POWER), 650);
	finish(&f);
}

static void faults_belong_to_their_gpu_and_are_reported_once(void **state _unused_)
{
	struct fixture f = load_open("NVML_DOUBLE_FULL");
	struct gpuhw_values values;

	f.nvml->gpus[1].xids[0] = 31;
	f.nvml->gpus[1].xids[1] = 94;
	f.nvml->gpus[1].xid_cnt = 2;
	values = slow(&f, 0);
	assert_int_equal(values.fault_cnt, 0);
	values = slow(&f, 1);
	assert_int_equal(values.fault_cnt, 2);
	assert_int_equal(values.faults[0], 31);
	assert_int_equal(values.faults[1], 94);
	values = slow(&f, 1);
	assert_int_equal(values.fault_cnt, 0);
	finish(&f);
}

static void users_of_a_device_are_listed(void **state _unused_)
{
	struct fixture f = load_open("NVML_DOUBLE_FULL");
	uint32_t pids[8];

	f.nvml->gpus[0].pids[0] = 71;
	f.nvml->gpus[0].pids[1] = 72;
	f.nvml->gpus[0].pid_cnt = 2;
	assert_int_equal(f.hw.ops->users(f.hw.state, 0, pids, ARRAY_SIZE(pids)), 2);
	assert_int_equal(pids[1], 72);
	assert_int_equal(f.hw.ops->users(f.hw.state, 0, pids, 1), 1);
	assert_int_equal(f.hw.ops->users(f.hw.state, 1, pids, ARRAY_SIZE(pids)), 0);
	finish(&f);
}

static void an_old_driver_gives_some_values(void **state _unused_)
{
	struct fixture f = load_open("NVML_DOUBLE_OLD");
	struct gpuhw_values values = slow(&f, 0);
	uint32_t pid;

	assert_near(value_of(&values, GPU_METRIC_POWER), 650);
	assert_int_equal(f.hw.ops->fast(f.hw.state, 0, &values), -ENOTSUP);
	assert_string_equal(f.hw.ops->device(f.hw.state, 0)->why, "this driver has no GPM");
	assert_int_equal(f.hw.ops->users(f.hw.state, 0, &pid, 1), 0);
	finish(&f);
}

static void trouble_at_the_start_is_said_and_leaves_nothing_open(void **state _unused_)
{
	struct fixture f = load("NVML_DOUBLE_FULL");

	f.nvml->init_status = 9;
	assert_int_equal(gpuhw_open(&f.hw, f.why), -ENODEV);
	assert_string_equal(f.why, "NVML: Driver Not Loaded (9)");
	f.nvml->init_status = 0;
	f.nvml->gpu_cnt = 0;
	assert_int_equal(gpuhw_open(&f.hw, f.why), -ENODEV);
	assert_string_equal(f.why, "NVML has no device");
	f.nvml->gpu_cnt = 2;
	f.nvml->count_status = 9;
	assert_int_equal(gpuhw_open(&f.hw, f.why), -ENODEV);
	assert_string_equal(f.why, "NVML's devices: Driver Not Loaded (9)");
	finish(&f);

	f = load("NVML_DOUBLE_BARE");
	assert_int_equal(gpuhw_open(&f.hw, f.why), -ENODEV);
	assert_string_equal(f.why, "libnvidia-ml.so.1 lacks nvmlDeviceGetCount_v2");
	finish(&f);

	if (access("/proc/driver/nvidia", F_OK) == 0)
		return; /* this machine has a real one */
	assert_int_equal(gpuhw_open(&f.hw, f.why), -ENODEV);
	assert_string_equal(f.why, "no libnvidia-ml.so.1");
}

static void a_device_that_is_not_opened_keeps_its_number(void **state _unused_)
{
	static const struct {
		int status; /* of the handle */
		const char *why;
		bool lost;
		int error;
	} cases[] = {
		{ 4, "not opened: Unknown Error (4)", false, -ENOTSUP },
		{ 15, "not opened: Unknown Error (15)", true, -ENODEV },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct fixture f = load("NVML_DOUBLE_FULL");
		struct gpuhw_values values;
		uint32_t pid;

		f.nvml->gpus[0].handle_status = cases[i].status;
		f.nvml->gpus[0].pids[f.nvml->gpus[0].pid_cnt++] = 71;
		assert_int_equal(gpuhw_open(&f.hw, f.why), 0);
		assert_int_equal(f.hw.ops->count(f.hw.state), 2);
		assert_int_equal(f.hw.ops->device(f.hw.state, 0)->lost, cases[i].lost);
		assert_string_equal(f.hw.ops->device(f.hw.state, 0)->why, cases[i].why);
		assert_int_equal(f.hw.ops->slow(f.hw.state, 0, &values), cases[i].error);
		assert_int_equal(f.hw.ops->fast(f.hw.state, 0, &values), cases[i].error);
		assert_int_equal(f.hw.ops->users(f.hw.state, 0, &pid, 1), 0);
		assert_near(value_of((struct gpuhw_values[]){ slow(&f, 1) }, GPU_METRIC_POWER),
			    650);
		finish(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(our_interface_is_that_of_the_header),
		cmocka_unit_test(a_device_is_described),
		cmocka_unit_test(gauges_are_of_now_and_counters_from_the_first_look),
		cmocka_unit_test(a_counter_that_wraps_goes_on_and_one_that_is_reset_stays),
		cmocka_unit_test(the_meaning_of_a_field_depends_on_the_driver),
		cmocka_unit_test(fields_that_a_chip_lacks_take_only_their_values_away),
		cmocka_unit_test(errors_on_links_are_counted_by_kind),
		cmocka_unit_test(fast_samples_begin_with_the_second_look),
		cmocka_unit_test(gpm_of_another_version_is_left_alone_and_said),
		cmocka_unit_test(a_gpu_without_gpm_says_so),
		cmocka_unit_test(a_lost_gpu_is_asked_no_more_and_the_other_goes_on),
		cmocka_unit_test(faults_belong_to_their_gpu_and_are_reported_once),
		cmocka_unit_test(users_of_a_device_are_listed),
		cmocka_unit_test(an_old_driver_gives_some_values),
		cmocka_unit_test(trouble_at_the_start_is_said_and_leaves_nothing_open),
		cmocka_unit_test(a_device_that_is_not_opened_keeps_its_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
