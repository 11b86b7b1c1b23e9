/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/gpu/buffers.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

#define CNT 24u
#define BYTES ((size_t)8192)

static struct buffers buffers;

static int open_pool(_unused_ void **state)
{
	buffers = (struct buffers){ 0 };
	return buffers_open(&buffers, CNT, BYTES);
}

static int close_pool(_unused_ void **state)
{
	return munmap(buffers.memory, CNT * BYTES);
}

static void full_buffers_come_in_the_order_in_which_they_were_filled(_unused_ void **state)
{
	uint8_t *a = buffers_take(&buffers), *b = buffers_take(&buffers);
	size_t valid = 0;

	assert_null(buffers_next(&buffers, &valid));
	assert_true(buffers_fill(&buffers, b, 8));
	assert_true(buffers_fill(&buffers, a, 16));
	assert_ptr_equal(buffers_next(&buffers, &valid), b);
	assert_int_equal(valid, 8);
	assert_ptr_equal(buffers_next(&buffers, &valid), b); /* until it is released */
	buffers_release(&buffers, b);
	assert_ptr_equal(buffers_next(&buffers, &valid), a);
	buffers_release(&buffers, a);
	assert_null(buffers_next(&buffers, &valid));
}

static void there_are_so_many_and_no_more(_unused_ void **state)
{
	uint8_t *taken[CNT];

	for (size_t i = 0; i < CNT; i++) {
		taken[i] = buffers_take(&buffers);
		assert_non_null(taken[i]);
		assert_int_equal((uintptr_t)taken[i] % 8, 0);
		for (size_t j = 0; j < i; j++)
			assert_ptr_not_equal(taken[i], taken[j]);
	}
	assert_null(buffers_take(&buffers));
	assert_true(buffers_fill(&buffers, taken[3], 0));
	assert_null(buffers_take(&buffers)); /* it is not read yet */
	buffers_release(&buffers, taken[3]);
	assert_ptr_equal(buffers_take(&buffers), taken[3]);
}

static void a_released_buffer_is_zeroed(_unused_ void **state)
{
	uint8_t *a = buffers_take(&buffers);

	memset(a, 0xff, 4096);
	assert_true(buffers_fill(&buffers, a, 4096));
	buffers_release(&buffers, a);
	for (size_t i = 0; i < 4096; i++)
		assert_int_equal(a[i], 0);
}

static void buffers_that_are_begun_and_not_filled_are_counted(_unused_ void **state)
{
	uint8_t *a = buffers_take(&buffers), *b = buffers_take(&buffers);

	assert_int_equal(buffers_begun_cnt(&buffers), 0);
	a[0] = b[0] = 1;
	assert_int_equal(buffers_begun_cnt(&buffers), 2);
	assert_int_equal(buffers_filled_cnt(&buffers), 0);
	assert_true(buffers_fill(&buffers, a, 8));
	assert_int_equal(buffers_begun_cnt(&buffers), 1);
	buffers_release(&buffers, a);
	assert_ptr_equal(buffers_take(&buffers), a);
	assert_int_equal(buffers_begun_cnt(&buffers), 1);
	assert_int_equal(buffers_filled_cnt(&buffers), 1);
}

static void foreign_buffers_are_refused(_unused_ void **state)
{
	uint8_t *a = buffers_take(&buffers), other[8];

	assert_false(buffers_fill(&buffers, other, 8));
	assert_false(buffers_fill(&buffers, NULL, 8));
	assert_false(buffers_fill(&buffers, a + 8, 8));
	assert_false(buffers_fill(&buffers, a + BYTES, 8)); /* not taken */
	assert_true(buffers_fill(&buffers, a, SIZE_MAX));
	assert_false(buffers_fill(&buffers, a, 8)); /* it is full */
}

static void a_length_is_never_more_than_the_buffer(_unused_ void **state)
{
	size_t valid = 0;

	assert_true(buffers_fill(&buffers, buffers_take(&buffers), SIZE_MAX));
	assert_non_null(buffers_next(&buffers, &valid));
	assert_int_equal(valid, BYTES);
}

static void a_discarded_buffer_is_never_read_and_is_reused(_unused_ void **state)
{
	uint8_t *taken[CNT], other[8];
	size_t valid = 0;

	for (size_t i = 0; i < CNT; i++)
		taken[i] = buffers_take(&buffers);
	buffers_discard(&buffers, taken[5]);
	assert_null(buffers_next(&buffers, &valid));
	buffers_discard(&buffers, other);
	assert_ptr_equal(buffers_take(&buffers), taken[5]);
	assert_null(buffers_take(&buffers));
	assert_true(buffers_fill(&buffers, taken[5], 8));
	buffers_discard(&buffers, taken[5]); /* it is full: it is being read */
	assert_ptr_equal(buffers_next(&buffers, &valid), taken[5]);
}

static void nothing_comes_from_a_pool_that_was_never_opened(_unused_ void **state)
{
	static struct buffers closed;
	uint8_t other[8];
	size_t valid = 0;

	assert_null(buffers_take(&closed));
	assert_false(buffers_fill(&closed, other, 8));
	assert_null(buffers_next(&closed, &valid));
	assert_int_equal(buffers_reset(&closed), 0);
}

