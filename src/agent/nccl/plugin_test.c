/* SPDX-License-Identifier: Apache-2.0 */
/* What is queued, in all versions of the interface. */
#include "agent/nccl/test_nccl.h"
#include "base/clock.h"

/* --- collectives --- */

static void a_collective_is_recorded_with_all_that_nccl_says(void **state)
{
	void *comm = open_comm(2);
	const struct ring_record *how;

	(void)state;
	end(begin_all_reduce(comm, 41));
	assert_int_equal(record_cnt, 4);
	assert_string_equal(texts[nth(FLIGHT_COLLECTIVE, 0)->extra], "ncclAllReduce");
	assert_int_equal(nth(FLIGHT_COLLECTIVE_ARGS, 0)->value, 4000);
	assert_int_equal(nth(FLIGHT_COLLECTIVE_ARGS, 0)->extra, 41);
	assert_int_equal(nth(FLIGHT_COLLECTIVE_GROUP, 0)->value >> 32, 8);
	assert_string_equal(texts[(uint32_t)nth(FLIGHT_COLLECTIVE_GROUP, 0)->value],
			    "dp 0123456789abcdef");
	assert_string_equal(texts[nth(FLIGHT_COLLECTIVE_GROUP, 0)->extra], "all_reduce");
	how = nth(FLIGHT_COLLECTIVE_HOW, 0);
	assert_string_equal(texts[how->value >> 32], "ncclFloat32");
	assert_string_equal(texts[(uint32_t)how->value], "RING");
	assert_string_equal(texts[how->extra >> 32], "LL128");
	assert_int_equal(how->detail, 16 << 8);
	close_comm(comm);
}

static void a_gather_has_the_bytes_of_all_ranks(void **state)
{
	void *comm = open_comm(1);
	struct nccl_coll_v4 descr = all_reduce(0);

	(void)state;
	descr.func = "AllGather";
	end(begin(comm, &descr));
	assert_int_equal(nth(FLIGHT_COLLECTIVE_ARGS, 0)->value, 8 * 4000);
	descr.datatype = "ncclFloat3";
	end(begin(comm, &descr));
	assert_int_equal(nth(FLIGHT_COLLECTIVE_ARGS, 1)->value, -1);
	descr.datatype = "ncclFloat32";
	descr.cnt = SIZE_MAX;
	end(begin(comm, &descr));
	assert_int_equal(nth(FLIGHT_COLLECTIVE_ARGS, 2)->value, -1);
	close_comm(comm);
}

static void the_call_itself_has_its_begin(void **state)
{
	void *comm = open_comm(1);
	struct nccl_coll_api api = { .head.kind = NCCL_COLL_API };
	struct nccl_coll_v4 descr = all_reduce(0);
	int64_t before_ns = clock_mono_ns(), start_ns;
	void *handle;

	(void)state;
	descr.head.parent = begin(comm, &api);
	wait_us(50);
	end(descr.head.parent);
	start_ns = clock_mono_ns();
	handle = begin(comm, &descr);
	end(handle);
	assert_true(nth(FLIGHT_COLLECTIVE, 0)->time_ns >= before_ns);
	assert_true(nth(FLIGHT_COLLECTIVE, 0)->time_ns < start_ns);
	close_comm(comm);
}

static void a_captured_call_is_marked_and_begins_when_it_is_replayed(void **state)
{
	void *comm = open_comm(1);
	struct nccl_coll_api api = { .head.kind = NCCL_COLL_API, .captured = true };
	struct nccl_coll_v4 descr = all_reduce(0);
	int64_t replay_ns;

	(void)state;
	descr.head.parent = begin(comm, &api);
	wait_us(50);
	replay_ns = clock_mono_ns();
	end(begin(comm, &descr));
	assert_true(nth(FLIGHT_COLLECTIVE, 0)->time_ns >= replay_ns);
	assert_int_equal(nth(FLIGHT_COLLECTIVE_HOW, 0)->detail & 0xff, FLIGHT_HOW_CAPTURED);
	close_comm(comm);
}

