/* SPDX-License-Identifier: Apache-2.0 */
/* The small words of event.h and finding.h: names that leave the program never change. */
#include "format/event.h"

#include "format/finding.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

static void names_of_the_json_contract_stay(void **state)
{
	static const char *const classes[CLASS_CNT] = { "idle", "host", "comm", "memory",
							"compute" };

	(void)state;
	for (int i = 0; i < CLASS_CNT; i++)
		assert_string_equal(event_class_name((enum event_class)i), classes[i]);
	assert_string_equal(verdict_name(VERDICT_HEALTHY), "healthy");
	assert_string_equal(verdict_name(VERDICT_ABNORMAL), "abnormal");
	assert_string_equal(verdict_name(VERDICT_INCONCLUSIVE), "inconclusive");
	assert_string_equal(confidence_name(CONFIDENCE_LOW), "low");
	assert_string_equal(confidence_name(CONFIDENCE_MEDIUM), "medium");
	assert_string_equal(confidence_name(CONFIDENCE_HIGH), "high");
}

static void every_kind_and_resource_has_its_own_name(void **state)
{
	(void)state;
	for (int i = 0; i < KIND_CNT; i++) {
		assert_string_not_equal(event_kind_name((enum event_kind)i), "unknown");
		for (int j = 0; j < i; j++)
			assert_string_not_equal(event_kind_name((enum event_kind)i),
						event_kind_name((enum event_kind)j));
	}
	for (int i = 0; i < RESOURCE_CNT; i++) {
		for (int j = 0; j < i; j++)
			assert_string_not_equal(resource_name((enum resource)i),
						resource_name((enum resource)j));
	}
}

/* Values come from files: one out of range must not read past the table. */
static void values_out_of_range_are_unknown(void **state)
{
	(void)state;
	assert_string_equal(event_class_name((enum event_class)CLASS_CNT), "unknown");
	assert_string_equal(event_class_name((enum event_class) - 1), "unknown");
	assert_string_equal(event_kind_name((enum event_kind)255), "unknown");
	assert_string_equal(resource_name((enum resource)255), "unknown");
	assert_string_equal(verdict_name((enum verdict)9), "unknown");
	assert_string_equal(confidence_name((enum confidence)9), "unknown");
}

static void arguments_are_found_by_their_shifted_index(void **state)
{
	struct event_args args[2] = { { .bytes = 1 }, { .bytes = 2 } };
	struct trace trace = { .args = args, .args_cnt = 2 };

	(void)state;
	assert_null(event_args_borrow(&trace, &(struct event){ .args = 0 }));
	assert_ptr_equal(event_args_borrow(&trace, &(struct event){ .args = 1 }), &args[0]);
	assert_ptr_equal(event_args_borrow(&trace, &(struct event){ .args = 2 }), &args[1]);
	assert_null(event_args_borrow(&trace, &(struct event){ .args = 3 }));
}

static void a_new_trace_is_empty_and_a_zeroed_one_can_be_freed(void **state)
{
	struct trace trace;

	(void)state;
	assert_int_equal(trace_init(&trace), 0);
	assert_int_equal(trace.meta.rank, RANK_UNKNOWN);
	assert_int_equal(trace.meta.world_size, -1);
	assert_string_equal(event_name(&trace, &(struct event){ .name = 0 }), "");
	assert_string_equal(event_name(&trace, &(struct event){ .name = 77 }), "");
	assert_int_equal(event_end_ns(&(struct event){ .start_ns = 5, .dur_ns = 7 }), 12);
	trace_done(&trace);
	trace_done(&trace);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_of_the_json_contract_stay),
		cmocka_unit_test(every_kind_and_resource_has_its_own_name),
		cmocka_unit_test(values_out_of_range_are_unknown),
		cmocka_unit_test(arguments_are_found_by_their_shifted_index),
		cmocka_unit_test(a_new_trace_is_empty_and_a_zeroed_one_can_be_freed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
