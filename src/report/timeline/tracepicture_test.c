/* SPDX-License-Identifier: Apache-2.0 */
#include "report/timeline/tracepicture.h"

#include "base/test_alloc.h"
#include "report/timeline/latespans.h"
#include "report/timeline/test_traces.h"

#include <errno.h>
#include <jansson.h>

#define RANKS 3
#define MEETINGS 4
#define PERIOD 100 /* ms */
#define AHEAD 5000 /* ms: by so much is the clock of each rank ahead of the one before */

/* All ranks meet four times; rank 1 comes 30 ms late, as it sleeps in forward. */
static void fill_trace(int rank, struct trace *trace)
{
	test_trace_init(trace);
	for (int i = 0; i < MEETINGS; i++) {
		double begin = 1000 + AHEAD * rank + PERIOD * i, late = rank == 1 ? 30 : 0;

		test_event(trace, 0, KIND_ANNOTATION, "forward", begin, begin + 50);
		test_event(trace, 0, KIND_OPERATOR, "aten::view", begin, begin + 10);
		test_event(trace, 0, KIND_OPERATOR, "aten::mm", begin + 10 + late, begin + 45);
		test_event(trace, 1, KIND_KERNEL, "ncclAllReduce", begin + 50 + late + rank,
			   begin + 90);
	}
}

static int read_trace(void *arg, size_t idx, struct trace *ret, struct err *err)
{
	if (arg != NULL)
		return err_set(err, EIO, "rank %zu: gone", idx);
	fill_trace((int)idx, ret);
	return 0;
}

static const int culprits[] = { 1 };
static const char name[] = "idle in forward, after aten::view, before aten::mm";
static struct finding finding = { .id = "PT-101",
				  .title = "rank 1: host stall",
				  .name = name,
				  .class = CLASS_IDLE,
				  .ranks = culprits,
				  .rank_cnt = 1,
				  .delta_ms_per_iteration = 30 };
static const struct report report = { .findings = &finding, .finding_cnt = 1 };

static struct instance_event events[RANKS][MEETINGS];

static void fill_ranks(struct tracepicture_rank ranks[static RANKS])
{
	for (int r = 0; r < RANKS; r++) {
		int64_t zero_ns = (int64_t)(1000 + AHEAD * r) * MS;

		ranks[r] = (struct tracepicture_rank){ .rank = r,
						       .host = "",
						       .from_ns = zero_ns,
						       .end_ns = zero_ns + 400 * MS,
						       .events = events[r],
						       .event_cnt = MEETINGS };
		for (int i = 0; i < MEETINGS; i++)
			events[r][i] = (struct instance_event){
				.start_ns =
					zero_ns + (PERIOD * i + 50 + r + (r == 1 ? 30 : 0)) * MS,
				.end_ns = zero_ns + (PERIOD * i + 90) * MS,
				.key = 1,
				.seq = i,
			};
	}
}

/* The picture as JSON; the caller frees it. */
static json_t *draw(const struct tracepicture_options *options)
{
	struct tracepicture_rank ranks[RANKS];
	struct timeline_rank results[RANKS];
	struct err err = { "" };
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);
	json_t *root;

	assert_non_null(out);
	fill_ranks(ranks);
	assert_int_equal(tracepicture_write(ranks, RANKS, options, out, results, &err), 0);
	assert_int_equal(fclose(out), 0);
	root = json_loadb(text, len, 0, NULL);
	assert_non_null(root);
	free(text);
	return root;
}

static double number(const json_t *event, const char *key)
{
	return json_number_value(json_object_get(event, key));
}

/* Slices of this name: their number, and the first. */
static size_t count(json_t *root, const char *wanted, const json_t **ret_first)
{
	json_t *list = json_object_get(root, "traceEvents"), *event;
	size_t i, cnt = 0;

	json_array_foreach(list, i, event)
	{
		const char *text = json_string_value(json_object_get(event, "name"));

		if (strcmp(json_string_value(json_object_get(event, "ph")), "X") != 0 ||
		    strcmp(text, wanted) != 0)
			continue;
		if (cnt++ == 0 && ret_first != NULL)
			*ret_first = event;
	}
	return cnt;
}

static const struct tracepicture_options whole = { .report = &report, .read = read_trace };

static void one_collective_ends_at_one_moment_on_all_ranks(void **state)
{
	json_t *root = draw(&whole), *event;
	double end, expected;
	size_t i, seen = 0;

	(void)state;
	json_array_foreach(json_object_get(root, "traceEvents"), i, event)
	{
		if (strcmp(json_string_value(json_object_get(event, "name")), "ncclAllReduce") != 0)
			continue;
		end = number(event, "ts") + number(event, "dur");
		expected = 1e3 * (90 + PERIOD * (int)(seen++ % MEETINGS));
		assert_float_equal(end, expected, 1);
	}
	assert_int_equal(seen, RANKS * MEETINGS);
	json_decref(root);
}