static void *begin_p2p(void *comm, void *group, const char *func, int peer)
{
	struct nccl_p2p_v4 descr = { .head.kind = NCCL_P2P,
				     .func = func,
				     .datatype = "ncclInt8",
				     .cnt = 100,
				     .peer = peer,
				     .parent_group = group };

	return begin(comm, &descr);
}

static void sends_and_receives_of_a_group_are_one_record(void **state)
{
	void *comm = open_comm(1), *calls[6];
	struct nccl_descr descr = { .kind = NCCL_GROUP };
	void *group = begin(comm, &descr);

	(void)state;
	for (int i = 0; i < 6; i++)
		calls[i] = begin_p2p(comm, group, i < 4 ? "Send" : "Recv", i);
	for (int i = 0; i < 6; i++)
		end(calls[i]);
	end(group);
	assert_int_equal(record_cnt, 4);
	assert_string_equal(texts[nth(FLIGHT_COLLECTIVE, 0)->extra], "ncclSendRecv");
	assert_int_equal(nth(FLIGHT_COLLECTIVE_ARGS, 0)->value, 400);
	assert_int_equal((uint32_t)nth(FLIGHT_COLLECTIVE_HOW, 0)->extra, 6);
	assert_int_equal(nth(FLIGHT_COLLECTIVE_HOW, 0)->detail & 0xff,
			 FLIGHT_HOW_PEER | FLIGHT_HOW_MANY);
	close_comm(comm);
}

static void one_send_names_its_peer(void **state)
{
	void *comm = open_comm(1);

	(void)state;
	end(begin_p2p(comm, NULL, "Send", 5));
	end(begin_p2p(comm, NULL, "Recv", 6));
	assert_string_equal(texts[nth(FLIGHT_COLLECTIVE, 0)->extra], "ncclSend");
	assert_int_equal((uint32_t)nth(FLIGHT_COLLECTIVE_HOW, 0)->extra, 5);
	assert_int_equal(nth(FLIGHT_COLLECTIVE_HOW, 0)->detail & 0xff, FLIGHT_HOW_PEER);
	assert_string_equal(texts[nth(FLIGHT_COLLECTIVE, 1)->extra], "ncclRecv");
	close_comm(comm);
}

/* --- versions --- */

static void version_1_gives_numbers(void **state)
{
	struct nccl_coll_v1 descr = { .head.kind = NCCL_COLL | 0xab00, /* padding of 8 bits */
				      .comm_hash = HASH,
				      .seq = 7,
				      .func = 4,
				      .cnt = 10,
				      .datatype = 9,
				      .channels = 2,
				      .algorithm = 1,
				      .protocol = 2 };
	void *context = NULL, *handle = NULL;

	(void)state;
	assert_int_equal(ncclProfiler_v1.init(&context, &mask), NCCL_SUCCESS);
	assert_int_equal(ncclProfiler_v1.start(context, &handle, &descr), NCCL_SUCCESS);
	assert_int_equal(ncclProfiler_v1.stop(handle), NCCL_SUCCESS);
	assert_string_equal(texts[nth(FLIGHT_COLLECTIVE, 0)->extra], "ncclAllReduce");
	assert_int_equal(nth(FLIGHT_COLLECTIVE_ARGS, 0)->value, 20);
	assert_string_equal(texts[(uint32_t)nth(FLIGHT_COLLECTIVE_GROUP, 0)->value],
			    "0123456789abcdef");
	assert_string_equal(texts[(uint32_t)nth(FLIGHT_COLLECTIVE_HOW, 0)->value], "RING");
	assert_string_equal(texts[nth(FLIGHT_COLLECTIVE_HOW, 0)->extra >> 32], "SIMPLE");
	descr.func = descr.datatype = descr.algorithm = descr.protocol = 99;
	assert_int_equal(ncclProfiler_v1.start(context, &handle, &descr), NCCL_SUCCESS);
	assert_int_equal(ncclProfiler_v1.stop(handle), NCCL_SUCCESS);
	assert_string_equal(texts[nth(FLIGHT_COLLECTIVE, 1)->extra], "nccl");
	assert_int_equal(ncclProfiler_v1.finalize(context), NCCL_SUCCESS);
}

