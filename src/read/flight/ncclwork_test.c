/* SPDX-License-Identifier: Apache-2.0 */
/* Records of NCCL's own view become events on tracks of their own. */
#include "read/common/test_events.h"

static void push(struct fixture *x, uint32_t lane, int64_t from_ms, struct ring_record record)
{
	record.time_ns = T0 + from_ms * MS;
	recorder_push(x->f, lane, false, record);
}

static void push_about(struct fixture *x, uint32_t lane, int64_t from_ms, uint64_t seq)
{
	uint32_t group = recorder_string(x->f, "dp 0123");

	push(x, lane, from_ms,
	     (struct ring_record){ .kind = FLIGHT_COLLECTIVE_ARGS, .value = 4096, .extra = seq });
	push(x, lane, from_ms,
	     (struct ring_record){ .kind = FLIGHT_COLLECTIVE_GROUP,
				   .value = (int64_t)8 << 32 | group,
				   .extra = recorder_string(x->f, "all_reduce") });
}

static void push_nccl(struct fixture *x, uint32_t lane, int64_t from_ms, int64_t to_ms,
		      uint64_t seq)
{
	push(x, lane, from_ms,
	     (struct ring_record){ .kind = FLIGHT_COLLECTIVE,
				   .value = (to_ms - from_ms) * MS,
				   .extra = recorder_string(x->f, "ncclAllReduce") });
	push_about(x, lane, from_ms, seq);
	push(x, lane, from_ms, (struct ring_record){ .kind = FLIGHT_COLLECTIVE_HOW });
}

static void push_network(struct fixture *x, uint32_t lane, int64_t from_ms, int64_t to_ms,
			 uint64_t seq)
{
	push(x, lane, from_ms,
	     (struct ring_record){ .kind = FLIGHT_NETWORK,
				   .value = (to_ms - from_ms) * MS,
				   .detail = 4,
				   .extra = recorder_string(x->f, "ncclAllReduce") });
	push_about(x, lane, from_ms, seq);
	push(x, lane, from_ms,
	     (struct ring_record){ .kind = FLIGHT_NETWORK_SEND, .value = flight_us_pair(1, 2) });
	push(x, lane, from_ms, (struct ring_record){ .kind = FLIGHT_NETWORK_RECV });
}

static const char *lane_name(const struct trace *trace, const struct event *event)
{
	return strtab_text(&trace->strings, trace->lanes[event->lane].name);
}

static void a_call_is_on_its_own_lane_with_its_arguments(void **state)
{
	struct fixture *x = *state;
	const struct event *event;
	const struct trace *trace;

	push_nccl(x, x->lane, 10, 20, 17);
	trace = make(x, 100 * MS);
	assert_int_equal(trace->event_cnt, 1);
	assert_event(trace, "ncclAllReduce", 0, 10, 20);
	event = find(trace, "ncclAllReduce", 0);
	assert_int_equal(event->kind, KIND_ANNOTATION);
	assert_int_equal(trace->lanes[event->lane].type, LANE_OTHER);
	assert_string_equal(lane_name(trace, event), "NCCL");
	assert_int_equal(event_args_borrow(trace, event)->bytes, 4096);
	assert_int_equal(event_args_borrow(trace, event)->seq, 17);
	assert_int_equal(event_args_borrow(trace, event)->group_size, 8);
}

static void calls_of_a_group_follow_each_other(void **state)
{
	struct fixture *x = *state;
	uint32_t other = recorder_lane(x->f, 72, "other");
	const struct trace *trace;

	push_nccl(x, x->lane, 10, 30, 1);
	push_nccl(x, x->lane, 15, 31, 2);
	push_nccl(x, x->lane, 20, 32, 3);
	push_nccl(x, other, 12, 40, 1); /* another thread's: as long as it was */
	trace = make(x, 100 * MS);
	assert_int_equal(trace->event_cnt, 4);
	assert_event(trace, "ncclAllReduce", 0, 10, 15);
	assert_event(trace, "ncclAllReduce", 1, 12, 40);
	assert_event(trace, "ncclAllReduce", 2, 15, 20);
	assert_event(trace, "ncclAllReduce", 3, 20, 32);
}

static void the_network_may_work_for_several_at_once(void **state)
{
	struct fixture *x = *state;
	uint32_t proxy = recorder_lane(x->f, 72, "NCCL Progress");
	const struct trace *trace;

	push_nccl(x, x->lane, 5, 6, 1);
	push_network(x, proxy, 10, 30, 1);
	push_network(x, proxy, 15, 40, 2);
	push_network(x, proxy, 200, 210, 3); /* behind the window */
	trace = make(x, 100 * MS);
	assert_int_equal(trace->event_cnt, 3);
	assert_event(trace, "ncclAllReduce", 1, 10, 30);
	assert_event(trace, "ncclAllReduce", 2, 15, 40);
	assert_string_equal(lane_name(trace, find(trace, "ncclAllReduce", 1)), "NCCL, network");
	assert_int_equal(event_args_borrow(trace, find(trace, "ncclAllReduce", 2))->seq, 2);
}

static void a_record_without_its_continuation_has_no_arguments(void **state)
{
	struct fixture *x = *state;
	const struct trace *trace;

	push_network(x, x->lane, 10, 20, 7);
	push(x, x->lane, 30,
	     (struct ring_record){ .kind = FLIGHT_NETWORK,
				   .value = MS,
				   .extra = recorder_string(x->f, "ncclSend") });
	trace = make(x, 100 * MS);
	assert_int_equal(trace->event_cnt, 2);
	assert_int_equal(event_args_borrow(trace, find(trace, "ncclSend", 0))->bytes, -1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_fixture, close_fixture)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_call_is_on_its_own_lane_with_its_arguments),
		TEST(calls_of_a_group_follow_each_other),
		TEST(the_network_may_work_for_several_at_once),
		TEST(a_record_without_its_continuation_has_no_arguments),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
