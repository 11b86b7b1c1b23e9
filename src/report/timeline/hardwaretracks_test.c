/* SPDX-License-Identifier: Apache-2.0 */
/* What the timeline draws of sidecars: curves that lose no peak, once for each host. */
#include "base/test_alloc.h"
#include "model/gpumetric.h"
#include "report/timeline/timeline.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>

#include "report/timeline/test_logs.h"
/* clang-format on */

#define FROM (2000 * MS) /* the window is 1 s */

struct fixture {
	struct flightlog log;
	struct sidecar sides[2]; /* of rank 0 and 1 of the log's host */
	size_t side_cnt;
	json_t *root;
};

static void side_init(struct sidecar *side, const struct flightlog *log, int rank)
{
	side->header = (struct sidecar_header){ .rank = rank,
						.mono_ns = log->mono_ns,
						.wall_ns = log->wall_ns,
						.start_ns = FROM,
						.end_ns = FROM + 1000 * MS };
	(void)snprintf(side->header.host, sizeof(side->header.host), "%s", log->host);
	assert_int_equal(vec_push(&side->gpus, ((struct sidecar_gpu){ .index = (uint32_t)rank,
								      .name = "H100" })),
			 0);
	assert_int_equal(vec_push(&side->nics, ((struct sidecar_nic){ .name = "mlx5_0/1" })), 0);
}

static int open_fixture(void **state)
{
	struct fixture *x = calloc(1, sizeof(*x));

	assert_non_null(x);
	log_init(&x->log, 0);
	add(&x->log.lanes.data[0].records, 1000 * MS, FLIGHT_OPERATOR, 3000 * MS,
	    add_string(&x->log, "aten::mm"), 0);
	for (int r = 0; r < 2; r++)
		side_init(&x->sides[r], &x->log, r);
	x->side_cnt = 2;
	*state = x;
	return 0;
}

static int close_fixture(void **state)
{
	struct fixture *x = *state;

	flightlog_done(&x->log);
	for (size_t i = 0; i < 2; i++)
		sidecar_done(&x->sides[i]);
	json_decref(x->root);
	free(x);
	return 0;
}

static void sample(struct fixture *x, int rank, int64_t time_ns, uint32_t metric, double value)
{
	struct sidecar_gpu_sample s = { FROM + time_ns, value, 0, metric };

	assert_int_equal(vec_push(&x->sides[rank].gpu_samples, s), 0);
}

static void nic(struct fixture *x, int rank, int64_t time_ns, uint64_t tx_bytes)
{
	struct sidecar_nic_sample s = { .time_ns = FROM + time_ns, .tx_bytes = tx_bytes };

	assert_int_equal(vec_push(&x->sides[rank].nic_samples, s), 0);
}

static void draw(struct fixture *x, int64_t last_ns)
{
	struct timeline_options options = { .last_ns = last_ns,
					    .sides = x->sides,
					    .side_cnt = x->side_cnt };
	struct timeline_rank rank;
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(out);
	assert_int_equal(timeline_write(&x->log, 1, &options, out, &rank), 0);
	(void)fclose(out);
	x->root = parse(text);
	free(text);
}

/* The nth event of a name that is no slice; NULL: there are fewer. */
static const json_t *event(const struct fixture *x, const char *name, size_t nth)
{
	const json_t *events = json_object_get(x->root, "traceEvents");

	for (size_t i = 0; i < json_array_size(events); i++) {
		const json_t *at = json_array_get(events, i);

		if (text_of(at, "ph")[0] != 'X' && strcmp(text_of(at, "name"), name) == 0 &&
		    nth-- == 0)
			return at;
	}
	return NULL;
}

static double value_of(const json_t *at, const char *key)
{
	const json_t *value = json_object_get(json_object_get(at, "args"), key);

	return value != NULL ? json_number_value(value) : (double)NAN;
}

static double ms_of(const json_t *at)
{
	return json_number_value(json_object_get(at, "ts")) / 1000 - 1000; /* since FROM */
}

static void expect(const json_t *at, double ms, double mean)
{
	assert_non_null(at);
	assert_true(fabs(ms_of(at) - ms) < 1e-3);
	assert_true(fabs(value_of(at, "mean") - mean) < 1e-3);
}

/* 10 kHz for a second: 200 points, and what one sample of 0.1 ms said is in one of them. */
static void dense_samples_become_few_points_and_lose_no_peak(void **state)
{
	static const char *const name = "GPU 0: matrix active, %";
	struct fixture *x = *state;
	double highest = 0, lowest = 100, sum = 0;
	size_t cnt = 0;

	for (int i = 1; i <= 10000; i++)
		sample(x, 0, i * MS / 10, GPU_METRIC_MATRIX_ACTIVE,
		       i == 1234   ? 1
		       : i == 7000 ? 0
				   : 0.5);
	draw(x, 0);
	for (const json_t *at; (at = event(x, name, cnt)) != NULL; cnt++) {
		highest = fmax(highest, value_of(at, "max"));
		lowest = fmin(lowest, value_of(at, "min"));
		sum += value_of(at, "mean");
		assert_true(fabs(ms_of(at) - 5 * (double)cnt) < 1e-3);
	}
	assert_int_equal(cnt, 200);
	assert_true(highest == 100 && lowest == 0);
	assert_true(fabs(sum / 200 - 50) < 0.01);
	expect(event(x, name, 0), 0, 50);
	expect(event(x, name, 24), 120, 51); /* 49 of 0.5 and one of 1 */
}

