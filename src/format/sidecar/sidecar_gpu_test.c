/* SPDX-License-Identifier: Apache-2.0 */
#include "format/sidecar/sidecar.h"
#include "model/gpumetric.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

#define MS NSEC_PER_MSEC

/* Two samples of one GPU, 100 ms apart; the wall clock is 1 s ahead. */
static struct sidecar example(void)
{
	static const struct {
		enum gpu_metric metric;
		double values[2];
	} metrics[] = { { GPU_METRIC_CORES_ACTIVE, { 0.5, 0.75 } },
			{ GPU_METRIC_MEMORY_ACTIVE, { 0.25, 1.5 } },
			{ GPU_METRIC_LINK_TX_RATE, { 50e9, 100e9 } },
			{ GPU_METRIC_PCIE_TX_RATE, { 1e9, 2e9 } },
			{ GPU_METRIC_PCIE_RX_RATE, { 16e9, 32e9 } },
			{ GPU_METRIC_POWER, { 600, 650 } } };
	struct sidecar s = { .header = { .mono_ns = 0, .wall_ns = 1000 * MS } };
	struct sidecar_gpu gpu = { .index = 3, .link_bytes_per_sec = 200e9 };

	assert_int_equal(vec_push(&s.gpus, gpu), 0);
	for (int i = 0; i < 2; i++) {
		for (size_t m = 0; m < ARRAY_SIZE(metrics); m++) {
			struct sidecar_gpu_sample sample = { .time_ns = (i + 1) * 100 * MS,
							     .value = metrics[m].values[i],
							     .metric = metrics[m].metric };

			assert_int_equal(vec_push(&s.gpu_samples, sample), 0);
		}
	}
	return s;
}

static void add_stream(struct trace *trace, int64_t device)
{
	assert_int_equal(vec_reserve_bytes((void **)&trace->lanes, &trace->lane_cap,
					   trace->lane_cnt + 1, sizeof(*trace->lanes)),
			 0);
	trace->lanes[trace->lane_cnt++] =
		(struct lane){ .pid = device, .tid = 7, .type = LANE_STREAM };
}

static const struct track *find(const struct trace *trace, enum resource resource)
{
	const struct track *found = NULL;

	for (size_t i = 0; i < trace->track_cnt; i++) {
		if (trace->tracks[i].resource != resource)
			continue;
		assert_null(found);
		found = &trace->tracks[i];
	}
	return found;
}

static void samples_of_a_gpu_are_shares_of_its_peak(void **state _unused_)
{
	struct sidecar s = example();
	struct trace trace;

	assert_int_equal(trace_init(&trace), 0);
	trace.meta.has_device = true;
	add_stream(&trace, 0);
	add_stream(&trace, 0);
	assert_int_equal(sidecar_apply(&s, &trace), 0);
	assert_int_equal(trace.track_cnt, 3); /* the peak of PCIe is unknown */
	assert_int_equal(find(&trace, RESOURCE_SM_ACTIVE)->cnt, 2);
	assert_int_equal(find(&trace, RESOURCE_SM_ACTIVE)->samples[0].time_ns, 1100 * MS);
	assert_true(fabs(find(&trace, RESOURCE_SM_ACTIVE)->samples[1].value - 0.75) < 1e-9);
	assert_true(fabs(find(&trace, RESOURCE_DRAM)->samples[1].value - 1) < 1e-9);
	assert_true(fabs(find(&trace, RESOURCE_NVLINK_TX)->samples[0].value - 0.25) < 1e-9);
	/* The job's index: its only device is 0, though the driver's index is 3. */
	assert_int_equal(find(&trace, RESOURCE_SM_ACTIVE)->device, 0);
	sidecar_done(&s);
	trace_done(&trace);
}