static void the_culprit_has_its_gaps_and_the_waits_for_it_on_top(void **state)
{
	const json_t *event = NULL;
	json_t *root = draw(&whole);

	(void)state;
	assert_int_equal(count(root, name, &event), MEETINGS);
	assert_int_equal((int)number(event, "pid"), 2);
	assert_float_equal(number(event, "ts"), 10e3, 1);
	assert_float_equal(number(event, "dur"), 30e3, 1);
	/* From the arrival of rank 2 to its own. */
	assert_int_equal(count(root, "others wait for this rank", &event), MEETINGS);
	assert_float_equal(number(event, "ts"), 52e3, 1);
	assert_float_equal(number(event, "dur"), 29e3, 1);
	json_decref(root);
}

static void executions_of_the_culprit_are_colored(void **state)
{
	const json_t *event = NULL;
	json_t *root;

	(void)state;
	finding.name = "aten::view";
	finding.class = CLASS_HOST;
	root = draw(&whole);
	/* On rank 1 also in the track of findings. */
	assert_int_equal(count(root, "aten::view", &event), (RANKS + 1) * MEETINGS);
	assert_int_equal(count(root, name, NULL), 0);
	json_decref(root);
	finding.name = name;
	finding.class = CLASS_IDLE;
}

static void the_last_part_and_wall_clocks_are_shown_on_request(void **state)
{
	struct tracepicture_options options = whole;
	const json_t *event = NULL;
	json_t *root;

	(void)state;
	options.last_ns = 150 * MS;
	root = draw(&options);
	assert_int_equal(count(root, "ncclAllReduce", &event), 2 * RANKS);
	assert_float_equal(number(event, "ts"), 0, 1); /* cut at the begin of the picture */
	json_decref(root);
	options = whole;
	options.wall_only = true;
	root = draw(&options);
	/* By these clocks rank 2 comes last, and it is not accused. */
	assert_int_equal(count(root, "others wait for this rank", NULL), 0);
	assert_int_equal(count(root, name, &event), MEETINGS);
	assert_float_equal(number(event, "ts"), 5010e3, 1);
	json_decref(root);
}

static void who_comes_last_is_known_of_each_collective(void **state)
{
	struct instance_event first[] = { { .start_ns = 10, .instance = 1 } };
	struct instance_event second[] = { { .start_ns = 70, .instance = 1 },
					   { .start_ns = 80, .instance = 0 } };
	struct instance_event third[] = { { .start_ns = 40, .instance = 1 },
					  { .start_ns = 5, .instance = 2 } };
	const struct align_rank ranks[] = { { first, 1, 0, 0, "" },
					    { second, 2, 0, 0, "" },
					    { third, 2, 0, 0, "" } };
	const struct align_clock clocks[] = { { .offset_ns = 0 },
					      { .offset_ns = -50 },
					      { .offset_ns = 0 } };
	struct late_instance late[3];

	(void)state;
	latespans_find(ranks, clocks, 3, 2, late);
	assert_int_equal(late[1].member_cnt, 3);
	assert_int_equal(late[1].last_rank, 2);
	assert_int_equal(late[1].last_ns, 40);
	assert_int_equal(late[1].before_last_ns, 20);
	assert_int_equal(late[2].member_cnt, 1);
}

static void failures_are_errors(void **state)
{
	struct tracepicture_options options = whole;
	struct tracepicture_rank ranks[RANKS];
	struct timeline_rank results[RANKS];
	FILE *out = fopen("/dev/null", "w");
	struct err err = { "" };

	(void)state;
	assert_non_null(out);
	options.arg = &err;
	fill_ranks(ranks);
	assert_int_equal(tracepicture_write(ranks, RANKS, &options, out, results, &err), -EIO);
	assert_string_equal(err.text, "rank 0: gone");
	for (int n = 0; n < 3; n++) {
		fill_ranks(ranks);
		allocations_left = n;
		assert_int_equal(tracepicture_write(ranks, RANKS, &whole, out, results, &err),
				 -ENOMEM);
		allocations_left = -1;
	}
	assert_int_equal(fclose(out), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_collective_ends_at_one_moment_on_all_ranks),
		cmocka_unit_test(the_culprit_has_its_gaps_and_the_waits_for_it_on_top),
		cmocka_unit_test(executions_of_the_culprit_are_colored),
		cmocka_unit_test(the_last_part_and_wall_clocks_are_shown_on_request),
		cmocka_unit_test(who_comes_last_is_known_of_each_collective),
		cmocka_unit_test(failures_are_errors),
	};

	return cmocka_run_group_tests_name("tracepicture", tests, NULL, NULL);
}
