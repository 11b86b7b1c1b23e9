/* SPDX-License-Identifier: Apache-2.0 */
/* gpucounters.c with a fake back end, whose samples become a piece of a sidecar. */
#include "host/counters/gpucounters.h"

#include "host/process/test_tree.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define DEVICES_MAX 8
#define NO_GPU "no such GPU"

static struct {
	size_t cnt; /* of devices; 0: it does not open */
	int refuses[DEVICES_MAX], ends[DEVICES_MAX];
	struct gpucounters_setup setups[DEVICES_MAX];
	bool sampled[DEVICES_MAX];
	int opened, asked;
	bool lets_go;
} fake;

static int fake_open(void **ret_state, char why[static GPUHW_WHY])
{
	if (fake.cnt == 0) {
		(void)snprintf(why, GPUHW_WHY, NO_GPU);
		return -ENODEV;
	}
	*ret_state = &fake;
	fake.opened++;
	return 0;
}

static void fake_close(void *state)
{
	assert_ptr_equal(state, &fake);
	fake.opened--;
}

static size_t fake_count(const void *state _unused_)
{
	return fake.cnt;
}

static void fake_device(const void *state _unused_, size_t idx, struct gpucounters_device *ret)
{
	*ret = (struct gpucounters_device){ .index = (uint32_t)idx + 4 };
	(void)snprintf(ret->uuid, sizeof(ret->uuid), "uuid-%zu", idx);
}

static int fake_start(void *state _unused_, size_t idx, const struct gpucounters_setup *setup,
		      char why[static GPUHW_WHY])
{
	if (fake.refuses[idx] == -EBUSY && setup->let_go(setup->arg, &gpucounters_dcgm))
		fake.refuses[idx] = 0;
	if (fake.refuses[idx] < 0) {
		(void)snprintf(why, GPUHW_WHY, "refused");
		return fake.refuses[idx];
	}
	fake.setups[idx] = *setup;
	fake.sampled[idx] = true;
	return 0;
}

static int fake_drain(void *state _unused_, size_t idx, char why[static GPUHW_WHY])
{
	assert_true(fake.sampled[idx]);
	if (fake.ends[idx] < 0)
		(void)snprintf(why, GPUHW_WHY, "ended");
	return fake.ends[idx];
}

static void fake_stop(void *state _unused_, size_t idx)
{
	assert_true(fake.sampled[idx]);
	fake.sampled[idx] = false;
}

static const struct gpucounters_ops fake_ops = {
	"fake", fake_open, fake_close, fake_count, fake_device, fake_start, fake_drain, fake_stop,
};
static const struct gpucounters_ops *const backends[] = { &gpucounters_null, &fake_ops, NULL };

static bool let_go(void *arg, const struct gpupause_tool *tool)
{
	assert_ptr_equal(arg, &fake);
	assert_ptr_equal(tool, &gpucounters_dcgm);
	fake.asked++;
	return fake.lets_go;
}

static const struct gpucounters_host host = { backends, let_go, &fake };

static struct gpucounters *start(size_t cnt)
{
	struct gpucounters *counters;

	memset(&fake, 0, sizeof(fake));
	fake.cnt = cnt;
	assert_int_equal(gpucounters_start(&host, &counters), 0);
	return counters;
}

/* Takes the remaining samples; sampling has ended and the back end is closed. */
static void stop(struct gpucounters *counters, struct sidecar *side)
{
	assert_null(gpucounters_stop(counters, side));
	for (size_t i = 0; i < DEVICES_MAX; i++)
		assert_false(fake.sampled[i]);
	assert_int_equal(fake.opened, 0);
}

static void hand_on(size_t idx, int64_t time_ns, double busy, double clock_hz)
{
	struct gpuhw_values values = { 0 };

	gpuhw_set(&values, GPU_METRIC_CORES_ACTIVE, busy);
	gpuhw_set(&values, GPU_METRIC_CORE_CLOCK, clock_hz);
	fake.setups[idx].take(fake.setups[idx].arg, time_ns, &values);
}

