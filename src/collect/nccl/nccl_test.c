/* SPDX-License-Identifier: Apache-2.0 */
/* Calls the tables as NCCL does, and looks at the records that come of it. */
#include "base/clock.h"
#include "collect/nccl/abi.h"
#include "collect/nccl/core.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

#define RECORD_MAX 4096
#define TEXT_MAX 1024
#define HASH UINT64_C(0x0123456789abcdef)

/* --- where the records go --- */

static struct ring_record records[RECORD_MAX];
static size_t record_cnt;
static char texts[TEXT_MAX][80];
static uint32_t text_cnt;
static unsigned drop_cnt;
static pthread_mutex_t sink_lock = PTHREAD_MUTEX_INITIALIZER;

static void keep_record(const struct ring_record *record)
{
	pthread_mutex_lock(&sink_lock);
	records[record_cnt++ % RECORD_MAX] = *record;
	pthread_mutex_unlock(&sink_lock);
}

static uint32_t keep_text(const char *text, size_t len)
{
	uint32_t i;

	pthread_mutex_lock(&sink_lock);
	for (i = 1; i < text_cnt; i++) {
		if (strlen(texts[i]) == len && memcmp(texts[i], text, len) == 0)
			break;
	}
	assert_true(i < TEXT_MAX);
	if (i == text_cnt)
		(void)snprintf(texts[text_cnt++], sizeof(texts[0]), "%.*s", (int)len, text);
	pthread_mutex_unlock(&sink_lock);
	return i;
}

static void count_drop(void)
{
	pthread_mutex_lock(&sink_lock);
	drop_cnt++;
	pthread_mutex_unlock(&sink_lock);
}

static const struct nccl_sink sink = { keep_record, keep_text, count_drop };

static size_t cnt_of(uint16_t kind)
{
	size_t cnt = 0;

	for (size_t i = 0; i < record_cnt; i++)
		cnt += records[i].kind == kind;
	return cnt;
}

/* The n-th record of a kind, from 0. */
static const struct ring_record *nth(uint16_t kind, size_t n)
{
	for (size_t i = 0; i < record_cnt; i++) {
		if (records[i].kind == kind && n-- == 0)
			return &records[i];
	}
	fail_msg("there is no such record of kind %u", kind);
	return NULL;
}

/* --- NCCL's side --- */

static int mask;

static int setup(void **state)
{
	(void)state;
	record_cnt = drop_cnt = 0;
	text_cnt = 1;
	mask = -1;
	nccl_set_sink(&sink);
	nccl_set_level(NCCL_ALWAYS);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	nccl_set_level(NCCL_OFF);
	return 0;
}

static void *open_comm(int node_cnt)
{
	void *context = NULL;

	assert_int_equal(ncclProfiler_v5.init(&context, HASH, &mask, "dp", node_cnt, 8, 3, NULL),
			 NCCL_SUCCESS);
	assert_non_null(context);
	return context;
}

static void close_comm(void *context)
{
	assert_int_equal(ncclProfiler_v5.finalize(context), NCCL_SUCCESS);
}

/* Begins an event of version 5. The handle starts as what NCCL left there. */
static void *begin(void *context, void *descr)
{
	void *handle = (void *)UINTPTR_MAX;

	assert_int_equal(ncclProfiler_v5.start(context, &handle, descr), NCCL_SUCCESS);
	assert_true(handle != (void *)UINTPTR_MAX);
	return handle;
}

static void end(void *handle)
{
	assert_int_equal(ncclProfiler_v5.stop(handle), NCCL_SUCCESS);
}

static struct nccl_coll_v4 all_reduce(uint64_t seq)
{
	return (struct nccl_coll_v4){ .head = { .kind = NCCL_COLL, .rank = 3 },
				      .seq = seq,
				      .func = "AllReduce",
				      .cnt = 1000,
				      .datatype = "ncclFloat32",
				      .channels = 16,
				      .algorithm = "RING",
				      .protocol = "LL128" };
}

static void *begin_all_reduce(void *context, uint64_t seq)
{
	struct nccl_coll_v4 descr = all_reduce(seq);

	return begin(context, &descr);
}

static void *begin_op(void *context, void *parent, bool is_send)
{
	struct nccl_proxy_op descr = { .head = { .kind = NCCL_PROXY_OP, .parent = parent },
				       .pid = getpid(),
				       .is_send = is_send };

	return begin(context, &descr);
}

