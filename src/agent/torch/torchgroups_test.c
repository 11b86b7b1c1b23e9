/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/torch/torchgroups.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

static struct torchcomms filled(uint32_t tid)
{
	struct torchcomms about = { .bytes = 8, .seq = -1 };

	torchgroups_fill(tid, &about);
	assert_int_equal(about.bytes, 8);
	return about;
}

static void a_collective_has_the_group_of_its_thread(void **state)
{
	const struct torchgroup pair = { .name = 7, .size = 2, .first_rank = 1, .rank_stride = 2 };
	const struct torchgroup world = { .name = 8, .size = 4, .rank_stride = 1 };

	(void)state;
	torchgroups_add(&world, (const uint32_t[]){ 100, 101 }, 2);
	torchgroups_add(&pair, (const uint32_t[]){ 102 }, 1);
	assert_int_equal(filled(101).group_name, 8);
	assert_int_equal(filled(101).group_size, 4);
	assert_int_equal(filled(102).group_name, 7);
	assert_int_equal(filled(102).first_rank, 1);
	assert_int_equal(filled(102).rank_stride, 2);
	assert_int_equal(filled(99).group_name, 0);
	assert_int_equal(filled(99).group_size, 0);
}

static void a_thread_id_that_is_used_again_is_the_newer_groups(void **state)
{
	const struct torchgroup older = { .name = 8, .size = 4 }, newer = { .name = 9, .size = 3 };

	(void)state;
	torchgroups_add(&older, (const uint32_t[]){ 200, 201 }, 2);
	torchgroups_add(&newer, (const uint32_t[]){ 200 }, 1);
	assert_int_equal(filled(200).group_name, 9);
	assert_int_equal(filled(201).group_name, 8);
}

static void groups_and_threads_beyond_the_limits_stay_unknown(void **state)
{
	static uint32_t many[TORCHGROUPS_THREADS];
	const struct torchgroup group = { .name = 10, .size = 2 };

	(void)state;
	for (uint32_t i = 0; i < TORCHGROUPS_THREADS; i++)
		many[i] = 1000 + i;
	torchgroups_add(&group, many, TORCHGROUPS_THREADS); /* some are taken already */
	assert_int_equal(filled(1000).group_name, 0);
	for (uint32_t i = 0; i < 2 * TORCHGROUPS_MAX; i++)
		torchgroups_add(&group, &many[i], 1);
	assert_int_equal(filled(1000).group_name, 10);
	assert_int_equal(filled(1000 + TORCHGROUPS_MAX).group_name, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_collective_has_the_group_of_its_thread),
		cmocka_unit_test(a_thread_id_that_is_used_again_is_the_newer_groups),
		cmocka_unit_test(groups_and_threads_beyond_the_limits_stay_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
