/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/roofline/ceiling.h"

#include "base/splitmix.h"
#include "base/test_alloc.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

#define PAIRS 10
#define BLOCK 15

/* A rank whose iterations take real_ms and repeated_ms, plus noise of up to noise_ms. */
struct spec {
	double real_ms, repeated_ms, wait_ms, noise_ms;
	size_t pairs;
	uint64_t seed;
};

static struct rooflog rank_of(int rank, int world, const struct spec *spec)
{
	struct rooflog log = { .rank = rank,
			       .world = world,
			       .pid = 100 + rank,
			       .has_loader = true,
			       .workers = 2,
			       .kept_cnt = 8,
			       .warm = 13,
			       .skip = 3,
			       .block = BLOCK,
			       .pairs = spec->pairs,
			       .done = true,
			       .length = 100 };
	uint64_t seed = spec->seed;

	for (size_t i = 0; i < 2 * spec->pairs; i++) {
		const bool repeated = i % 4 == 1 || i % 4 == 2;
		const double ms = (repeated ? spec->repeated_ms : spec->real_ms) +
				  spec->noise_ms * splitmix_uniform(&seed);

		assert_int_equal(vec_push(&log.blocks,
					  (struct roof_block){
						  .repeated = repeated,
						  .first = 16 + 18 * i,
						  .cnt = BLOCK,
						  .wall_ns = (int64_t)(ms * 1e6 * BLOCK),
						  .wait_ns = repeated ? 0
								      : (int64_t)(spec->wait_ms *
										  1e6 * BLOCK),
						  .elements = 1000 * BLOCK,
					  }),
				 0);
	}
	return log;
}

static struct ceiling ceiling_of(const struct rooflog *logs, size_t cnt)
{
	struct ceiling ret;

	assert_int_equal(ceiling_find(logs, cnt, &ret), 0);
	return ret;
}

static void ceiling_is_the_difference_of_real_and_repeated_iterations(void **state)
{
	const struct spec spec = { 174, 120, 54, 0, PAIRS, 1 };
	struct rooflog log = rank_of(0, 1, &spec);
	struct ceiling c = ceiling_of(&log, 1);

	(void)state;
	assert_int_equal(c.verdict, CEILING_COST);
	assert_float_equal(c.cost_ns, 54e6, 1);
	assert_float_equal(c.real_ns, 174e6, 1);
	assert_float_equal(c.repeated_ns, 120e6, 1);
	assert_float_equal(c.ranks[0].wait_ns, 54e6, 1);
	assert_int_equal(c.iterations, PAIRS * BLOCK);
	ceiling_done(&c);
	rooflog_done(&log);
}

static void ceiling_finds_no_cost_in_noise(void **state)
{
	size_t claims = 0;

	(void)state;
	for (uint64_t seed = 0; seed < 1000; seed++) {
		const struct spec spec = { 100, 100, 0, 30, PAIRS, seed };
		struct rooflog log = rank_of(0, 1, &spec);
		struct ceiling c = ceiling_of(&log, 1);

		assert_true(c.low_ns <= c.cost_ns && c.cost_ns <= c.high_ns);
		claims += c.verdict == CEILING_COST || c.verdict == CEILING_SLOWER;
		ceiling_done(&c);
		rooflog_done(&log);
	}
	/* 2.1 % are expected for ten pairs; five standard deviations more are 4.4 %. */
	assert_in_range(claims, 5, 44);
}

static void ceiling_denies_no_cost_that_noise_may_hide(void **state)
{
	const struct spec loud = { 100, 100, 0, 60, PAIRS, 3 },
			  quiet = { 100, 100, 0, 2, PAIRS, 3 };
	struct rooflog logs[2] = { rank_of(0, 1, &loud), rank_of(0, 1, &quiet) };
	struct ceiling c = ceiling_of(&logs[0], 1);

	(void)state;
	assert_int_equal(c.verdict, CEILING_UNCLEAR);
	ceiling_done(&c);
	c = ceiling_of(&logs[1], 1);
	assert_int_equal(c.verdict, CEILING_NONE);
	ceiling_done(&c);
	rooflog_done(&logs[0]);
	rooflog_done(&logs[1]);
}

