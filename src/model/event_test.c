/* SPDX-License-Identifier: Apache-2.0 */
/* Names of event.h and report.h that appear in output: they never change. */
#include "model/event.h"

#include "model/event_promises.h"
#include "model/report.h"

#include <math.h>
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

/* A trace of two events and two samples that keeps all invariants. */
struct kept {
	struct event events[2];
	struct event_args args;
	struct lane lane;
	struct sample samples[2];
	struct track track;
	struct trace trace;
};

static void make_kept(struct kept *k)
{
	*k = (struct kept){
		.events = { { .start_ns = 5, .dur_ns = 9, .parent = EVENT_NONE },
			    { .start_ns = 5, .dur_ns = 9, .args = 1 } },
		.samples = { { 1, 0 }, { 1, 1 } },
		.track = { .resource = RESOURCE_CPU_THREAD, .cnt = 2 },
	};
	assert_int_equal(trace_init(&k->trace), 0);
	k->track.samples = k->samples;
	k->trace.events = k->events;
	k->trace.args = &k->args;
	k->trace.lanes = &k->lane;
	k->trace.tracks = &k->track;
	k->trace.event_cnt = 2;
	k->trace.args_cnt = k->trace.lane_cnt = k->trace.track_cnt = 1;
}

static void free_kept(struct kept *k)
{
	k->trace.events = NULL;
	k->trace.args = NULL;
	k->trace.lanes = NULL;
	k->trace.tracks = NULL;
	k->trace.track_cnt = 0;
	trace_done(&k->trace);
}

/* Running statement on a valid trace k breaks the named invariant. */
#define ASSERT_BREAKS(statement, promise)                                       \
	do {                                                                    \
		struct kept k;                                                  \
                                                                                \
		make_kept(&k);                                                  \
		assert_null(event_promise_broken(&k.trace));                    \
		statement;                                                      \
		assert_non_null(event_promise_broken(&k.trace));                \
		assert_string_equal(event_promise_broken(&k.trace), (promise)); \
		free_kept(&k);                                                  \
	} while (0)

static void each_promise_of_events_can_be_seen_broken(_unused_ void **state)
{
	ASSERT_BREAKS(k.events[0].dur_ns = -1, "negative duration");
	ASSERT_BREAKS(k.events[0].start_ns = INT64_MAX, "end out of range");
	ASSERT_BREAKS(k.events[0].kind = KIND_CNT, "kind out of range, or a byte of the reader");
	ASSERT_BREAKS(k.events[0].scratch = 1, "kind out of range, or a byte of the reader");
	ASSERT_BREAKS(k.events[0].lane = 1, "lane out of range");
	ASSERT_BREAKS(k.events[0].name = 1, "name out of range");
	ASSERT_BREAKS(k.events[0].args = 2, "arguments out of range");
	ASSERT_BREAKS(k.events[0].parent = 2, "parent out of range");
	ASSERT_BREAKS(k.events[0].parent = 1, "ring of parents");
	ASSERT_BREAKS(k.events[1].start_ns = 4, "events out of order");
	ASSERT_BREAKS(k.events[1].dur_ns = 10, "events out of order");
}

static void each_promise_of_samples_can_be_seen_broken(_unused_ void **state)
{
	ASSERT_BREAKS(k.samples[0].value = NAN, "sample is not a number");
	ASSERT_BREAKS(k.samples[1].value = 1.01, "share out of range");
	ASSERT_BREAKS(k.samples[1].value = -0.01, "share out of range");
	ASSERT_BREAKS(k.samples[1].time_ns = 0, "samples out of order");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_of_the_json_contract_stay),
		cmocka_unit_test(every_kind_and_resource_has_its_own_name),
		cmocka_unit_test(values_out_of_range_are_unknown),
		cmocka_unit_test(arguments_are_found_by_their_shifted_index),
		cmocka_unit_test(a_new_trace_is_empty_and_a_zeroed_one_can_be_freed),
		cmocka_unit_test(each_promise_of_events_can_be_seen_broken),
		cmocka_unit_test(each_promise_of_samples_can_be_seen_broken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
