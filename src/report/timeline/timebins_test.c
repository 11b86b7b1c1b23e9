/* SPDX-License-Identifier: Apache-2.0 */
#include "report/timeline/timebins.h"

#include "base/test_alloc.h"
#include "base/test_random.h"

#include <errno.h>
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

#define MS 1000000
#define ROW 7u

static const struct timebins_rank two_ranks[] = { { 0, "a", true, false }, { 3, "b", true, true } };
static const int culprits[] = { 3 };
static const struct timebins_finding slow[] = {
	{ "PT-103", "train.py(7): load", culprits, 1, false },
};

static struct timebins_options options_of(unsigned columns)
{
	return (struct timebins_options){ .ranks = two_ranks,
					  .rank_cnt = ARRAY_SIZE(two_ranks),
					  .findings = slow,
					  .finding_cnt = 1,
					  .columns = columns };
}

static int begin(struct timebins *bins, int64_t wall_ns, int64_t length_ns)
{
	struct slice_sink *sink = timebins_sink(bins);

	return sink->begin(sink->arg, wall_ns, length_ns);
}

static int add_row(struct timebins *bins, uint32_t idx, uint32_t row, const char *name)
{
	struct slice_sink *sink = timebins_sink(bins);

	return sink->row(sink->arg, idx, row, name);
}

static int add(struct timebins *bins, uint32_t idx, const char *name, int64_t start_ns,
	       int64_t end_ns)
{
	struct slice_sink *sink = timebins_sink(bins);
	const struct sink_slice slice = { .idx = idx,
					  .row = ROW,
					  .start_ns = start_ns,
					  .end_ns = end_ns,
					  .category = name[0] == '[' ? "syscall" : "python",
					  .name = name,
					  .shown = name };

	return sink->slice(sink->arg, &slice);
}

static json_t *print(struct timebins *bins)
{
	struct timeline_rank results[2] = { { .last_ns = 0 } };
	struct str out = { 0 };
	json_t *root;

	assert_int_equal(timebins_print(bins, results, &out), 0);
	root = json_loads(str_borrow(&out), 0, NULL);
	assert_non_null(root);
	str_done(&out);
	return root;
}

/* The spans of the i-th rank's first row as "0+2 load 4!": column, count, name, level, flagged. */
static void expect_spans(struct timebins *bins, size_t rank, const char *wanted)
{
	json_t *root = print(bins), *span;
	const json_t *of = json_array_get(json_object_get(root, "ranks"), rank);
	const json_t *row = json_array_get(json_object_get(of, "rows"), 0);
	struct str is = { 0 };
	size_t i;

	json_array_foreach(json_object_get(row, "spans"), i, span)
	{
		size_t name = (size_t)json_integer_value(json_array_get(span, 2));

		str_printf(&is, "%s%lld+%lld %s %lld%s", i > 0 ? ", " : "",
			   (long long)json_integer_value(json_array_get(span, 0)),
			   (long long)json_integer_value(json_array_get(span, 1)),
			   json_string_value(json_array_get(json_object_get(root, "names"), name)),
			   (long long)json_integer_value(json_array_get(span, 4)),
			   json_is_true(json_array_get(span, 5)) ? "!" : "");
	}
	assert_string_equal(str_borrow(&is), wanted);
	str_done(&is);
	json_decref(root);
}

static struct timebins *make(struct timebins_options options, int64_t length_ns)
{
	struct timebins *bins = timebins_new(&options);

	assert_non_null(bins);
	assert_int_equal(begin(bins, INT64_C(1700000000) * NSEC_PER_SEC, length_ns), 0);
	assert_int_equal(add_row(bins, 0, ROW, "thread"), 0);
	assert_int_equal(add_row(bins, 1, ROW, "thread"), 0);
	return bins;
}

static void a_column_has_the_name_that_took_most_of_it_by_itself(void **state _unused_)
{
	struct timebins *bins = make(options_of(10), 100 * MS);

	assert_int_equal(add(bins, 0, "outer", 0, 50 * MS), 0);
	assert_int_equal(add(bins, 0, "inner", 10 * MS, 30 * MS), 0);
	assert_int_equal(add(bins, 0, "short", 60 * MS, 62 * MS), 0);
	expect_spans(bins, 0, "0+1 outer 4, 1+2 inner 4, 3+2 outer 4, 6+1 short 1");
	assert_null(timebins_free(bins));
}

