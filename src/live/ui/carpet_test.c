/* SPDX-License-Identifier: Apache-2.0 */
#include "live/ui/carpet.h"

#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

#define WORLD_MAX 200u

static struct carpet carpet;
static struct wire_state states[WORLD_MAX];
static int64_t now_ns;

static int start(void **state)
{
	(void)state;
	memset(&carpet, 0, sizeof(carpet));
	memset(states, 0, sizeof(states));
	now_ns = 5 * NSEC_PER_SEC;
	return 0;
}

static void make_world(size_t cnt)
{
	for (size_t i = 0; i < cnt; i++)
		states[i] = (struct wire_state){ .rank = (int32_t)i,
						 .world_size = (int32_t)cnt,
						 .phase = PHASE_STEADY,
						 .step = 10,
						 .iteration_ns = NSEC_PER_SEC / 10 };
}

/* One second of the job; ranks but for still move. */
static void go(size_t cnt, size_t still)
{
	carpet_note(&carpet, states, cnt, now_ns, 1000 * NSEC_PER_SEC + now_ns);
	now_ns += NSEC_PER_SEC;
	for (size_t i = 0; i < cnt; i++)
		states[i].step += i != still ? 10 : 0;
}

static enum carpet_cell last_of(size_t row)
{
	return (enum carpet_cell)carpet.rows[row].cells[carpet.column_cnt - 1];
}

static void nothing_is_shown_before_the_size_of_the_job_is_known(void **state)
{
	(void)state;
	make_world(2);
	states[0].world_size = states[1].world_size = 0;
	go(2, WORLD_MAX);
	assert_int_equal(carpet.column_cnt, 0);
}

static void healthy_ranks_stay_so_at_any_moment_of_their_report(void **state)
{
	(void)state;
	make_world(4);
	for (size_t i = 0; i < 30; i++) {
		go(4, WORLD_MAX);
		states[i % 4].step -= 5; /* its host reported half a second ago */
		for (size_t row = 0; row < 4; row++)
			assert_int_equal(last_of(row), CARPET_WATCHING);
		states[i % 4].step += 5;
	}
}

static void a_rank_that_stands_still_is_behind_then_silent(void **state)
{
	(void)state;
	make_world(4);
	for (int i = 0; i < 3; i++)
		go(4, WORLD_MAX);
	go(4, 2);
	go(4, 2);
	assert_int_equal(last_of(2), CARPET_WATCHING); /* ten steps are a second */
	go(4, 2);
	assert_int_equal(last_of(2), CARPET_BEHIND);
	for (int i = 0; i < 4; i++)
		go(4, 2);
	assert_int_equal(last_of(2), CARPET_SILENT);
	assert_int_equal(last_of(1), CARPET_WATCHING);
}

static void a_long_iteration_is_not_silence(void **state)
{
	(void)state;
	make_world(2);
	states[0].iteration_ns = states[1].iteration_ns = 30 * NSEC_PER_SEC;
	for (int i = 0; i < 60; i++) {
		carpet_note(&carpet, states, 2, now_ns, now_ns);
		now_ns += NSEC_PER_SEC;
		states[0].step = states[1].step = 10 + (uint64_t)i / 30;
		assert_int_equal(last_of(0), CARPET_WATCHING);
	}
}

static void ranks_that_ended_or_are_off_are_not_silent(void **state)
{
	(void)state;
	make_world(2);
	states[0].phase = PHASE_GONE;
	states[1].phase = PHASE_SILENT;
	for (int i = 0; i < 20; i++) {
		carpet_note(&carpet, states, 2, now_ns, now_ns);
		now_ns += NSEC_PER_SEC;
	}
	assert_int_equal(last_of(0), CARPET_ENDED);
	assert_int_equal(last_of(1), CARPET_OFF);
}

static void columns_are_merged_and_the_worst_state_stays(void **state)
{
	(void)state;
	make_world(1);
	for (size_t i = 0; i < 1000; i++) {
		states[0].phase = i == 137 ? PHASE_BLOCKED : PHASE_STEADY;
		go(1, WORLD_MAX);
		assert_true(carpet.column_cnt <= CARPET_COLUMNS_MAX);
	}
	assert_true((int64_t)carpet.column_cnt * carpet.column_ns >= 1000 * NSEC_PER_SEC);
	assert_int_equal(carpet.rows[0].cells[137 * NSEC_PER_SEC / carpet.column_ns],
			 CARPET_BLOCKED);
}

static void a_pause_of_the_hub_leaves_columns_unknown(void **state)
{
	(void)state;
	make_world(1);
	go(1, WORLD_MAX);
	now_ns += 3 * NSEC_PER_SEC;
	states[0].step += 30;
	go(1, WORLD_MAX);
	assert_int_equal(carpet.column_cnt, 5);
	assert_int_equal(carpet.rows[0].cells[2], CARPET_UNKNOWN);
	assert_int_equal(last_of(0), CARPET_WATCHING);
}

static void rows_of_a_large_job_have_all_ranks_once(void **state)
{
	(void)state;
	for (size_t world = 1; world <= WORLD_MAX; world++) {
		int32_t first, last, next = 0;

		memset(&carpet, 0, sizeof(carpet));
		make_world(world);
		states[world - 1].phase = PHASE_SLOW;
		go(world, WORLD_MAX);
		assert_int_equal(carpet.row_cnt, MIN(world, (size_t)CARPET_ROWS_MAX));
		for (size_t row = 0; row < carpet.row_cnt; row++) {
			carpet_ranks(&carpet, row, &first, &last);
			assert_int_equal(first, next);
			assert_true(last >= first);
			next = last + 1;
			assert_int_equal(last_of(row), last == (int32_t)world - 1
							       ? CARPET_SLOW
							       : CARPET_WATCHING);
		}
		assert_int_equal(next, world);
	}
}

static void a_job_of_another_size_begins_anew(void **state)
{
	(void)state;
	make_world(4);
	go(4, WORLD_MAX);
	go(4, WORLD_MAX);
	make_world(2);
	go(2, WORLD_MAX);
	assert_int_equal(carpet.column_cnt, 1);
	assert_int_equal(carpet.row_cnt, 2);
	states[0].rank = -1;
	states[1].rank = 7; /* of another numbering */
	go(2, WORLD_MAX);
	assert_int_equal(last_of(0), CARPET_UNKNOWN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(nothing_is_shown_before_the_size_of_the_job_is_known, start),
		cmocka_unit_test_setup(healthy_ranks_stay_so_at_any_moment_of_their_report, start),
		cmocka_unit_test_setup(a_rank_that_stands_still_is_behind_then_silent, start),
		cmocka_unit_test_setup(a_long_iteration_is_not_silence, start),
		cmocka_unit_test_setup(ranks_that_ended_or_are_off_are_not_silent, start),
		cmocka_unit_test_setup(columns_are_merged_and_the_worst_state_stays, start),
		cmocka_unit_test_setup(a_pause_of_the_hub_leaves_columns_unknown, start),
		cmocka_unit_test_setup(rows_of_a_large_job_have_all_ranks_once, start),
		cmocka_unit_test_setup(a_job_of_another_size_begins_anew, start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