static void *begin_step(void *context, void *op)
{
	struct nccl_descr descr = { .kind = NCCL_PROXY_STEP, .parent = op };

	return begin(context, &descr);
}

static void set_state(void *step, int to, size_t bytes)
{
	struct nccl_state_args args = { bytes };

	assert_int_equal(ncclProfiler_v5.state(step, to, &args), NCCL_SUCCESS);
}

static void wait_us(long us)
{
	int64_t until_ns = clock_mono_ns() + us * NSEC_PER_USEC;

	while (clock_mono_ns() < until_ns)
		;
}

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

static void what_gathers_has_the_bytes_of_all_ranks(void **state)
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

static void the_call_itself_tells_when_it_began(void **state)
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
	for (unsigned bit = 11; bit < 32; bit++) {
		descr.kind = UINT64_C(1) << bit;
		assert_null(begin(comm, &descr));
	}
	end(NULL);
	assert_int_equal(ncclProfiler_v6.state(NULL, 999, NULL), NCCL_SUCCESS);
	assert_int_equal(record_cnt, 0);
	close_comm(comm);
}

/* --- the network --- */

static void waits_on_the_network_are_told_apart(void **state)
{
	void *comm = open_comm(2), *call = begin_all_reduce(comm, 5), *send, *recv, *step;
	const struct ring_record *record;

	(void)state;
	end(call); /* queued; the network begins later */
	send = begin_op(comm, call, true);
	recv = begin_op(comm, call, false);
	step = begin_step(comm, send);
	set_state(step, NCCL_SEND_GPU_WAIT, 0);
	wait_us(300);
	set_state(step, NCCL_SEND_PEER_WAIT, 0);
	wait_us(100);
	set_state(step, NCCL_SEND_PEER_WAIT, 0);
	wait_us(100);
	set_state(step, NCCL_SEND_WIRE_WAIT, 4096);
	wait_us(100);
	end(step);
	step = begin_step(comm, recv);
	set_state(step, NCCL_RECV_WIRE_WAIT, 0);
	wait_us(400);
	set_state(step, NCCL_RECV_FLUSH_WAIT, 4096);
	wait_us(50);
	set_state(step, NCCL_RECV_GPU_WAIT, 4096);
	wait_us(50);
	end(step);
	end(send);
	assert_int_equal(cnt_of(FLIGHT_NETWORK), 0);
	end(recv);
	record = nth(FLIGHT_NETWORK, 0);
	assert_int_equal(record->detail, 2);
	assert_true(record->value >= 1100 * NSEC_PER_USEC);
	assert_string_equal(texts[record->extra], "ncclAllReduce");
	assert_int_equal(nth(FLIGHT_COLLECTIVE_ARGS, 1)->value, 8192);
	assert_int_equal(nth(FLIGHT_COLLECTIVE_ARGS, 1)->extra, 5);
	record = nth(FLIGHT_NETWORK_SEND, 0);
	assert_true(flight_us_first((uint64_t)record->value) >= 300);
	assert_true(flight_us_second((uint64_t)record->value) >= 200);
	assert_true(flight_us_first(record->extra) >= 100);
	record = nth(FLIGHT_NETWORK_RECV, 0);
	assert_true(flight_us_first((uint64_t)record->value) >= 400);
	assert_true(flight_us_second((uint64_t)record->value) >= 50);
	assert_true(flight_us_first(record->extra) >= 50);
	close_comm(comm);
}

static void operations_without_steps_tell_only_how_long(void **state)
{
	void *comm = open_comm(2), *call = begin_all_reduce(comm, 5), *op;

	(void)state;
	op = begin_op(comm, call, true);
	end(call);
	end(op);
	assert_int_equal(cnt_of(FLIGHT_NETWORK), 1);
	assert_int_equal(cnt_of(FLIGHT_NETWORK_SEND) + cnt_of(FLIGHT_NETWORK_RECV), 0);
	assert_int_equal(nth(FLIGHT_COLLECTIVE_ARGS, 1)->value, -1);
	close_comm(comm);
}