static void finer_samples_of_the_trace_are_kept(void **state _unused_)
{
	struct sidecar s = example();
	struct trace trace;

	assert_int_equal(trace_init(&trace), 0);
	trace.meta.has_device = true;
	assert_int_equal(vec_reserve_bytes((void **)&trace.tracks, &trace.track_cap, 1,
					   sizeof(*trace.tracks)),
			 0);
	trace.tracks[trace.track_cnt++] =
		(struct track){ .resource = RESOURCE_SM_ACTIVE, .device = 0, .tid = -1 };
	assert_int_equal(sidecar_apply(&s, &trace), 0);
	assert_int_equal(find(&trace, RESOURCE_SM_ACTIVE)->cnt, 0);
	assert_non_null(find(&trace, RESOURCE_DRAM));
	sidecar_done(&s);
	trace_done(&trace);
}

/*
 * Adds both directions as a share, ten times as often as one direction in bytes, if that is given.
 */
static const struct track *pcie_of(struct sidecar *s, double bytes_per_sec, struct trace *trace)
{
	s->gpus.data[0].pcie_bytes_per_sec = bytes_per_sec;
	for (int i = 0; i < 20; i++)
		assert_int_equal(
			vec_push(&s->gpu_samples,
				 (struct sidecar_gpu_sample){ .time_ns = (i + 1) * 10 * MS,
							      .value = 0.625,
							      .metric = GPU_METRIC_PCIE_ACTIVE }),
			0);
	assert_int_equal(trace_init(trace), 0);
	trace->meta.has_device = true;
	assert_int_equal(sidecar_apply(s, trace), 0);
	return find(trace, RESOURCE_PCIE_TX);
}

static void the_finer_of_two_metrics_of_pcie_is_taken(void **state _unused_)
{
	for (int known = 0; known < 2; known++) {
		struct sidecar s = example();
		struct trace trace;
		const struct track *track = pcie_of(&s, known * 64e9, &trace);

		assert_int_equal(track->cnt, 20);
		assert_true(fabs(track->samples[0].value - 0.625) < 1e-9);
		assert_int_equal(find(&trace, RESOURCE_PCIE_RX)->cnt, 20);
		sidecar_done(&s);
		trace_done(&trace);
	}
}

static void each_way_of_pcie_is_a_resource(void **state _unused_)
{
	struct sidecar s = example();
	struct trace trace;

	s.gpus.data[0].pcie_bytes_per_sec = 64e9;
	assert_int_equal(trace_init(&trace), 0);
	trace.meta.has_device = true;
	assert_int_equal(sidecar_apply(&s, &trace), 0);
	assert_int_equal(trace.track_cnt, 5);
	assert_true(fabs(find(&trace, RESOURCE_PCIE_TX)->samples[1].value - 2 / 64.0) < 1e-9);
	assert_true(fabs(find(&trace, RESOURCE_PCIE_RX)->samples[1].value - 0.5) < 1e-9);
	sidecar_done(&s);
	trace_done(&trace);
}

static void values_that_make_no_sense_are_left_out(void **state _unused_)
{
	struct sidecar s = example();
	struct trace trace;

	s.gpu_samples.data[0].value = (double)NAN;
	s.gpu_samples.data[1].gpu = 9;
	s.gpu_samples.data[2].metric = 1000;
	s.gpu_samples.data[6].time_ns = INT64_MAX;
	assert_int_equal(trace_init(&trace), 0);
	trace.meta.has_device = true;
	assert_int_equal(sidecar_apply(&s, &trace), 0);
	assert_int_equal(find(&trace, RESOURCE_SM_ACTIVE)->cnt, 0);
	assert_int_equal(find(&trace, RESOURCE_DRAM)->cnt, 1);
	assert_int_equal(find(&trace, RESOURCE_NVLINK_TX)->cnt, 1);
	sidecar_done(&s);
	trace_done(&trace);
}

static void a_job_without_a_device_gets_no_gpu_samples(void **state _unused_)
{
	struct sidecar s = example();
	struct trace trace;

	assert_int_equal(trace_init(&trace), 0);
	assert_int_equal(sidecar_apply(&s, &trace), 0);
	assert_int_equal(trace.track_cnt, 0);
	sidecar_done(&s);
	trace_done(&trace);
}

