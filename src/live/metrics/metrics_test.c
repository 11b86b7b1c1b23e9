/* SPDX-License-Identifier: Apache-2.0 */
#include "live/metrics/metrics.h"

#include "base/test_alloc.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

static struct str page(struct metrics *metrics)
{
	struct str out = { 0 };

	assert_int_equal(metrics_render(metrics, EXPOSITION_PROMETHEUS, &out), 0);
	return out;
}

static void expect_line(struct metrics *metrics, const char *line)
{
	struct str out = page(metrics);

	if (strstr(out.data, line) == NULL)
		fail_msg("expected %s found %s", line, out.data);
	str_done(&out);
}

static void expect_no(struct metrics *metrics, const char *text)
{
	struct str out = page(metrics);

	assert_null(strstr(out.data, text));
	str_done(&out);
}

static uint32_t mark(struct metrics *metrics, const char *rank)
{
	return metrics_series(metrics, METRIC_MARKS, METRIC_VALUES(rank, "0", "gc"));
}

static void equal_labels_are_one_series(void **state)
{
	struct metrics *metrics = metrics_new();

	(void)state;
	assert_int_equal(mark(metrics, "1"), mark(metrics, "1"));
	assert_int_not_equal(mark(metrics, "1"), mark(metrics, "2"));
	metrics_add(metrics, mark(metrics, "1"), 2);
	metrics_add(metrics, mark(metrics, "1"), 3);
	expect_line(metrics,
		    "\nperftracker_marks_total{rank=\"1\",local_rank=\"0\",mark=\"gc\"} 5\n");
	(void)metrics_free(metrics);
}

static void values_fall_into_the_bucket_that_holds_them(void **state)
{
	struct metrics *metrics = metrics_new();
	uint32_t series = metrics_series(metrics, METRIC_LOADER, METRIC_VALUES("0", "0"));

	(void)state;
	metrics_observe(metrics, series, 1000); /* the bound itself belongs to its bucket */
	metrics_observe(metrics, series, 1001);
	metrics_observe(metrics, series, -5);		 /* a clock's whim */
	metrics_observe(metrics, series, INT64_MAX / 4); /* beyond all bounds */
	expect_line(metrics, "_bucket{rank=\"0\",local_rank=\"0\",le=\"0.000001\"} 2\n");
	expect_line(metrics, "_bucket{rank=\"0\",local_rank=\"0\",le=\"0.000003\"} 3\n");
	expect_line(metrics, "_bucket{rank=\"0\",local_rank=\"0\",le=\"100.0\"} 3\n");
	expect_line(metrics, "_bucket{rank=\"0\",local_rank=\"0\",le=\"+Inf\"} 4\n");
	(void)metrics_free(metrics);
}

static void bounds_of_all_histograms_ascend(void **state)
{
	(void)state;
	for (enum metric metric = 0; metric < METRIC_CNT; metric++) {
		const struct metric_desc *desc = metrics_desc(metric);
		size_t cnt = metric_bound_cnt(desc);

		assert_int_equal(desc->type == METRIC_HISTOGRAM, cnt > 0);
		for (size_t i = 0; i < cnt; i++)
			assert_true(desc->bounds[i] < desc->bounds[i + 1]);
		if (cnt > 0)
			assert_true(desc->bounds[cnt] == INT64_MAX);
	}
}

/* OpenMetrics requires it. */
static void names_end_in_their_unit(void **state)
{
	(void)state;
	for (enum metric metric = 0; metric < METRIC_CNT; metric++) {
		const struct metric_desc *desc = metrics_desc(metric);
		size_t len = strlen(desc->name), unit = strlen(desc->unit);

		assert_true(len > unit);
		assert_string_equal(desc->name + len - unit, desc->unit);
		assert_null(strpbrk(desc->help, "\"\\\n"));
	}
}

static void what_is_too_much_goes_into_other_and_is_counted(void **state)
{
	struct metrics *metrics = metrics_new();
	uint32_t first = mark(metrics, "0");
	char rank[16];

	(void)state;
	for (unsigned i = 0; i < METRICS_SERIES_MAX + 10; i++) {
		(void)snprintf(rank, sizeof(rank), "%u", i);
		metrics_add(metrics, mark(metrics, rank), 1);
	}
	metrics_add(metrics, first, 1); /* those that are there stay */
	assert_int_equal(mark(metrics, "0"), first);
	expect_line(metrics, "{rank=\"0\",local_rank=\"0\",mark=\"gc\"} 2\n");
	expect_line(metrics, "{rank=\"other\",local_rank=\"other\",mark=\"other\"} 10\n");
	expect_line(metrics,
		    "perftracker_metrics_overflow_total{metric=\"perftracker_marks\"} 10\n");
	(void)metrics_free(metrics);
}