static void ceiling_survives_one_block_with_a_checkpoint(void **state)
{
	const struct spec spec = { 101, 100, 1, 0.1, PAIRS, 5 };
	struct rooflog log = rank_of(0, 1, &spec);
	struct ceiling c;

	(void)state;
	log.blocks.data[1].wall_ns += 60 * NSEC_PER_SEC; /* repeated */
	c = ceiling_of(&log, 1);
	assert_int_equal(c.verdict, CEILING_COST);
	assert_float_equal(c.cost_ns, 1e6, 0.1e6);
	ceiling_done(&c);
	rooflog_done(&log);
}

static void ceiling_of_a_job_is_that_of_its_slowest_rank(void **state)
{
	const struct spec fast = { 150, 100, 1, 0, PAIRS, 1 }, slow = { 151, 100, 48, 0, PAIRS, 1 };
	struct rooflog logs[3] = { rank_of(2, 3, &slow), rank_of(0, 3, &fast),
				   rank_of(1, 3, &fast) };
	struct ceiling c = ceiling_of(logs, 3);

	(void)state;
	assert_int_equal(c.verdict, CEILING_COST);
	assert_float_equal(c.cost_ns, 51e6, 1);
	assert_int_equal(c.ranks[2].log->rank, 2);
	assert_float_equal(c.ranks[2].wait_ns, 48e6, 1);
	assert_float_equal(c.ranks[0].wait_ns, 1e6, 1);
	ceiling_done(&c);
	for (size_t i = 0; i < 3; i++)
		rooflog_done(&logs[i]);
}

static void expect_refused(struct rooflog *logs, size_t cnt, const char *why)
{
	struct ceiling c = ceiling_of(logs, cnt);

	assert_int_equal(c.verdict, CEILING_REFUSED);
	if (strstr(c.why, why) == NULL)
		fail_msg("expected \"%s\" in \"%s\"", why, c.why);
	ceiling_done(&c);
	for (size_t i = 0; i < cnt; i++)
		rooflog_done(&logs[i]);
}

static void ceiling_is_refused_if_one_rank_cannot_repeat(void **state)
{
	const struct spec spec = { 150, 100, 1, 0, PAIRS, 1 };
	struct rooflog logs[2] = { rank_of(0, 2, &spec), rank_of(1, 2, &spec) };

	(void)state;
	(void)snprintf(logs[1].refused, sizeof(logs[1].refused), "an iterator");
	expect_refused(logs, 2, "rank 1: an iterator");
}

static void ceiling_is_refused_without_a_loader(void **state)
{
	struct rooflog log = { .rank = 0, .world = 1 };

	(void)state;
	expect_refused(&log, 1, "reads no batches from a DataLoader");
}

static void ceiling_is_refused_if_ranks_disagree(void **state)
{
	const struct spec spec = { 150, 100, 1, 0, PAIRS, 1 };
	struct rooflog logs[2] = { rank_of(0, 2, &spec), rank_of(1, 2, &spec) };

	(void)state;
	logs[1].blocks.data[7].first++;
	expect_refused(logs, 2, "rank 0 and rank 1 repeated batches at different iterations");
}

static void ceiling_is_refused_if_the_training_ends_too_early(void **state)
{
	const struct spec spec = { 150, 100, 1, 0, CEILING_PAIRS_MIN - 1, 1 };
	struct rooflog log = rank_of(0, 1, &spec);

	(void)state;
	expect_refused(&log, 1,
		       "ended too early: 5 pairs of blocks, and an interval needs 6, which "
		       "are 229 iterations");
}

static void ceiling_is_refused_if_repeated_batches_are_smaller(void **state)
{
	const struct spec spec = { 150, 100, 1, 0, PAIRS, 1 };
	struct rooflog log = rank_of(0, 1, &spec);

	(void)state;
	vec_foreach(block, &log.blocks) {
		if (block->repeated)
			block->elements = block->elements * 9 / 10;
	}
	expect_refused(&log, 1, "have 10 % fewer elements");
}