/* A share is that of the time before it, a clock is one from now on. */
static void rare_samples_are_drawn_each_where_they_hold(void **state)
{
	struct fixture *x = *state;

	for (int i = 1; i <= 3; i++) {
		sample(x, 0, i * 100 * MS, GPU_METRIC_ACTIVE, 0.1 * i);
		sample(x, 0, i * 100 * MS, GPU_METRIC_CORE_CLOCK, 1e9 + 1e8 * i);
		sample(x, 0, i * 100 * MS, GPU_METRIC_PCIE_TX, 4e8 * i * i);
		sample(x, 0, i * 100 * MS, GPU_METRIC_ECC_CORRECTED, 7);
	}
	draw(x, 0);
	expect(event(x, "GPU 0: active, %", 0), 0, 10);
	expect(event(x, "GPU 0: active, %", 2), 200, 30);
	assert_null(event(x, "GPU 0: active, %", 3));
	assert_true(isnan(value_of(event(x, "GPU 0: active, %", 0), "max")));
	expect(event(x, "GPU 0: core clock, MHz", 0), 100, 1100);
	expect(event(x, "GPU 0: core clock, MHz", 2), 300, 1300);
	expect(event(x, "GPU 0: pcie tx, MB/s", 0), 100, 12000); /* 1.2 GB in 0.1 s */
	expect(event(x, "GPU 0: pcie tx, MB/s", 1), 200, 20000);
	assert_null(event(x, "GPU 0: pcie tx, MB/s", 2));
	assert_null(event(x, "GPU 0: ecc corrected, per second", 0)); /* no new ones */
}

static void faults_are_moments(void **state)
{
	struct fixture *x = *state;

	sample(x, 0, 10 * MS, GPU_METRIC_FAULT, 79);
	sample(x, 0, 900 * MS, GPU_METRIC_FAULT, 48);
	draw(x, 0);
	assert_string_equal(text_of(event(x, "GPU 0: fault 79", 0), "ph"), "i");
	assert_string_equal(text_of(event(x, "GPU 0: fault 79", 0), "s"), "p");
	assert_true(fabs(ms_of(event(x, "GPU 0: fault 48", 0)) - 900) < 1e-3);
}

/* Both ranks' sidecars have the card, each what it saw of it. */
static void what_ranks_share_is_drawn_once(void **state)
{
	static const char *const name = "mlx5_0/1: sent, MB/s";
	struct fixture *x = *state;
	size_t cnt = 0;

	for (int i = 0; i <= 9; i++) {
		nic(x, 0, i * 100 * MS, (uint64_t)i * 100000000);
		nic(x, 1, i * 100 * MS, (uint64_t)i * 100000000);
	}
	nic(x, 1, 1000 * MS, 1900000000);
	draw(x, 0);
	for (const json_t *at; (at = event(x, name, cnt)) != NULL; cnt++)
		expect(at, 100 * (double)cnt, cnt < 9 ? 1000 : 10000);
	assert_int_equal(cnt, 10);
	assert_null(event(x, "mlx5_0/1: received, MB/s", 0)); /* nothing was */
}

static void a_window_says_what_was_sampled_and_what_not(void **state)
{
	struct sidecar_nic_count discards = { 0, SIDECAR_NIC_XMIT_DISCARDS, 12 };
	struct fixture *x = *state;
	const json_t *events, *window;

	(void)snprintf(x->sides[1].gpus.data[0].why, 56, "no permission");
	assert_int_equal(vec_push(&x->sides[0].nic_counters, discards), 0);
	draw(x, 0);
	events = json_object_get(x->root, "traceEvents");
	window = find(events, "hardware was sampled", 0);
	assert_int_equal(number_of(json_object_get(window, "args"), "mlx5_0/1 port_xmit_discards"),
			 12);
	assert_string_equal(text_of(json_object_get(window, "args"), "GPU 0"), "H100: sampled");
	window = find(events, "hardware was sampled", 1);
	assert_string_equal(text_of(json_object_get(window, "args"), "GPU 1"),
			    "H100: no permission");
	assert_null(find(events, "hardware was sampled", 2));
}