static void other_families_have_room_when_one_is_full(void **state)
{
	struct metrics *metrics = metrics_new();
	char rank[16];

	(void)state;
	for (unsigned i = 0; i < METRICS_SERIES_MAX + 10; i++) {
		(void)snprintf(rank, sizeof(rank), "%u", i);
		(void)mark(metrics, rank);
	}
	metrics_set(metrics, metrics_series(metrics, METRIC_ACCUSED, METRIC_VALUES("new", "x")), 1);
	expect_line(metrics, "perftracker_report_accused{rank=\"new\",cause=\"x\"} 1\n");
	(void)metrics_free(metrics);
}

static void a_dropped_series_is_hidden_until_it_is_made_again(void **state)
{
	struct metrics *metrics = metrics_new();

	(void)state;
	metrics_add(metrics, mark(metrics, "1"), 7);
	metrics_drop(metrics, mark(metrics, "1"));
	expect_no(metrics, "rank=\"1\"");
	metrics_add(metrics, mark(metrics, "1"), 1);
	expect_line(metrics, "{rank=\"1\",local_rank=\"0\",mark=\"gc\"} 1\n");
	(void)metrics_free(metrics);
}

static void ranks_are_in_the_order_of_their_numbers(void **state)
{
	struct metrics *metrics = metrics_new();
	struct str out;

	(void)state;
	(void)mark(metrics, "10");
	(void)mark(metrics, "9");
	out = page(metrics);
	assert_true(strstr(out.data, "rank=\"9\"") < strstr(out.data, "rank=\"10\""));
	str_done(&out);
	(void)metrics_free(metrics);
}

static void without_memory_only_the_new_series_is_missing(void **state)
{
	struct str out = { 0 };
	int error = -ENOMEM;

	(void)state;
	for (int n = 0; error == -ENOMEM; n++) {
		struct metrics *metrics;

		allocations_left = n;
		metrics = metrics_new();
		if (metrics != NULL) {
			uint32_t series = mark(metrics, "1");

			metrics_add(metrics, series, 1);
			error = metrics_render(metrics, EXPOSITION_OPENMETRICS, &out);
			if (error == 0 && series == METRICS_NONE)
				error = -ENOMEM;
		}
		allocations_left = -1;
		str_done(&out);
		out = (struct str){ 0 };
		(void)metrics_free(metrics);
	}
	assert_int_equal(error, 0);
}

static void *read_pages(void *arg)
{
	static char no_memory[] = "out of memory", back[] = "a count went back";
	struct metrics *metrics = arg;
	uint64_t least = 0;

	for (int i = 0; i < 200; i++) {
		struct str out = { 0 };
		uint64_t count = 0;
		const char *at;

		if (metrics_render(metrics, EXPOSITION_PROMETHEUS, &out) < 0)
			return no_memory;
		at = strstr(out.data, "_seconds_count{");
		if (at != NULL)
			count = strtoull(strchr(at, '}') + 1, NULL, 10);
		str_done(&out);
		if (count < least)
			return back;
		least = count;
		(void)metrics_generation(metrics);
	}
	return NULL;
}

static void pages_can_be_made_while_values_come(void **state)
{
	struct metrics *metrics = metrics_new();
	uint32_t series = metrics_series(metrics, METRIC_LOADER, METRIC_VALUES("0", "0"));
	pthread_t reader;
	void *complaint = NULL;
	char rank[16];

	(void)state;
	assert_int_equal(pthread_create(&reader, NULL, read_pages, metrics), 0);
	for (unsigned i = 0; i < 20000; i++) {
		(void)snprintf(rank, sizeof(rank), "%u", i % 600);
		metrics_observe(metrics, series, i);
		metrics_add(metrics, mark(metrics, rank), 1);
	}
	assert_int_equal(pthread_join(reader, &complaint), 0);
	assert_null(complaint);
	(void)metrics_free(metrics);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_labels_are_one_series),
		cmocka_unit_test(values_fall_into_the_bucket_that_holds_them),
		cmocka_unit_test(bounds_of_all_histograms_ascend),
		cmocka_unit_test(names_end_in_their_unit),
		cmocka_unit_test(what_is_too_much_goes_into_other_and_is_counted),
		cmocka_unit_test(other_families_have_room_when_one_is_full),
		cmocka_unit_test(a_dropped_series_is_hidden_until_it_is_made_again),
		cmocka_unit_test(ranks_are_in_the_order_of_their_numbers),
		cmocka_unit_test(pages_can_be_made_while_values_come),
		cmocka_unit_test(without_memory_only_the_new_series_is_missing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
