/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Experiment E10: what a look at the GPUs costs, and how often each value really changes.
 * Run it while the GPU works. Prints one line of JSON for each device and metric.
 *
 *	nvml_refresh [SECONDS]
 *
 * Expected on a Hopper, not shown yet: a slow look below 10 ms, a fast one below 2 ms; GPM's values change
 * every 100 ms. A counter that never changes had nothing to count.
 */
#include "base/clock.h"
#include "host/gpu/gpuhw.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FAST_GAP_NS (110 * NSEC_PER_MSEC)

struct tally {
	uint64_t looks, changes;
	double last;
};

struct cost {
	uint64_t looks;
	int64_t total_ns, most_ns;
};

static struct tally tallies[GPUHW_DEVICES_MAX][GPU_METRIC_CNT];

static void count(size_t device, const struct gpuhw_values *values)
{
	for (uint32_t metric = 0; metric < GPU_METRIC_CNT; metric++) {
		struct tally *tally = &tallies[device][metric];

		if ((values->set >> metric & 1) == 0)
			continue;
		tally->changes += tally->looks > 0 && tally->last != values->values[metric];
		tally->last = values->values[metric];
		tally->looks++;
	}
}

static void look(const struct gpuhw *hw, size_t device,
		 int (*sample)(void *, size_t, struct gpuhw_values *), struct cost *cost)
{
	struct gpuhw_values values = { 0 };
	int64_t begin_ns = clock_mono_ns(), took_ns;

	if (sample(hw->state, device, &values) < 0)
		return;
	took_ns = clock_mono_ns() - begin_ns;
	cost->looks++;
	cost->total_ns += took_ns;
	cost->most_ns = MAX(cost->most_ns, took_ns);
	count(device, &values);
}

static void print_cost(const char *name, const struct cost *cost)
{
	if (cost->looks > 0)
		printf("{\"call\": \"%s\", \"calls\": %llu, \"mean_us\": %.1f, \"most_us\": %.1f}\n",
		       name, (unsigned long long)cost->looks,
		       (double)cost->total_ns / (double)cost->looks / 1e3,
		       (double)cost->most_ns / 1e3);
}

static void print_tallies(const struct gpuhw *hw, double seconds)
{
	for (size_t d = 0; d < hw->ops->count(hw->state); d++) {
		for (uint32_t metric = 0; metric < GPU_METRIC_CNT; metric++) {
			const struct tally *tally = &tallies[d][metric];

			if (tally->looks > 0)
				printf("{\"gpu\": %zu, \"metric\": \"%s\", \"looks\": %llu, "
				       "\"changes_per_second\": %.2f, \"last\": %g}\n",
				       d, gpu_metric_name(metric), (unsigned long long)tally->looks,
				       (double)tally->changes / seconds, tally->last);
		}
	}
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? strtod(argv[1], NULL) : 2;
	const struct timespec pause = { 0, NSEC_PER_MSEC };
	struct cost slow = { 0 }, fast = { 0 };
	int64_t end_ns, fast_due_ns = 0;
	char why[GPUHW_WHY];
	struct gpuhw hw;

	if (gpuhw_open(&hw, why) < 0) {
		fprintf(stderr, "nvml_refresh: %s\n", why);
		return 77; /* not tried */
	}
	end_ns = clock_mono_ns() + (int64_t)(seconds * (double)NSEC_PER_SEC);
	while (clock_mono_ns() < end_ns) {
		bool now_fast = clock_mono_ns() >= fast_due_ns;

		if (now_fast)
			fast_due_ns = clock_mono_ns() + FAST_GAP_NS;
		for (size_t d = 0; d < hw.ops->count(hw.state); d++) {
			look(&hw, d, hw.ops->slow, &slow);
			if (now_fast)
				look(&hw, d, hw.ops->fast, &fast);
		}
		(void)nanosleep(&pause, NULL);
	}
	print_cost("slow", &slow);
	print_cost("fast", &fast);
	print_tallies(&hw, seconds);
	gpuhw_close(&hw);
	return 0;
}