static void ceiling_minds_no_short_batch_at_the_end_of_an_epoch(void **state)
{
	const struct spec spec = { 150, 100, 1, 0, PAIRS, 1 };
	struct rooflog log = rank_of(0, 1, &spec);
	struct ceiling c;

	(void)state;
	log.blocks.data[0].elements /= 2;
	log.blocks.data[4].elements /= 2;
	c = ceiling_of(&log, 1);
	assert_int_equal(c.verdict, CEILING_COST);
	ceiling_done(&c);
	rooflog_done(&log);
}

static void ceiling_takes_the_latest_process_of_a_rank(void **state)
{
	const struct spec old = { 500, 100, 1, 0, PAIRS, 1 }, new = { 150, 100, 1, 0, PAIRS, 1 };
	struct rooflog logs[2] = { rank_of(0, 1, &old), rank_of(0, 1, &new) };
	struct ceiling c;

	(void)state;
	logs[1].start_ns = 5;
	c = ceiling_of(logs, 2);
	assert_int_equal(c.rank_cnt, 1);
	assert_float_equal(c.cost_ns, 50e6, 1);
	ceiling_done(&c);
	rooflog_done(&logs[0]);
	rooflog_done(&logs[1]);
}

/* The share of all 2^cnt sign patterns with fewer than k on one of the sides. */
static double outside_by_force(size_t cnt, size_t k)
{
	size_t outside = 0;

	for (unsigned long signs = 0; signs < 1ul << cnt; signs++) {
		const size_t up = (size_t)__builtin_popcountl(signs);

		outside += up < k || cnt - up < k;
	}
	return (double)outside / (double)(1ul << cnt);
}

static void ceiling_outside_is_the_largest_that_leaves_95_percent(void **state)
{
	(void)state;
	for (size_t cnt = 1; cnt <= 18; cnt++) {
		const size_t k = ceiling_outside(cnt);

		assert_true(outside_by_force(cnt, k) <= 0.05);
		assert_true(outside_by_force(cnt, k + 1) > 0.05);
	}
	assert_int_equal(ceiling_outside(CEILING_PAIRS_MIN - 1), 0);
	assert_int_equal(ceiling_outside(CEILING_PAIRS_MIN), 1);
	assert_int_equal(ceiling_outside(0), 0);
}

static void ceiling_survives_each_failed_allocation(void **state)
{
	const struct spec spec = { 150, 100, 1, 0, PAIRS, 1 };
	struct rooflog log = rank_of(0, 1, &spec);
	struct ceiling c;
	int error = -ENOMEM;

	(void)state;
	for (int n = 0; error == -ENOMEM; n++) {
		allocations_left = n;
		error = ceiling_find(&log, 1, &c);
		allocations_left = -1;
	}
	assert_int_equal(error, 0);
	ceiling_done(&c);
	rooflog_done(&log);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ceiling_is_the_difference_of_real_and_repeated_iterations),
		cmocka_unit_test(ceiling_finds_no_cost_in_noise),
		cmocka_unit_test(ceiling_denies_no_cost_that_noise_may_hide),
		cmocka_unit_test(ceiling_survives_one_block_with_a_checkpoint),
		cmocka_unit_test(ceiling_of_a_job_is_that_of_its_slowest_rank),
		cmocka_unit_test(ceiling_is_refused_if_one_rank_cannot_repeat),
		cmocka_unit_test(ceiling_is_refused_without_a_loader),
		cmocka_unit_test(ceiling_is_refused_if_ranks_disagree),
		cmocka_unit_test(ceiling_is_refused_if_the_training_ends_too_early),
		cmocka_unit_test(ceiling_is_refused_if_repeated_batches_are_smaller),
		cmocka_unit_test(ceiling_minds_no_short_batch_at_the_end_of_an_epoch),
		cmocka_unit_test(ceiling_takes_the_latest_process_of_a_rank),
		cmocka_unit_test(ceiling_outside_is_the_largest_that_leaves_95_percent),
		cmocka_unit_test(ceiling_survives_each_failed_allocation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
