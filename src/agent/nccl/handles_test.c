/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/nccl/handles.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

#define SLOTS 16u
#define ROUNDS 20000
#define THREADS 4

struct fixture {
	struct handle_pool_slot slots[SLOTS];
	struct handle_pool pool;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->pool = (struct handle_pool){ .slots = f->slots, .cnt = SLOTS, .tag = 9 };
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	free(*state);
	return 0;
}

static void a_pool_gives_each_slot_once_and_then_none(void **state)
{
	struct fixture *f = *state;
	uint64_t handles[SLOTS];
	uint32_t seen = 0;

	for (uint32_t i = 0; i < SLOTS; i++) {
		handles[i] = handle_pool_take(&f->pool, 1);
		assert_true(handles[i] != 0);
		seen |= 1u << handle_pool_idx(handles[i]);
	}
	assert_int_equal(seen, (1u << SLOTS) - 1);
	assert_true(handle_pool_take(&f->pool, 1) == 0);
	assert_true(handle_pool_drop(&f->pool, handles[3]));
	assert_true(handle_pool_take(&f->pool, 1) != 0 || handle_pool_take(&f->pool, 1) != 0);
}

/* The last test, since it stays salted. */
static void a_process_that_counts_alike_has_other_handles(void **state)
{
	struct fixture *f = *state;
	uint64_t theirs = handle_pool_take(&f->pool, 1), ours;

	assert_true(handle_pool_drop(&f->pool, theirs));
	handle_pool_salt(0x123456789abcde);
	handle_pool_salt(7); /* too late */
	for (uint32_t i = 0; i < 3 * SLOTS; i++) {
		ours = handle_pool_take(&f->pool, 1);
		assert_true(handle_pool_is_held(&f->pool, ours));
		theirs = (ours & ~(UINT64_MAX >> 4)) | (uint64_t)(i / SLOTS + 1) << 16 |
			 handle_pool_idx(ours);
		assert_false(handle_pool_is_held(&f->pool, theirs));
		assert_false(handle_pool_hold(&f->pool, theirs));
		assert_true(handle_pool_drop(&f->pool, ours));
	}
}

static void a_handle_of_an_older_use_is_known_as_such(void **state)
{
	struct fixture *f = *state;
	uint64_t old = handle_pool_take(&f->pool, 1);

	assert_true(handle_pool_drop(&f->pool, old));
	assert_false(handle_pool_drop(&f->pool, old)); /* it is not held */
	for (uint32_t i = 0; i < SLOTS; i++)
		assert_true(handle_pool_take(&f->pool, 1) != 0);
	assert_false(handle_pool_is_held(&f->pool, old));
	assert_false(handle_pool_hold(&f->pool, old));
	assert_false(handle_pool_drop(&f->pool, old));
}

static void a_released_handle_can_be_held_until_its_slot_is_reused(void **state)
{
	struct fixture *f = *state;
	uint64_t handle = handle_pool_take(&f->pool, 1), other = 0;

	assert_true(handle_pool_drop(&f->pool, handle));
	assert_false(handle_pool_is_held(&f->pool, handle));
	assert_true(handle_pool_hold(&f->pool, handle));
	for (uint32_t i = 0; i < SLOTS; i++) {
		other = handle_pool_take(&f->pool, 1);
		assert_true(other == 0 || handle_pool_idx(other) != handle_pool_idx(handle));
	}
	assert_true(handle_pool_drop(&f->pool, handle));
}

static void handle_pool_that_were_never_given_are_refused(void **state)
{
	struct fixture *f = *state;
	uint64_t handle = handle_pool_take(&f->pool, 1);

	assert_false(handle_pool_hold(&f->pool, 0));
	assert_false(handle_pool_hold(&f->pool, handle ^ UINT64_C(1) << 60)); /* another pool's */
	assert_false(handle_pool_hold(&f->pool, handle + SLOTS));	      /* beyond the slots */
	assert_false(handle_pool_hold(&f->pool, handle + (1u << 16)));	      /* a use to come */
	assert_false(handle_pool_hold(&f->pool, UINT64_MAX));
	assert_true(handle_pool_is_held(&f->pool, handle));
}

static void slots_of_an_owner_are_taken_back(void **state)
{
	struct fixture *f = *state;
	uint64_t gone = handle_pool_take(&f->pool, 1), stays = handle_pool_take(&f->pool, 2);

	handle_pool_reclaim(&f->pool, 1);
	assert_false(handle_pool_is_held(&f->pool, gone));
	assert_false(handle_pool_drop(&f->pool, gone));
	assert_true(handle_pool_is_held(&f->pool, stays));
}

/* What threads count in a slot while they hold it is theirs alone. */
static uint32_t in_use[SLOTS];

static void *take_and_drop(void *arg)
{
	struct fixture *f = arg;
	uintptr_t wrong = 0;

	for (int i = 0; i < ROUNDS; i++) {
		uint64_t handle = handle_pool_take(&f->pool, 1);

		if (handle == 0)
			continue;
		wrong += in_use[handle_pool_idx(handle)]++ != 0;
		in_use[handle_pool_idx(handle)]--;
		wrong += !handle_pool_drop(&f->pool, handle);
	}
	return (void *)wrong;
}

static void no_slot_is_given_to_two_threads(void **state)
{
	pthread_t threads[THREADS];
	void *wrong;

	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, take_and_drop, *state), 0);
	for (int i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(threads[i], &wrong), 0);
		assert_null(wrong);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_pool_gives_each_slot_once_and_then_none),
		TEST(a_handle_of_an_older_use_is_known_as_such),
		TEST(a_released_handle_can_be_held_until_its_slot_is_reused),
		TEST(handle_pool_that_were_never_given_are_refused),
		TEST(slots_of_an_owner_are_taken_back),
		TEST(no_slot_is_given_to_two_threads),
		cmocka_unit_test_setup_teardown(a_process_that_counts_alike_has_other_handles,
						setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