static void what_a_finding_names_is_flagged_with_its_system_calls(void **state _unused_)
{
	struct timebins *bins = make(options_of(10), 100 * MS);

	for (uint32_t idx = 0; idx < 2; idx++) {
		assert_int_equal(add(bins, idx, "train.py(7): load", 0, 30 * MS), 0);
		assert_int_equal(add(bins, idx, "[read]", 10 * MS, 20 * MS), 0);
		assert_int_equal(add(bins, idx, "helper", 20 * MS, 22 * MS), 0);
		assert_int_equal(add(bins, idx, "[read]", 40 * MS, 50 * MS), 0);
		assert_int_equal(add(bins, idx, "strain.py(7): load", 60 * MS, 70 * MS), 0);
	}
	expect_spans(
		bins, 0,
		"0+1 train.py(7): load 4, 1+1 [read] 4, 2+1 train.py(7): load 4, 4+1 [read] 4, "
		"6+1 strain.py(7): load 4");
	expect_spans(
		bins, 1,
		"0+1 train.py(7): load 4!, 1+1 [read] 4!, 2+1 train.py(7): load 4!, 4+1 [read] "
		"4, 6+1 strain.py(7): load 4");
	assert_null(timebins_free(bins));
}

static void expect_part(struct timebins_options options, double from_ms, double to_ms, bool window)
{
	struct timebins *bins = make(options, 100 * NSEC_PER_SEC);
	json_t *root = print(bins);

	assert_true(json_number_value(json_object_get(root, "from_ms")) == from_ms);
	assert_true(json_number_value(json_object_get(root, "to_ms")) == to_ms);
	assert_int_equal(json_is_object(json_object_get(root, "window")), window);
	json_decref(root);
	assert_null(timebins_free(bins));
}

static void the_part_is_what_is_asked_for_else_the_window_else_the_end(void **state _unused_)
{
	const int64_t zero = INT64_C(1700000000) * NSEC_PER_SEC;
	struct timebins_options o = options_of(10);

	expect_part(o, 90000, 100000, false);
	o.window_wall_ns[0] = zero + 5 * NSEC_PER_SEC;
	o.window_wall_ns[1] = zero + 8 * NSEC_PER_SEC;
	expect_part(o, 5000, 8000, true);
	o.from_ns = 20 * NSEC_PER_SEC;
	o.to_ns = 200 * NSEC_PER_SEC;
	expect_part(o, 20000, 100000, true);
	o.from_ns = 300 * NSEC_PER_SEC; /* there is nothing */
	o.to_ns = 400 * NSEC_PER_SEC;
	expect_part(o, 5000, 8000, true);
	o.window_wall_ns[0] = zero - 8 * NSEC_PER_SEC; /* before all that is kept */
	o.window_wall_ns[1] = zero - 5 * NSEC_PER_SEC;
	o.to_ns = 0;
	expect_part(o, 90000, 100000, false);
}

/* --- against a picture of single nanoseconds --- */

#define LENGTH 400
#define NAMES 5

static const char *const names[NAMES] = { "a", "b", "c", "d", "e" };

/* Nested slices by start, outer ones first, painted one over the other. */
static void play(struct timebins *bins, uint64_t *seed, int64_t from, int64_t to, int depth,
		 int pixels[LENGTH])
{
	while (from < to && depth < 4) {
		int64_t start = from + test_below(seed, to - from), length = to - start;
		int64_t end = start + 1 + test_below(seed, length);
		int name = (int)test_below(seed, NAMES);

		assert_int_equal(add(bins, 0, names[name], start, end), 0);
		for (int64_t i = start; i < end; i++)
			pixels[i] = name;
		play(bins, seed, start, end, depth + 1, pixels);
		from = end;
		if (test_below(seed, 3) == 0)
			return;
	}
}

