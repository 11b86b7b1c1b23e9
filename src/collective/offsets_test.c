/* SPDX-License-Identifier: Apache-2.0 */
/* Random clocks, true edges with noise, and edges that are off: all that are off are found. */
#include "collective/offsets.h"

#include "base/test_random.h"
#include "collective/shifts.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

#define WORKERS 12
#define MS ((double)NSEC_PER_MSEC)

static uint64_t rng = 3;

static double some(double from, double to)
{
	return from + test_uniform(&rng) * (to - from);
}

static uint32_t some_worker(void)
{
	return (uint32_t)(test_uniform(&rng) * WORKERS) % WORKERS;
}

static struct offset_edge true_edge(const double *clocks, uint32_t a, uint32_t b, double spread_ns)
{
	return (struct offset_edge){
		.a = a,
		.b = b,
		.ns = clocks[b] - clocks[a] + some(-spread_ns, spread_ns),
		.spread_ns = spread_ns,
	};
}

static void an_edge_that_steadier_ones_contradict_is_found(void **state)
{
	(void)state;
	for (int round = 0; round < 300; round++) {
		double clocks[WORKERS];
		offset_edges edges = { 0 };
		struct offset_edge off;
		struct offsets offsets;

		for (size_t w = 0; w < WORKERS; w++)
			clocks[w] = some(-1e11, 1e11);
		for (uint32_t w = 1; w < WORKERS; w++)
			assert_int_equal(vec_push(&edges, true_edge(clocks, some_worker() % w, w,
								    some(0, 5e3))),
					 0);
		for (int i = 0; i < 20; i++)
			assert_int_equal(
				vec_push(&edges, true_edge(clocks, some_worker(), some_worker(),
							   some(0, 2 * MS))),
				0);
		assert_int_equal(offsets_find(&edges, WORKERS, &offsets), 0);
		vec_foreach(edge, &edges)
			assert_false(offsets_contradict(&offsets, edge));
		for (uint32_t w = 1; w < WORKERS; w++) {
			const double ns = offsets.workers[w].ns - offsets.workers[0].ns;

			assert_int_equal(offsets.workers[w].root, offsets.workers[0].root);
			assert_true(fabs(ns - (clocks[w] - clocks[0])) < WORKERS * 5e3);
		}
		off = true_edge(clocks, 0, 1 + some_worker() % (WORKERS - 1), some(0.2 * MS, MS));
		off.ns += some(5 * MS, 200 * MS) * (round % 2 ? 1 : -1);
		assert_true(offsets_contradict(&offsets, &off));
		off.sure = true;
		assert_false(offsets_contradict(&offsets, &off));
		offsets_done(&offsets);
		vec_done(&edges);
	}
}

static void clocks_that_nothing_compares_contradict_nothing(void **state)
{
	offset_edges edges = { 0 };
	const struct offset_edge edge = { .a = 0, .b = 1, .ns = 1e9, .spread_ns = 1e6 };
	struct offsets offsets;

	(void)state;
	assert_int_equal(offsets_find(&edges, 2, &offsets), 0);
	assert_false(offsets_contradict(&offsets, &edge));
	offsets_done(&offsets);
}

/*
 * Two pairs of workers meet 16 times an iteration within each pair, and all four once: the second
 * pair is ahead by 80 ms until all meet. Nothing says which executions are of which group.
 */
static void groups_of_one_rhythm_are_told_apart(void **state)
{
	enum { ITERATIONS = 6, MEETINGS = 16, EACH = MEETINGS + 1 };
	struct fp_collective all[4][ITERATIONS * EACH];
	struct shift_worker workers[4] = { 0 };
	const int64_t clock[4] = { 0, 50000, 3000000000, 3000070000 };
	shift_groups groups = { 0 };
	uint64_t unmatched = 0;
	struct arena arena;
	size_t sizes[5] = { 0 };

	(void)state;
	for (size_t i = 0; i < (size_t)ITERATIONS * EACH; i++) {
		const size_t k = i % EACH;
		const double begin_ns = (double)(i / EACH) * 300 * MS;

		for (size_t pair = 0; pair < 2; pair++) {
			const double ahead_ns = pair == 1 && k < MEETINGS ? 80 * MS : 0;
			const double noise_ns = k < MEETINGS ? some(0, 0.8 * MS) : 0;
			const double end_ns =
				begin_ns + 100 * MS + (double)k * 10 * MS - ahead_ns + noise_ns;

			for (size_t m = 0; m < 2; m++) {
				const size_t w = 2 * pair + m;
				const int64_t dur_ns = (int64_t)some(0.2 * MS, MS);

				all[w][i] = (struct fp_collective){
					.group = k < MEETINGS ? 5 : 9,
					.seq = -1,
					.start_ns = (int64_t)end_ns + clock[w] - dur_ns,
					.dur_ns = dur_ns,
				};
			}
		}
	}
	for (size_t w = 0; w < 4; w++)
		workers[w] = (struct shift_worker){ .all = all[w], .cnt = ITERATIONS * EACH };
	arena_init(&arena);
	assert_int_equal(shifts_find(workers, 4, &arena, &groups, &unmatched), 0);
	assert_int_equal(unmatched, 0);
	vec_foreach(group, &groups)
		sizes[group->member_cnt]++;
	assert_int_equal(sizes[2], 2);
	assert_int_equal(sizes[4], 1);
	vec_done(&groups);
	arena_done(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_edge_that_steadier_ones_contradict_is_found),
		cmocka_unit_test(clocks_that_nothing_compares_contradict_nothing),
		cmocka_unit_test(groups_of_one_rhythm_are_told_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
