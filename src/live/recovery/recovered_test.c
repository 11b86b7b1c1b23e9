/* SPDX-License-Identifier: Apache-2.0 */
#include "live/recovery/recovered.h"

#include "host/process/test_tree.h"

#define SECOND NSEC_PER_SEC

static struct wire_result result(uint64_t epoch, int rank, uint32_t outcome, const char *text)
{
	struct wire_result ret = { .epoch = epoch,
				   .order_id = 3,
				   .rank = rank,
				   .outcome = outcome,
				   .window = { .kind = "slowdown", .workers = 3 } };

	(void)snprintf(ret.text, sizeof(ret.text), "%s", text);
	return ret;
}

static void add(struct recovered *r, struct wire_result what, int64_t now_ns)
{
	assert_int_equal(recovered_add(r, &what, now_ns), 0);
}

static void test_a_window_is_due_when_all_of_its_ranks_have_come(void **state)
{
	struct recovered r = { 0 };
	struct recovered_window *window;

	(void)state;
	add(&r, result(7, 0, OUTCOME_SUMMARIZED, "/0"), SECOND);
	add(&r, result(7, 1, OUTCOME_MISSED, "why"), SECOND);
	add(&r, result(8, 2, OUTCOME_SUMMARIZED, "of another hub"), SECOND);
	add(&r, result(7, 0, OUTCOME_SUMMARIZED, "again"), SECOND);
	assert_null(recovered_due(&r, false, 2 * SECOND));
	add(&r, result(7, 2, OUTCOME_SUMMARIZED, "/2"), SECOND);
	assert_null(recovered_due(&r, false, 2 * SECOND));
	window = recovered_due(&r, false, SECOND + RECOVERED_GRACE_NS);
	assert_non_null(window);
	assert_int_equal(window->epoch, 7);
	assert_int_equal(window->results.cnt, 3);
	assert_string_equal(window->results.data[0].text, "/0"); /* the first counts */
	assert_false(window->results.data[1].ready);
	recovered_drop(&r, window);
	assert_null(recovered_due(&r, false, 2 * SECOND));
	recovered_done(&r);
}

static void test_a_fingerprint_that_comes_after_a_miss_of_its_rank_counts(void **state)
{
	struct recovered r = { 0 };

	(void)state;
	add(&r, result(7, 1, OUTCOME_MISSED, "no room"), SECOND);
	add(&r, result(7, 1, OUTCOME_SUMMARIZED, "/1"), SECOND);
	assert_true(r.windows.data[0].results.data[0].ready);
	assert_string_equal(r.windows.data[0].results.data[0].text, "/1");
	recovered_done(&r);
}

static void test_a_window_without_all_ranks_is_due_when_no_more_come(void **state)
{
	struct recovered r = { 0 };

	(void)state;
	add(&r, result(7, 0, OUTCOME_SUMMARIZED, "/0"), SECOND);
	add(&r, result(7, 1, OUTCOME_SUMMARIZED, "/1"), 31 * SECOND);
	assert_null(recovered_due(&r, false, 31 * SECOND + RECOVERED_WAIT_NS - 1));
	assert_non_null(recovered_due(&r, true, 31 * SECOND));
	assert_non_null(recovered_due(&r, false, 31 * SECOND + RECOVERED_WAIT_NS));
	recovered_done(&r);
}

static void test_windows_of_no_kind_and_too_many_are_counted(void **state)
{
	struct wire_result what = result(7, 0, OUTCOME_SUMMARIZED, "/0");
	struct recovered r = { 0 };

	(void)state;
	(void)snprintf(what.window.kind, sizeof(what.window.kind), "other");
	assert_true(recovered_add(&r, &what, SECOND) < 0);
	for (uint64_t epoch = 1; epoch <= RECOVERED_WINDOWS_MAX; epoch++)
		add(&r, result(epoch, 0, OUTCOME_SUMMARIZED, "/0"), SECOND);
	what = result(RECOVERED_WINDOWS_MAX + 1, 0, OUTCOME_SUMMARIZED, "/0");
	assert_true(recovered_add(&r, &what, SECOND) < 0);
	assert_int_equal(r.refused, 2);
	recovered_done(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_window_is_due_when_all_of_its_ranks_have_come),
		cmocka_unit_test(test_a_fingerprint_that_comes_after_a_miss_of_its_rank_counts),
		cmocka_unit_test(test_a_window_without_all_ranks_is_due_when_no_more_come),
		cmocka_unit_test(test_windows_of_no_kind_and_too_many_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