/* The self times in the totals are the nanoseconds that each name has in the picture. */
static void expect_totals(struct timebins *bins, const int pixels[LENGTH], int from, int to)
{
	json_t *root = print(bins), *total;
	const json_t *of = json_array_get(json_object_get(root, "ranks"), 0);
	const json_t *row = json_array_get(json_object_get(of, "rows"), 0);
	double sums[NAMES] = { 0 };
	size_t i;

	for (int at = from; at < to; at++) {
		if (pixels[at] >= 0)
			sums[pixels[at]] += 1e-3; /* a nanosecond stands for a microsecond */
	}
	json_array_foreach(json_object_get(row, "totals"), i, total)
	{
		size_t name = (size_t)json_integer_value(json_object_get(total, "name"));
		const char *text =
			json_string_value(json_array_get(json_object_get(root, "names"), name));

		assert_true(json_number_value(json_object_get(total, "ms")) - sums[text[0] - 'a'] <
			    1e-9);
		sums[text[0] - 'a'] -= json_number_value(json_object_get(total, "ms"));
	}
	for (i = 0; i < NAMES; i++)
		assert_true(sums[i] < 1e-9 && sums[i] > -1e-9);
	json_decref(root);
}

/* Scales the picture's nanoseconds to microseconds: the JSON has no more digits. */
static int scaled(void *arg, const struct sink_slice *slice)
{
	struct sink_slice given = *slice;
	struct slice_sink *inner = arg;

	given.start_ns *= 1000;
	given.end_ns *= 1000;
	return inner->slice(inner->arg, &given);
}

static void times_by_itself_are_those_of_a_picture_of_single_nanoseconds(void **state _unused_)
{
	uint64_t seed = 99;

	for (int round = 0; round < 300; round++) {
		int from = (int)test_below(&seed, LENGTH / 2);
		int to = from + 1 + (int)test_below(&seed, LENGTH / 2), pixels[LENGTH];
		struct timebins_options o = options_of(1 + (unsigned)test_below(&seed, 60));
		struct timebins *bins;
		struct slice_sink inner, *sink;

		o.finding_cnt = 0;
		o.from_ns = from * 1000;
		o.to_ns = to * 1000;
		bins = make(o, LENGTH * 1000);
		sink = timebins_sink(bins);
		inner = *sink;
		sink->slice = scaled;
		sink->arg = &inner;
		memset(pixels, -1, sizeof(pixels));
		play(bins, &seed, 0, LENGTH, 0, pixels);
		expect_totals(bins, pixels, from, to);
		assert_null(timebins_free(bins));
	}
}

/* --- which ranks --- */

static void flagged_ranks_come_first_and_the_others_evenly(void **state _unused_)
{
	enum { CNT = 1000 };
	struct timebins_rank *ranks = calloc(CNT, sizeof(*ranks));
	int accused[40], shown = 0, flagged = 0, late = 0;
	struct timebins_finding finding = { "PT-103", NULL, accused, ARRAY_SIZE(accused), false };

	assert_non_null(ranks);
	for (int i = 0; i < CNT; i++)
		ranks[i].rank = i;
	for (size_t i = 0; i < ARRAY_SIZE(accused); i++)
		accused[i] = 500 + (int)i;
	timebins_choose(ranks, CNT, &finding, 1);
	for (int i = 0; i < CNT; i++) {
		shown += ranks[i].shown;
		flagged += ranks[i].shown && ranks[i].flagged;
		late += ranks[i].shown && i >= CNT - CNT / 8;
		assert_int_equal(ranks[i].flagged, i >= 500 && i < 540);
	}
	assert_int_equal(shown, TIMEBINS_RANKS_MAX);
	assert_true(flagged >= (int)TIMEBINS_RANKS_MAX / 4);
	assert_true(late >= 4);
	timebins_choose(ranks, TIMEBINS_RANKS_MAX, &finding, 1);
	for (unsigned i = 0; i < TIMEBINS_RANKS_MAX; i++)
		assert_true(ranks[i].shown);
	free(ranks);
}