static void gpus_are_written_and_read_back(void **state _unused_)
{
	char path[] = "/tmp/perftracker-sidecar-gpu-XXXXXX";
	struct sidecar s = example(), back;
	struct err err;

	memset(s.gpus.data[0].why, 'x', sizeof(s.gpus.data[0].why));
	assert_int_equal(close(mkstemp(path)), 0);
	assert_int_equal(sidecar_write(&s, path, &err), 0);
	assert_int_equal(sidecar_read(path, &back, &err), 0);
	assert_int_equal(remove(path), 0);
	assert_int_equal(back.gpus.cnt, 1);
	assert_int_equal(strlen(back.gpus.data[0].why), sizeof(back.gpus.data[0].why) - 1);
	assert_int_equal(back.gpu_samples.cnt, s.gpu_samples.cnt);
	assert_memory_equal(back.gpu_samples.data, s.gpu_samples.data,
			    s.gpu_samples.cnt * sizeof(*s.gpu_samples.data));
	sidecar_done(&s);
	sidecar_done(&back);
}

/* A foreign writer may have filled the array without a NUL. */
static void ids_are_read_back_with_an_end(void **state _unused_)
{
	struct sidecar side = example(), read;
	struct sidecar_gpu_id id = { .gpu = 0 };
	FILE *file = tmpfile();

	assert_non_null(file);
	memset(id.uuid, 'a', sizeof(id.uuid));
	assert_int_equal(vec_push(&side.gpu_ids, id), 0);
	assert_int_equal(sidecar_write_fd(&side, fileno(file)), 0);
	assert_int_equal(lseek(fileno(file), 0, SEEK_SET), 0);
	assert_int_equal(sidecar_read_fd("memory", fileno(file), &read, NULL), 0);
	assert_int_equal(read.gpu_ids.cnt, 1);
	assert_int_equal(strlen(read.gpu_ids.data[0].uuid), sizeof(id.uuid) - 1);
	assert_int_equal(read.gpu_samples.cnt, side.gpu_samples.cnt);
	assert_int_equal(fclose(file), 0);
	sidecar_done(&side);
	sidecar_done(&read);
}

static void samples_of_one_metric_are_summed_up(void **state _unused_)
{
	struct sidecar s = example();
	struct sidecar_gpu_sum sum;

	sidecar_sum_gpu(&s, 0, GPU_METRIC_POWER, &sum);
	assert_int_equal(sum.cnt, 2);
	assert_true(fabs(sum.first - 600) < 1e-9 && fabs(sum.last - 650) < 1e-9);
	assert_true(fabs(sum.mean - 625) < 1e-9);
	sidecar_sum_gpu(&s, 1, GPU_METRIC_POWER, &sum);
	assert_int_equal(sum.cnt, 0);
	sidecar_done(&s);
}

static void a_summary_has_the_worst_values_of_all_gpus(void **state _unused_)
{
	static const struct sidecar_gpu_sample samples[] = {
		{ 1000 * MS, 5, 0, GPU_METRIC_THROTTLED_POWER },
		{ 1000 * MS, 5, 0, GPU_METRIC_THROTTLED_THERMAL },
		{ 1000 * MS, 1e9, 0, GPU_METRIC_CORE_CLOCK },
		{ 3000 * MS, 5.5, 0, GPU_METRIC_THROTTLED_POWER },
		{ 3000 * MS, 6, 0, GPU_METRIC_THROTTLED_THERMAL },
		{ 3000 * MS, 2e9, 0, GPU_METRIC_CORE_CLOCK },
		{ 1000 * MS, 9e9, 1, GPU_METRIC_CORE_CLOCK }, /* its highest is unknown */
		{ 1000 * MS, 7, 1, GPU_METRIC_THROTTLED_POWER },
	};
	struct sidecar s = { 0 };
	struct sidecar_info info;

	sidecar_summarize(&s, &info);
	assert_true(info.gpu_throttled_frac == -1 && info.gpu_clock_frac == -1);
	assert_int_equal(vec_push(&s.gpus, (struct sidecar_gpu){ .core_hz = 2e9 }), 0);
	assert_int_equal(vec_push(&s.gpus, (struct sidecar_gpu){ .index = 1 }), 0);
	for (size_t i = 0; i < ARRAY_SIZE(samples); i++)
		assert_int_equal(vec_push(&s.gpu_samples, samples[i]), 0);
	sidecar_summarize(&s, &info);
	assert_true(fabs(info.gpu_throttled_frac - 0.5) < 1e-9);
	assert_true(fabs(info.gpu_clock_frac - 0.75) < 1e-9);
	sidecar_done(&s);
}

