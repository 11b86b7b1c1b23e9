/* SPDX-License-Identifier: Apache-2.0 */
#include "live/overhead/costtext.h"

#include "format/shared/block.h"
#include "format/shared/message.h"
#include "report/costphrase.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

static const struct wire_overhead measured = {
	.effect = { .frac = 0.0011, .low_frac = -0.0005, .high_frac = 0.00755, .pair_cnt = 1240 },
	.always = { .frac = 0.001, .low_frac = -0.0006, .high_frac = 0.007, .pair_cnt = 1240 },
	.window = { .frac = 0.061, .low_frac = 0.052, .high_frac = 0.07, .pair_cnt = 24 },
	.audits = { .cnt = 9,
		    .total_ns = 130 * NSEC_PER_SEC,
		    .job_ns = 3600 * NSEC_PER_SEC,
		    .cost_frac = 0.0001 },
	.backoff = BACKOFF_OPERATORS,
};
static const struct own_cpu own = {
	.cpu_ns = { [OWN_THREAD_SAMPLER] = 8640 * NSEC_PER_MSEC,
		    [OWN_THREAD_DAEMON] = 5040 * NSEC_PER_MSEC },
	.rank_ns = 7200 * NSEC_PER_SEC,
};

static void expect_phrase(const struct report_overhead *overhead, const char *expected)
{
	struct str phrase = { 0 };

	phrase_overhead(&phrase, overhead);
	assert_string_equal(str_borrow(&phrase), expected);
	str_done(&phrase);
}

static void test_status_gets_the_sentence_of_the_report(_unused_ void **state)
{
	struct report_overhead overhead, got;
	struct str text = { 0 }, threads = { 0 };

	costtext_of(&measured, &own, false, &overhead);
	costtext_write(&overhead, &text);
	assert_true(text.len < MESSAGE_TEXT);
	costtext_read(str_borrow(&text), &got);
	expect_phrase(&got, "0.19 % of a core per rank (exact); effect on iteration time not "
			    "measurable (< 0.76 %, 95 % sure, from 1,240 pairs); in a window "
			    "+6.1 % (5.2 to 7, 95 % sure, from 24 pairs); 9 audits included "
			    "(130 s of 3600 s); not recorded because of their overhead: operators");
	phrase_threads(&threads, &got.own);
	assert_string_equal(str_borrow(&threads), "sampler 1.20, daemon 0.70 ms/s per rank");
	str_done(&threads);
	str_done(&text);
}

static void test_the_longest_text_fits_into_a_message(_unused_ void **state)
{
	const struct wire_cost wide = { -9.87654321, -9.87654321, -9.87654321, 2048, 0 };
	struct wire_overhead all = {
		.effect = wide, .always = wide, .window = wide, .backoff = 15
	};
	struct own_cpu busy = { .rank_ns = INT64_MAX / 1000 };
	struct report_overhead overhead;
	struct str text = { 0 };

	all.audits =
		(struct wire_audits){ UINT32_MAX, 0, INT64_MAX / 1000, INT64_MAX / 1000, 9, 9 };
	for (size_t i = 0; i < OWN_THREAD_CNT; i++)
		busy.cpu_ns[i] = INT64_MAX / 1000;
	costtext_of(&all, &busy, false, &overhead);
	costtext_write(&overhead, &text);
	assert_true(text.len < MESSAGE_TEXT);
	str_done(&text);
}

static void test_what_is_unknown_is_not_told_as_zero(_unused_ void **state)
{
	const struct wire_overhead nothing = { 0 };
	const struct own_cpu none = { 0 };
	struct report_overhead overhead;
	struct str text = { 0 };

	costtext_of(&nothing, &none, false, &overhead);
	costtext_write(&overhead, &text);
	assert_string_equal(str_borrow(&text), "left_out=0");
	costtext_read(str_borrow(&text), &overhead);
	expect_phrase(&overhead, "not measured yet");
	costtext_of(&nothing, &own, false, &overhead);
	expect_phrase(&overhead, "0.19 % of a core per rank (exact)");
	costtext_of(&nothing, &own, true, &overhead);
	expect_phrase(&overhead,
		      "0.19 % of a core per rank (exact); in a window unknown (torch.profiler)");
	str_done(&text);
}

/* Collectors do not speed a job up: an interval below 0 is chance, its width the resolution. */
static void test_no_cost_is_negative(_unused_ void **state)
{
	const struct wire_overhead fast = {
		.effect = { -0.02, -0.03, -0.01, 10, 0 },
	};
	const struct own_cpu none = { 0 };
	struct report_overhead overhead;

	costtext_of(&fast, &none, false, &overhead);
	expect_phrase(&overhead, "effect on iteration time not measurable (< 1 %, 95 % sure, from "
				 "10 pairs)");
}

static void test_large_costs_have_no_exponent(_unused_ void **state)
{
	const struct wire_overhead slow = {
		.effect = { 1.25, 0.12, 2.5, 8, 0 },
	};
	const struct wire_overhead noisy = {
		.effect = { 0.1, -0.9, 1.234, 8, 0 },
	};
	const struct own_cpu none = { 0 };
	struct report_overhead overhead;

	costtext_of(&slow, &none, false, &overhead);
	expect_phrase(&overhead,
		      "effect on iteration time +125 % (12 to 250, 95 % sure, from 8 pairs)");
	costtext_of(&noisy, &none, false, &overhead);
	expect_phrase(&overhead,
		      "effect on iteration time not measurable (< 130 %, 95 % sure, from "
		      "8 pairs)");
}

static void test_any_text_is_harmless(_unused_ void **state)
{
	static const char *const texts[] = {
		"",
		"effect",
		"effect=",
		"effect=1,2,3",
		"effect=nan,1,2,3",
		"effect=1,2,3,-4",
		"audits=1e99,1,1,1",
		"own=1,2",
		"own=-1,1,1,1,1,1,1,1,1",
		"left_out=99",
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct report_overhead overhead;

		costtext_read(texts[i], &overhead);
		expect_phrase(&overhead, "not measured yet");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_status_gets_the_sentence_of_the_report),
		cmocka_unit_test(test_the_longest_text_fits_into_a_message),
		cmocka_unit_test(test_what_is_unknown_is_not_told_as_zero),
		cmocka_unit_test(test_no_cost_is_negative),
		cmocka_unit_test(test_large_costs_have_no_exponent),
		cmocka_unit_test(test_any_text_is_harmless),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