static void what_is_done_for_another_process_has_no_call_of_ours(void **state)
{
	void *comm = open_comm(2), *call = begin_all_reduce(comm, 5);
	struct nccl_proxy_op descr = { .head = { .kind = NCCL_PROXY_OP, .parent = call },
				       .pid = getpid() + 1 };

	(void)state;
	end(call);
	end(begin(comm, &descr));
	assert_string_equal(texts[nth(FLIGHT_NETWORK, 0)->extra], "nccl (for another process)");
	assert_int_equal((int64_t)nth(FLIGHT_COLLECTIVE_ARGS, 1)->extra, -1);
	/* An address of the other process, as other plugins hand out. */
	descr.head.parent = &descr;
	descr.pid = getpid();
	end(begin(comm, &descr));
	assert_string_equal(texts[nth(FLIGHT_NETWORK, 1)->extra], "nccl");
	close_comm(comm);
}

/* --- masks --- */

static void the_mask_goes_up_and_down_while_the_job_runs(void **state)
{
	void *near, *far;

	(void)state;
	nccl_set_level(NCCL_OFF);
	near = open_comm(1);
	assert_int_equal(mask, 0);
	nccl_set_level(NCCL_ALWAYS);
	assert_int_equal(mask, NCCL_COLL | NCCL_P2P);
	nccl_set_level(NCCL_WINDOW);
	assert_int_equal(mask, NCCL_COLL | NCCL_P2P);
	far = open_comm(2);
	assert_int_equal(mask, NCCL_COLL | NCCL_P2P | NCCL_PROXY_OP | NCCL_PROXY_STEP);
	nccl_set_level(NCCL_ALWAYS);
	assert_int_equal(mask, NCCL_COLL | NCCL_P2P | NCCL_PROXY_OP);
	close_comm(far);
	assert_int_equal(mask, NCCL_COLL | NCCL_P2P);
	close_comm(near);
	mask = 77; /* NCCL is unloaded: that memory is not ours any more */
	nccl_set_level(NCCL_WINDOW);
	assert_int_equal(mask, 77);
}

static void two_copies_of_nccl_have_masks_of_their_own(void **state)
{
	int other = -1;
	void *ours = open_comm(1), *theirs = NULL;

	(void)state;
	assert_int_equal(ncclProfiler_v6.init(&theirs, 1, &other, NULL, 2, 2, 0, NULL), 0);
	assert_int_equal(mask, NCCL_COLL | NCCL_P2P);
	assert_int_equal(other, NCCL_COLL | NCCL_P2P | NCCL_PROXY_OP);
	nccl_set_level(NCCL_OFF);
	assert_int_equal(mask | other, 0);
	assert_int_equal(ncclProfiler_v6.finalize(theirs), 0);
	close_comm(ours);
}

static void off_nothing_is_recorded(void **state)
{
	void *comm = open_comm(2), *call;

	(void)state;
	nccl_set_level(NCCL_OFF);
	call = begin_all_reduce(comm, 1);
	assert_null(call);
	end(call);
	assert_null(begin_op(comm, NULL, true));
	assert_int_equal(record_cnt, 0);
	assert_int_equal(drop_cnt, 0);
	close_comm(comm);
}

/* --- disorder --- */

static void a_full_pool_drops_and_counts(void **state)
{
	void *comm = open_comm(1), *last = NULL;
	unsigned cnt = 0;

	(void)state;
	while (drop_cnt == 0) {
		last = begin_all_reduce(comm, cnt);
		cnt += last != NULL;
		assert_true(cnt < 100000);
	}
	assert_null(last);
	assert_true(cnt >= 1000);
	close_comm(comm); /* aborted: they never end */
	comm = open_comm(1);
	drop_cnt = 0;
	end(begin_all_reduce(comm, 1));
	assert_int_equal(drop_cnt, 0);
	assert_int_equal(cnt_of(FLIGHT_COLLECTIVE), 1);
	close_comm(comm);
}

static void ends_without_beginnings_are_let_be(void **state)
{
	void *comm = open_comm(2), *call = begin_all_reduce(comm, 1), *op, *step;

	(void)state;
	op = begin_op(comm, call, true);
	step = begin_step(comm, op);
	end(call);
	end(call);
	end(op); /* before its step */
	end(op);
	set_state(step, NCCL_SEND_GPU_WAIT, 0);
	end(step);
	end(step);
	set_state(step, NCCL_SEND_WIRE_WAIT, 1);
	set_state(call, NCCL_SEND_WIRE_WAIT, 1);
	assert_null(begin_step(comm, op));
	assert_null(begin_step(comm, call));
	assert_int_equal(cnt_of(FLIGHT_COLLECTIVE), 1);
	assert_int_equal(cnt_of(FLIGHT_NETWORK), 1);
	end((void *)0x1234);
	close_comm(comm);
	close_comm(comm);
	end(begin_all_reduce(comm, 2)); /* of a communicator that is gone: its size is not known */
	assert_int_equal(nth(FLIGHT_COLLECTIVE_GROUP, 2)->value, 0);
	assert_int_equal(ncclProfiler_v5.start(NULL, NULL, NULL), NCCL_SUCCESS);
}