static void other_hosts_and_other_boots_are_left_out(void **state)
{
	struct fixture *x = *state;

	sample(x, 0, 10 * MS, GPU_METRIC_FAULT, 79);
	sample(x, 1, 10 * MS, GPU_METRIC_FAULT, 79);
	(void)snprintf(x->sides[0].header.host, 64, "elsewhere");
	x->sides[1].header.mono_ns += 60 * NSEC_PER_SEC;
	draw(x, 0);
	assert_null(event(x, "GPU 0: fault 79", 0));
	assert_null(event(x, "GPU 1: fault 79", 0));
	assert_null(find(json_object_get(x->root, "traceEvents"), "hardware was sampled", 0));
}

static void what_is_before_the_picture_is_cut_off(void **state)
{
	struct fixture *x = *state;

	for (int i = 1; i <= 10; i++)
		sample(x, 0, i * 100 * MS, GPU_METRIC_ACTIVE, 0.1 * i);
	sample(x, 0, 10 * MS, GPU_METRIC_FAULT, 79);
	draw(x, 1450 * MS); /* the log ends at FROM + 2000 ms */
	assert_null(event(x, "GPU 0: fault 79", 0));
	assert_true(fabs(value_of(event(x, "GPU 0: active, %", 0), "mean") - 60) < 1e-6);
	assert_true(json_number_value(json_object_get(event(x, "GPU 0: active, %", 0), "ts")) == 0);
}

static void absurd_values_are_valid_json(void **state)
{
	static const double values[] = { (double)NAN, (double)INFINITY, (double)-INFINITY,
					 1e308,	      -1e308,		0,
					 1e-300 };
	static const int64_t times[] = { INT64_MIN, INT64_MAX, -1, 0, 5, 5, 3, INT64_C(1) << 61 };
	struct fixture *x = *state;

	(void)snprintf(x->sides[0].nics.data[0].name, 28, "\"}]\\\n\xff");
	(void)snprintf(x->sides[0].gpus.data[0].name, 40, "\"}\xff");
	for (uint32_t metric = 0; metric < GPU_METRIC_CNT + 3; metric++) {
		for (size_t i = 0; i < ARRAY_SIZE(times) * ARRAY_SIZE(values); i++) {
			struct sidecar_gpu_sample s = { times[i % ARRAY_SIZE(times)],
							values[i % ARRAY_SIZE(values)],
							(uint32_t)i % 20, metric };

			assert_int_equal(vec_push(&x->sides[0].gpu_samples, s), 0);
		}
	}
	for (size_t i = 0; i < ARRAY_SIZE(times); i++) {
		struct sidecar_nic_sample s = { times[i], UINT64_MAX / (i + 1), i, i % 2, 0 };

		assert_int_equal(vec_push(&x->sides[0].nic_samples, s), 0);
	}
	draw(x, 0);
	json_decref(x->root);
	x->sides[0].header.start_ns = 0;
	x->sides[0].header.end_ns = FLIGHT_TIME_MAX_NS;
	draw(x, 0);
}

static void want_of_memory_is_reported(void **state)
{
	struct fixture *x = *state;
	struct timeline_options options = { .sides = x->sides, .side_cnt = x->side_cnt };
	FILE *out = fopen("/dev/null", "we");
	struct timeline_rank rank;
	int ret, cnt = 0;

	assert_non_null(out);
	sample(x, 0, 10 * MS, GPU_METRIC_ACTIVE, 0.5);
	nic(x, 0, 10 * MS, 1);
	nic(x, 0, 20 * MS, 2);
	do {
		allocations_left = cnt++;
		ret = timeline_write(&x->log, 1, &options, out, &rank);
		allocations_left = -1;
		assert_true(ret == 0 || ret == -ENOMEM);
	} while (ret != 0);
	assert_true(cnt > 20);
	(void)fclose(out);
}

/* For tests of the program: what a job with --keep-traces leaves. */
static int write_sidecar(const char *path)
{
	void *state = NULL;
	struct fixture *x;
	struct err err = { "" };
	int ret;

	(void)open_fixture(&state);
	x = state;
	for (int i = 1; i <= 1000; i++)
		sample(x, 0, i * MS, GPU_METRIC_CORES_ACTIVE, i % 2);
	sample(x, 0, 500 * MS, GPU_METRIC_FAULT, 79);
	ret = sidecar_write(&x->sides[0], path, &err);
	if (ret < 0)
		(void)fprintf(stderr, "%s\n", err.text);
	(void)close_fixture(&state);
	return ret < 0;
}

#define test_of(name) cmocka_unit_test_setup_teardown(name, open_fixture, close_fixture)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		test_of(dense_samples_become_few_points_and_lose_no_peak),
		test_of(rare_samples_are_drawn_each_where_they_hold),
		test_of(faults_are_moments),
		test_of(what_ranks_share_is_drawn_once),
		test_of(a_window_says_what_was_sampled_and_what_not),
		test_of(other_hosts_and_other_boots_are_left_out),
		test_of(what_is_before_the_picture_is_cut_off),
		test_of(absurd_values_are_valid_json),
		test_of(want_of_memory_is_reported),
	};

	if (argc == 3 && strcmp(argv[1], "--write") == 0)
		return write_sidecar(argv[2]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
