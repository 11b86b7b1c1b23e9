/* SPDX-License-Identifier: Apache-2.0 */
#include "summarize/usage/gaps.h"

#include "base/test_random.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

#define SPAN 200

static void an_interval_that_crosses_gaps_counts_their_parts(void **state)
{
	gap_list gaps = { 0 };

	(void)state;
	assert_int_equal(gaps_within(&gaps, 0, 100), 0);
	assert_int_equal(gaps_add(&gaps, 10, 20), 0);
	assert_int_equal(gaps_add(&gaps, 50, 55), 0);
	assert_int_equal(gaps_within(&gaps, 0, 100), 15);
	assert_int_equal(gaps_within(&gaps, 15, 52), 7);
	assert_int_equal(gaps_within(&gaps, 20, 50), 0);
	assert_int_equal(gaps_within(&gaps, 52, 15), 0);
	assert_null(gaps_last(&gaps, 9));
	assert_ptr_equal(gaps_last(&gaps, 49), &gaps.data[0]);
	assert_ptr_equal(gaps_last(&gaps, 50), &gaps.data[1]);
	vec_done(&gaps);
}

/* The twin looks at each moment. */
static void idle_time_is_that_of_a_count_of_moments(void **state)
{
	uint64_t rng = 7;

	(void)state;
	for (int round = 0; round < 300; round++) {
		bool idle[SPAN] = { false };
		gap_list gaps = { 0 };
		size_t near = 0;
		int64_t at = 0, start, end, expected = 0;

		while ((at += 1 + test_below(&rng, 30)) < SPAN) {
			int64_t until = MIN(at + 1 + test_below(&rng, 20), SPAN);

			assert_int_equal(gaps_add(&gaps, at, until), 0);
			for (; at < until; at++)
				idle[at] = true;
		}
		start = test_below(&rng, SPAN);
		end = start + test_below(&rng, SPAN - start);
		for (int64_t t = start; t < end; t++)
			expected += idle[t];
		assert_int_equal(gaps_within(&gaps, start, end), expected);
		for (int64_t t = 0; t < SPAN; t += 1 + test_below(&rng, 9))
			assert_int_equal(gaps_within_next(&gaps, &near, t, t + 7),
					 gaps_within(&gaps, t, t + 7));
		vec_done(&gaps);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_interval_that_crosses_gaps_counts_their_parts),
		cmocka_unit_test(idle_time_is_that_of_a_count_of_moments),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