static void push_active(struct sidecar *s, uint32_t gpu, int64_t from_ns, int64_t every_ns)
{
	for (int64_t at = from_ns; at < s->header.end_ns; at += every_ns)
		assert_int_equal(vec_push(&s->gpu_samples,
					  (struct sidecar_gpu_sample){ at, 0.5, gpu,
								       GPU_METRIC_CORES_ACTIVE }),
				 0);
}

/* The number of samples in the last second decides what replaces absent ones. */
static void a_summary_lists_absent_samples_and_their_replacement(void **state _unused_)
{
	static const char *const places[] = { "", "; ten samples a second in their place", "",
					      "; one sample a second in their place", "" };
	struct sidecar s = { .header = { .start_ns = 1000 * MS, .end_ns = 4000 * MS } };
	struct sidecar_info info;
	char why[80];

	for (uint32_t i = 0; i < ARRAY_SIZE(places); i++) {
		struct sidecar_gpu gpu = { .index = i < 4 ? 10 + i : SIDECAR_GPU_NONE,
					   .why = "no permission" };

		if (i == 2)
			gpu.why[0] = '\0';
		assert_int_equal(vec_push(&s.gpus, gpu), 0);
	}
	push_active(&s, 0, 1000 * MS, 10 * MS);
	push_active(&s, 1, 1000 * MS, 110 * MS);
	push_active(&s, 2, 1000 * MS, 110 * MS);
	assert_int_equal(vec_push(&s.gpu_samples, (struct sidecar_gpu_sample){ 2000 * MS, 600, 3,
									       GPU_METRIC_POWER }),
			 0);
	sidecar_summarize(&s, &info);
	assert_int_equal(info.absence_cnt, 4);
	for (uint32_t i = 0, seen = 0; i < ARRAY_SIZE(places); i++) {
		if (i == 2)
			continue;
		(void)snprintf(why, sizeof(why), "no permission%s", places[i]);
		assert_int_equal(info.absences[seen].gpu, s.gpus.data[i].index);
		assert_string_equal(info.absences[seen++].why, why);
	}
	sidecar_done(&s);
}

static void metrics_have_names_and_units(void **state _unused_)
{
	assert_string_equal(gpu_metric_name(GPU_METRIC_THROTTLED_POWER), "throttled_power");
	assert_string_equal(gpu_metric_unit(GPU_METRIC_THROTTLED_POWER), "s");
	assert_string_equal(gpu_metric_name(GPU_METRIC_CNT), "unknown");
	assert_string_equal(gpu_metric_unit(UINT32_MAX), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(samples_of_a_gpu_are_shares_of_its_peak),
		cmocka_unit_test(finer_samples_of_the_trace_are_kept),
		cmocka_unit_test(the_finer_of_two_metrics_of_pcie_is_taken),
		cmocka_unit_test(each_way_of_pcie_is_a_resource),
		cmocka_unit_test(values_that_make_no_sense_are_left_out),
		cmocka_unit_test(a_job_without_a_device_gets_no_gpu_samples),
		cmocka_unit_test(gpus_are_written_and_read_back),
		cmocka_unit_test(ids_are_read_back_with_an_end),
		cmocka_unit_test(samples_of_one_metric_are_summed_up),
		cmocka_unit_test(a_summary_has_the_worst_values_of_all_gpus),
		cmocka_unit_test(a_summary_lists_absent_samples_and_their_replacement),
		cmocka_unit_test(metrics_have_names_and_units),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