static void a_reset_takes_back_what_never_came(_unused_ void **state)
{
	uint8_t *a = buffers_take(&buffers);
	size_t valid;

	assert_non_null(buffers_take(&buffers));
	a[0] = 1;
	assert_true(buffers_fill(&buffers, a, 8));
	assert_int_equal(buffers_reset(&buffers), 1);
	assert_null(buffers_next(&buffers, &valid));
	assert_ptr_equal(buffers_take(&buffers), a);
	assert_int_equal(a[0], 0);
}

/* Records are bytes here. */
static size_t read_bytes(void *reader, uint8_t *buffer, size_t valid, void **at, size_t most)
{
	uint64_t *sum = reader;
	uint8_t *next = *at != NULL ? *at : buffer;
	size_t cnt = MIN(most, (size_t)(buffer + valid - next));

	for (size_t i = 0; i < cnt; i++)
		*sum = *sum * 31 + *next++;
	*at = next;
	return cnt;
}

static void records_are_read_in_parts_of_any_size(_unused_ void **state)
{
	static const size_t sizes[] = { 5, 0, 7, 1, 64 };
	uint64_t expected = 0, sum = 0;
	uint8_t byte = 0;
	size_t valid;

	for (size_t most = 1; most < 100; most++) {
		size_t left = 77, got;

		expected = sum = 0;
		for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
			uint8_t *buffer = buffers_take(&buffers);

			for (size_t j = 0; j < sizes[i]; j++) {
				buffer[j] = ++byte;
				expected = expected * 31 + byte;
			}
			assert_true(buffers_fill(&buffers, buffer, sizes[i]));
		}
		while ((got = buffers_drain(&buffers, read_bytes, &sum, most)) > 0) {
			assert_int_equal(got, MIN(most, left));
			left -= got;
		}
		assert_int_equal(left, 0);
		assert_int_equal(sum, expected);
		assert_null(buffers_next(&buffers, &valid));
	}
}

static void a_buffer_that_is_left_is_released(_unused_ void **state)
{
	uint64_t sum = 0;
	size_t valid;

	assert_true(buffers_fill(&buffers, buffers_take(&buffers), 10));
	assert_int_equal(buffers_drain(&buffers, read_bytes, &sum, 3), 3);
	buffers_leave(&buffers);
	buffers_leave(&buffers);
	assert_null(buffers_next(&buffers, &valid));
	assert_int_equal(buffers_drain(&buffers, read_bytes, &sum, 3), 0);
}

#define ROUNDS 2000u

/* Plays the library: takes a buffer, writes its mark at both ends, returns it. */
static void *fill_many(void *arg)
{
	uint64_t mark = (uintptr_t)arg;

	for (size_t i = 0; i < ROUNDS;) {
		uint8_t *buffer = buffers_take(&buffers);
		uint64_t value;

		if (buffer == NULL)
			continue;
		memcpy(&value, buffer, sizeof(value));
		if (value != 0)
			return (void *)1; /* not empty */
		memcpy(buffer, &mark, sizeof(mark));
		memcpy(buffer + 64, &mark, sizeof(mark));
		if (!buffers_fill(&buffers, buffer, 72))
			return (void *)2; /* not taken */
		i++;
	}
	return NULL;
}

static void threads_share_the_pool_without_a_lock(_unused_ void **state)
{
	pthread_t threads[3];
	size_t valid = 0, cnt = 0;
	uint64_t sums[4] = { 0 };

	for (uintptr_t i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, fill_many, (void *)(i + 1)), 0);
	while (cnt < 3 * ROUNDS) {
		uint8_t *buffer = buffers_next(&buffers, &valid);
		uint64_t a, b;

		if (buffer == NULL)
			continue;
		memcpy(&a, buffer, sizeof(a));
		memcpy(&b, buffer + 64, sizeof(b));
		assert_int_equal(a, b);
		assert_in_range(a, 1, 3);
		sums[a]++;
		buffers_release(&buffers, buffer);
		cnt++;
	}
	for (size_t i = 0; i < 3; i++) {
		void *error;

		assert_int_equal(pthread_join(threads[i], &error), 0);
		assert_null(error);
		assert_int_equal(sums[i + 1], ROUNDS);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_pool, close_pool)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(full_buffers_come_in_the_order_in_which_they_were_filled),
		TEST(there_are_so_many_and_no_more),
		TEST(a_released_buffer_is_zeroed),
		TEST(buffers_that_are_begun_and_not_filled_are_counted),
		TEST(foreign_buffers_are_refused),
		TEST(a_length_is_never_more_than_the_buffer),
		TEST(a_discarded_buffer_is_never_read_and_is_reused),
		TEST(nothing_comes_from_a_pool_that_was_never_opened),
		TEST(a_reset_takes_back_what_never_came),
		TEST(records_are_read_in_parts_of_any_size),
		TEST(a_buffer_that_is_left_is_released),
		TEST(threads_share_the_pool_without_a_lock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