static void samples_beside_kernels_are_fine_and_others_are_means(void **state _unused_)
{
	struct gpucounters *counters = start(1);
	struct sidecar side = { 0 };

	for (int i = 0; i < 100; i++)
		hand_on(0, NSEC_PER_SEC + i * GPUCOUNTERS_FINE_NS, 0.5, i < 50 ? 1e9 : 2e9);
	assert_int_equal(gpucounters_take(counters, &side), 0);
	assert_int_equal(side.gpu_samples.cnt, 100);
	stop(counters, &side);
	assert_int_equal(side.gpu_samples.cnt, 101);
	assert_int_equal(side.gpu_samples.data[100].metric, GPU_METRIC_CORE_CLOCK);
	assert_true(side.gpu_samples.data[100].value == 1.5e9);
	assert_int_equal(side.gpu_samples.data[100].time_ns,
			 NSEC_PER_SEC + 99 * GPUCOUNTERS_FINE_NS);
	sidecar_done(&side);
}

static void many_devices_share_the_room(void **state _unused_)
{
	struct sidecar side = { 0 };
	struct gpucounters *counters = start(GPUCOUNTERS_FINE_DEVICES);

	assert_int_equal(fake.setups[0].bucket_ns, GPUCOUNTERS_FINE_NS);
	stop(counters, &side);
	counters = start(8);
	assert_int_equal(fake.setups[7].bucket_ns,
			 8 / GPUCOUNTERS_FINE_DEVICES * GPUCOUNTERS_FINE_NS);
	stop(counters, &side);
	sidecar_done(&side);
}

static void each_device_says_what_it_lacks(void **state _unused_)
{
	struct sidecar side = { 0 };
	struct gpucounters *counters;

	memset(&fake, 0, sizeof(fake));
	fake.cnt = 3;
	fake.refuses[1] = -EPERM;
	assert_int_equal(gpucounters_start(&host, &counters), 0);
	assert_int_equal(gpucounters_drain(counters), 2);
	fake.ends[2] = -EOVERFLOW;
	assert_int_equal(gpucounters_drain(counters), 1);
	assert_false(fake.sampled[2]);
	assert_int_equal(gpucounters_drain(counters), 1);
	stop(counters, &side);
	assert_int_equal(side.gpus.cnt, 3);
	assert_string_equal(side.gpus.data[0].why, "");
	assert_string_equal(side.gpus.data[1].why, "refused");
	assert_string_equal(side.gpus.data[2].why, "ended");
	assert_int_equal(side.gpus.data[2].index, 6);
	assert_string_equal(side.gpu_ids.data[2].uuid, "uuid-2");
	sidecar_done(&side);
}

static void where_nothing_is_sampled_the_reasons_remain(void **state _unused_)
{
	struct sidecar side = { 0 };
	struct gpucounters *counters;

	memset(&fake, 0, sizeof(fake));
	assert_int_equal(gpucounters_start(&host, &counters), -ENODEV);
	stop(counters, &side);
	assert_int_equal(side.gpus.cnt, 1);
	assert_int_equal(side.gpus.data[0].index, SIDECAR_GPU_NONE);
	assert_string_equal(side.gpus.data[0].why, "no null GPU; " NO_GPU);
	sidecar_done(&side);
	side = (struct sidecar){ 0 };
	fake.cnt = 1;
	fake.refuses[0] = -ENOTSUP;
	assert_int_equal(gpucounters_start(&host, &counters), -ENODEV);
	stop(counters, &side);
	assert_string_equal(side.gpus.data[0].why, "refused");
	sidecar_done(&side);
	assert_null(gpucounters_stop(NULL, &side));
}

static void a_tool_that_has_the_counters_is_asked(void **state _unused_)
{
	struct sidecar side = { 0 };
	struct gpucounters *counters;

	memset(&fake, 0, sizeof(fake));
	fake.cnt = 1;
	fake.refuses[0] = -EBUSY;
	fake.lets_go = true;
	assert_int_equal(gpucounters_start(&host, &counters), 0);
	assert_int_equal(fake.asked, 1);
	stop(counters, &side);
	sidecar_done(&side);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(samples_beside_kernels_are_fine_and_others_are_means),
		cmocka_unit_test(many_devices_share_the_room),
		cmocka_unit_test(each_device_says_what_it_lacks),
		cmocka_unit_test(where_nothing_is_sampled_the_reasons_remain),
		cmocka_unit_test(a_tool_that_has_the_counters_is_asked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