static void communicators_end_in_any_order(void **state)
{
	void *comms[300];

	(void)state;
	for (size_t round = 0; round < 3; round++) {
		for (size_t i = 0; i < ARRAY_SIZE(comms); i++) {
			comms[i] = NULL;
			assert_int_equal(
				ncclProfiler_v5.init(&comms[i], i, &mask, NULL, 1, 2, 0, NULL),
				NCCL_SUCCESS);
			end(begin_all_reduce(comms[i], i));
		}
		for (size_t i = ARRAY_SIZE(comms); i-- > 0;)
			close_comm(comms[i]);
	}
	assert_int_equal(drop_cnt, 0);
}

/* --- threads --- */

#define THREADS 4
#define ROUNDS 300

/* Queues collectives whose network operations the next thread does, as the proxy does. */
struct relay {
	void *comm;
	_Atomic(void *) call;
};

static void *drive_network(void *arg)
{
	struct relay *relay = arg;

	for (int i = 0; i < ROUNDS; i++) {
		void *call, *op, *step;

		while ((call = atomic_exchange(&relay->call, NULL)) == NULL)
			sched_yield();
		op = begin_op(relay->comm, call, true);
		step = begin_step(relay->comm, op);
		set_state(step, NCCL_SEND_GPU_WAIT, 0);
		set_state(step, NCCL_SEND_WIRE_WAIT, 10);
		end(step);
		end(op);
	}
	return NULL;
}

static void *queue_calls(void *arg)
{
	struct relay *relay = arg;

	for (int i = 0; i < ROUNDS; i++) {
		void *call = begin_all_reduce(relay->comm, (uint64_t)i);

		while (atomic_load(&relay->call) != NULL)
			sched_yield();
		atomic_store(&relay->call, call);
		end(call);
	}
	return NULL;
}

static void threads_queue_and_drive_at_once(void **state)
{
	struct relay relays[THREADS] = { 0 };
	pthread_t threads[2 * THREADS];

	(void)state;
	record_cnt = 0;
	for (int i = 0; i < THREADS; i++) {
		relays[i].comm = open_comm(2);
		assert_int_equal(pthread_create(&threads[2 * i], NULL, queue_calls, &relays[i]), 0);
		assert_int_equal(
			pthread_create(&threads[2 * i + 1], NULL, drive_network, &relays[i]), 0);
	}
	for (int i = 0; i < 1000; i++)
		nccl_set_level(i % 2 == 0 ? NCCL_WINDOW : NCCL_ALWAYS);
	for (int i = 0; i < 2 * THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	for (int i = 0; i < THREADS; i++)
		close_comm(relays[i].comm);
	assert_int_equal(drop_cnt, 0);
	/* four of the call, three and two of the network */
	assert_int_equal(record_cnt, THREADS * ROUNDS * 9);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_collective_is_recorded_with_all_that_nccl_says),
		TEST(what_gathers_has_the_bytes_of_all_ranks),
		TEST(the_call_itself_tells_when_it_began),
		TEST(a_captured_call_is_marked_and_begins_when_it_is_replayed),
		TEST(sends_and_receives_of_a_group_are_one_record),
		TEST(one_send_names_its_peer),
		TEST(version_1_gives_numbers),
		TEST(versions_2_to_4_put_the_same_elsewhere),
		TEST(events_of_a_later_version_are_let_be),
		TEST(waits_on_the_network_are_told_apart),
		TEST(operations_without_steps_tell_only_how_long),
		TEST(what_is_done_for_another_process_has_no_call_of_ours),
		TEST(the_mask_goes_up_and_down_while_the_job_runs),
		TEST(two_copies_of_nccl_have_masks_of_their_own),
		TEST(off_nothing_is_recorded),
		TEST(a_full_pool_drops_and_counts),
		TEST(ends_without_beginnings_are_let_be),
		TEST(communicators_end_in_any_order),
		TEST(threads_queue_and_drive_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