static void what_is_not_shown_or_beyond_the_limits_is_counted(void **state _unused_)
{
	struct timebins_rank ranks[] = { { 0, "a", true, false }, { 1, "b", false, false } };
	struct timebins_options o = options_of(1000000);
	struct timebins *bins;
	json_t *root;

	o.ranks = ranks;
	bins = timebins_new(&o);
	assert_non_null(bins);
	assert_int_equal(begin(bins, 0, 100 * MS), 0);
	for (uint32_t row = 0; row < 5000; row++)
		assert_int_equal(add_row(bins, 0, row * 2 + 1, "thread"), 0);
	assert_int_equal(add_row(bins, 1, ROW, "hidden"), 0);
	assert_int_equal(add_row(bins, 77, ROW, "a host's hardware"), 0);
	assert_int_equal(add(bins, 1, "x", 0, MS), 0);
	assert_int_equal(add(bins, 0, "backwards", 5 * MS, 4 * MS), 0);
	assert_int_equal(add(bins, 0, "outside", 500 * MS, 600 * MS), 0);
	root = print(bins);
	assert_int_equal(json_integer_value(json_object_get(root, "columns")),
			 TIMEBINS_COLUMNS_MAX);
	assert_int_equal(json_array_size(json_object_get(root, "ranks")), 0);
	assert_int_equal(json_integer_value(json_object_get(root, "ranks_hidden")), 1);
	assert_int_equal(json_integer_value(json_object_get(root, "ranks_silent")), 1);
	assert_int_equal(json_integer_value(json_object_get(root, "rows_left_out")), 904);
	json_decref(root);
	assert_null(timebins_free(bins));
}

/* Eight streams and two threads: the two busiest streams, the threads, and two more streams. */
static void many_streams_do_not_hide_the_threads(void **state _unused_)
{
	static const char *const wanted[] = { "s7", "s6", "s5", "s4", "t1", "t0" };
	struct timebins_options o = options_of(10);
	struct timebins *bins = timebins_new(&o);
	struct slice_sink *sink = timebins_sink(bins);
	json_t *root, *row;
	size_t i;

	assert_int_equal(begin(bins, 0, 100 * MS), 0);
	for (uint32_t k = 0; k < 10; k++) {
		char name[16];
		struct sink_slice slice = { .row = k,
					    .end_ns = (k < 8 ? k + 1 : k - 7) * MS,
					    .category = k < 8 ? "kernel" : "operator",
					    .name = "x",
					    .shown = "x" };

		(void)snprintf(name, sizeof(name), "%s%u", k < 8 ? "s" : "t", k < 8 ? k : k - 8);
		assert_int_equal(add_row(bins, 0, k, name), 0);
		assert_int_equal(sink->slice(sink->arg, &slice), 0);
	}
	root = print(bins);
	row = json_array_get(json_object_get(root, "ranks"), 0);
	assert_int_equal(json_integer_value(json_object_get(row, "rows_left_out")), 4);
	row = json_object_get(row, "rows");
	assert_int_equal(json_array_size(row), ARRAY_SIZE(wanted));
	for (i = 0; i < ARRAY_SIZE(wanted); i++)
		assert_string_equal(
			json_string_value(json_object_get(json_array_get(row, i), "name")),
			wanted[i]);
	json_decref(root);
	assert_null(timebins_free(bins));
}

static int draw(struct str *out)
{
	const struct timebins_options o = options_of(10);
	struct timeline_rank results[2] = { { .last_ns = 0 } };
	struct timebins *bins = timebins_new(&o);
	int ret = bins != NULL ? begin(bins, 0, 100 * MS) : -ENOMEM;

	if (ret == 0)
		ret = add_row(bins, 0, ROW, "thread");
	for (int i = 0; i < 40 && ret == 0; i++)
		ret = add(bins, 0, names[i % NAMES], i * MS, (i + 1) * MS);
	if (ret == 0)
		ret = timebins_print(bins, results, out);
	(void)timebins_free(bins);
	return ret;
}

static void a_failed_allocation_is_reported(void **state _unused_)
{
	int error = -ENOMEM;

	for (int n = 0; error == -ENOMEM; n++) {
		struct str out = { 0 };

		allocations_left = n;
		error = draw(&out);
		allocations_left = -1;
		str_done(&out);
		assert_true(n < 10000);
	}
	assert_int_equal(error, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_column_has_the_name_that_took_most_of_it_by_itself),
		cmocka_unit_test(what_a_finding_names_is_flagged_with_its_system_calls),
		cmocka_unit_test(the_part_is_what_is_asked_for_else_the_window_else_the_end),
		cmocka_unit_test(times_by_itself_are_those_of_a_picture_of_single_nanoseconds),
		cmocka_unit_test(flagged_ranks_come_first_and_the_others_evenly),
		cmocka_unit_test(what_is_not_shown_or_beyond_the_limits_is_counted),
		cmocka_unit_test(many_streams_do_not_hide_the_threads),
		cmocka_unit_test(a_failed_allocation_is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