static void versions_2_to_4_put_the_same_elsewhere(void **state)
{
	struct nccl_coll_v2 two = { .head.kind = NCCL_COLL,
				    .comm_name = "tp",
				    .comm_hash = 0x10,
				    .seq = 1,
				    .func = "Broadcast",
				    .cnt = 3,
				    .root = 6,
				    .datatype = "ncclFloat64",
				    .traffic_bytes = UINT64_MAX,
				    .algorithm = "TREE",
				    .protocol = "LL" };
	struct nccl_coll_v3 three = { .head.kind = NCCL_COLL,
				      .comm_name = "tp",
				      .comm_hash = 0x10,
				      .seq = 1,
				      .func = "Broadcast",
				      .cnt = 3,
				      .root = 6,
				      .datatype = "ncclFloat64",
				      .algorithm = "TREE",
				      .protocol = "LL" };
	struct nccl_coll_v4 four = { .head.kind = NCCL_COLL,
				     .seq = 1,
				     .func = "Broadcast",
				     .cnt = 3,
				     .root = 6,
				     .datatype = "ncclFloat64",
				     .algorithm = "TREE",
				     .protocol = "LL",
				     .parent_group = &four /* not there in version 4 */ };
	void *contexts[3] = { NULL }, *handle = NULL;

	(void)state;
	assert_int_equal(ncclProfiler_v2.init(&contexts[0], &mask), NCCL_SUCCESS);
	assert_int_equal(ncclProfiler_v3.init(&contexts[1], &mask), NCCL_SUCCESS);
	assert_int_equal(ncclProfiler_v4.init(&contexts[2], &mask, "tp", 0x10, 1, 8, 0, NULL),
			 NCCL_SUCCESS);
	assert_int_equal(ncclProfiler_v2.start(contexts[0], &handle, &two), NCCL_SUCCESS);
	assert_int_equal(ncclProfiler_v2.stop(handle), NCCL_SUCCESS);
	assert_int_equal(ncclProfiler_v3.start(contexts[1], &handle, &three), NCCL_SUCCESS);
	assert_int_equal(ncclProfiler_v3.stop(handle), NCCL_SUCCESS);
	assert_int_equal(ncclProfiler_v4.start(contexts[2], &handle, &four), NCCL_SUCCESS);
	assert_int_equal(ncclProfiler_v4.stop(handle), NCCL_SUCCESS);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(nth(FLIGHT_COLLECTIVE_ARGS, i)->value, 24);
		assert_string_equal(texts[(uint32_t)nth(FLIGHT_COLLECTIVE_GROUP, i)->value],
				    "tp 0000000000000010");
		assert_int_equal((uint32_t)nth(FLIGHT_COLLECTIVE_HOW, i)->extra, 6);
		assert_string_equal(texts[(uint32_t)nth(FLIGHT_COLLECTIVE_HOW, i)->value], "TREE");
	}
	assert_int_equal(ncclProfiler_v2.finalize(contexts[0]), NCCL_SUCCESS);
	assert_int_equal(ncclProfiler_v3.finalize(contexts[1]), NCCL_SUCCESS);
	assert_int_equal(ncclProfiler_v4.finalize(contexts[2]), NCCL_SUCCESS);
}

static void events_of_a_later_version_are_let_be(void **state)
{
	void *comm = open_comm(1);
	struct nccl_descr descr = { .kind = UINT64_C(1) << 40 };

	(void)state;
	assert_null(begin(comm, &descr));
	for (unsigned bit = 12; bit < 32; bit++) {
		descr.kind = UINT64_C(1) << bit;
		assert_null(begin(comm, &descr));
	}
	end(NULL);
	assert_int_equal(ncclProfiler_v6.state(NULL, 999, NULL), NCCL_SUCCESS);
	assert_int_equal(record_cnt, 0);
	close_comm(comm);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_collective_is_recorded_with_all_that_nccl_says),
		TEST(a_gather_has_the_bytes_of_all_ranks),
		TEST(the_call_itself_has_its_begin),
		TEST(a_captured_call_is_marked_and_begins_when_it_is_replayed),
		TEST(sends_and_receives_of_a_group_are_one_record),
		TEST(one_send_names_its_peer),
		TEST(version_1_gives_numbers),
		TEST(versions_2_to_4_put_the_same_elsewhere),
		TEST(events_of_a_later_version_are_let_be),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
