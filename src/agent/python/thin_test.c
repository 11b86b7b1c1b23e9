/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/python/thin.h"

#include "format/shared/recorder.h"

#include <setjmp.h>
#include <stdarg.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

#define T0 (1000 * NSEC_PER_SEC)

/* cnt calls of duration_ns each, back to back. Returns how many are kept. */
static size_t call_often(struct thin *thin, int64_t *now_ns, size_t cnt, int64_t duration_ns)
{
	size_t kept = 0;

	for (size_t i = 0; i < cnt; i++) {
		*now_ns += duration_ns;
		kept += thin_keep(thin, *now_ns, duration_ns);
	}
	return kept;
}

static void a_burst_is_kept_whole(_unused_ void **state)
{
	struct thin thin = { 0 };
	int64_t now_ns = T0;

	for (int i = 0; i < 3; i++) {
		assert_int_equal(call_often(&thin, &now_ns, THIN_FREE_CNT, 40), THIN_FREE_CNT);
		now_ns += THIN_FREE_CNT * THIN_COST_NS;
	}
}

static void a_rate_that_can_be_paid_is_kept_for_ever(_unused_ void **state)
{
	struct thin thin = { 0 };
	int64_t now_ns = T0;

	assert_int_equal(call_often(&thin, &now_ns, 1000000, THIN_COST_NS), 1000000);
}

/* A reader that comes when half of the ring is written has lost nothing. */
static void no_burst_fills_the_ring(_unused_ void **state)
{
	for (int64_t duration_ns = 1; duration_ns < THIN_COST_NS; duration_ns *= 2) {
		struct thin thin = { 0 };
		int64_t now_ns = T0;

		assert_true(call_often(&thin, &now_ns, 200000, duration_ns) <
			    FLIGHT_WINDOW_RECORD_CNT / 2 +
				    200000 * (size_t)duration_ns / THIN_COST_NS);
	}
}

/* 300,000 calls a second: a call of a millisecond contains the others, which take 2 us each. */
static void long_calls_survive_the_short_ones(_unused_ void **state)
{
	size_t kept = 0, kept_long = 0;
	struct thin thin = { 0 };
	int64_t now_ns = T0;

	for (int i = 0; i < 20000; i++) {
		kept += call_often(&thin, &now_ns, 300, 2000);
		now_ns += 400000;
		kept_long += thin_keep(&thin, now_ns, NSEC_PER_MSEC);
	}
	assert_int_equal(kept_long, 20000);
	assert_in_range(kept, 1800000,
			2100000); /* 20 s at 100,000 a second, beside the long ones */
}

static void the_shortest_call_grows_with_what_is_owed(_unused_ void **state)
{
	int64_t last = 0;

	for (int64_t owed = 0; owed < 100 * THIN_STEP_CNT; owed++) {
		int64_t least = thin_least_ns(owed);

		assert_true(least == last || least == MAX(2 * last, (int64_t)THIN_LEAST_NS));
		last = least;
	}
	assert_int_equal(last, (int64_t)THIN_LEAST_NS << THIN_DOUBLINGS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_burst_is_kept_whole),
		cmocka_unit_test(a_rate_that_can_be_paid_is_kept_for_ever),
		cmocka_unit_test(no_burst_fills_the_ring),
		cmocka_unit_test(long_calls_survive_the_short_ones),
		cmocka_unit_test(the_shortest_call_grows_with_what_is_owed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
