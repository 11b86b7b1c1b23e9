/* SPDX-License-Identifier: Apache-2.0 */
/* The network, the mask, events out of order, threads. */
#include "agent/nccl/eventmask.h"
#include "agent/nccl/test_nccl.h"
#include "base/clock.h"

/* --- the network --- */

static void waits_on_the_network_are_distinguished(void **state)
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

static void operations_without_steps_have_a_duration_only(void **state)
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

static void operations_for_another_process_have_no_parent_call(void **state)
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
	descr.head.rank = 3;
	descr.pid = getpid();
	end(begin(comm, &descr));
	assert_string_equal(texts[nth(FLIGHT_NETWORK, 1)->extra], "nccl");
	close_comm(comm);
}

/* In containers of their own all may be process 1: then rank and handles distinguish them. */
static void another_process_may_have_the_same_pid(void **state)
{
	void *comm = open_comm(2), *call = begin_all_reduce(comm, 5), *op, *step;
	struct nccl_proxy_op descr = { .head = { .kind = NCCL_PROXY_OP, .parent = call, .rank = 4 },
				       .pid = getpid() };

	(void)state;
	end(call);
	op = begin(comm, &descr);
	step = begin_step(comm, op);
	set_state(step, NCCL_SEND_GPU_WAIT, 0);
	close_comm(comm); /* not theirs */
	set_state(step, NCCL_SEND_WIRE_WAIT, 4096);
	end(step);
	end(op);
	assert_int_equal(cnt_of(FLIGHT_NETWORK), 1);
	assert_string_equal(texts[nth(FLIGHT_NETWORK, 0)->extra], "nccl (for another process)");
	assert_int_equal(nth(FLIGHT_COLLECTIVE_ARGS, 1)->value, 4096);
	/* A context of no communicator of this process. */
	comm = open_comm(2);
	descr.head.rank = 3;
	end(begin((void *)((uintptr_t)comm + (1 << 16)), &descr));
	assert_string_equal(texts[nth(FLIGHT_NETWORK, 1)->extra], "nccl (for another process)");
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
	mask = 77; /* NCCL is unloaded: its memory must not be written */
	nccl_set_level(NCCL_WINDOW);
	assert_int_equal(mask, 77);
}

static void *look_at_mask(void *arg)
{
	_Atomic bool *stop = arg;
	uintptr_t zeros = 0;

	while (!atomic_load(stop))
		zeros += __atomic_load_n(&mask, __ATOMIC_RELAXED) == 0;
	return (void *)zeros;
}

static void the_mask_stays_up_while_others_come_and_go(void **state)
{
	_Atomic bool stop = false;
	void *comm = open_comm(1), *zeros;
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, look_at_mask, &stop), 0);
	for (int i = 0; i < 100000; i++) {
		eventmask_add(&mask, EVENTMASK_NETWORK);
		eventmask_remove(&mask, EVENTMASK_NETWORK);
	}
	atomic_store(&stop, true);
	assert_int_equal(pthread_join(thread, &zeros), 0);
	assert_null(zeros);
	close_comm(comm);
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

/* Of 300 there is room for 256. */
static void communicators_end_in_any_order(void **state)
{
	void *comms[300];

	(void)state;
	for (size_t round = 0; round < 3; round++) {
		size_t refused = 0;

		record_cnt = drop_cnt = 0;
		for (size_t i = 0; i < ARRAY_SIZE(comms); i++) {
			comms[i] = NULL;
			assert_int_equal(
				ncclProfiler_v5.init(&comms[i], i, &mask, NULL, 1, 2, 0, NULL),
				NCCL_SUCCESS);
			refused += comms[i] == NULL;
			end(begin_all_reduce(comms[i], i));
		}
		assert_int_equal(refused, ARRAY_SIZE(comms) - 256);
		assert_int_equal(drop_cnt, refused);
		assert_int_equal(cnt_of(FLIGHT_COLLECTIVE), 256);
		for (size_t i = ARRAY_SIZE(comms); i-- > 0;)
			close_comm(comms[i]);
	}
}

static void without_a_communicator_nothing_begins(void **state)
{
	struct nccl_descr group = { .kind = NCCL_GROUP };
	struct nccl_proxy_op foreign = { .head = { .kind = NCCL_PROXY_OP }, .pid = getpid() + 1 };
	void *comm = open_comm(2); /* for this process to be known */

	(void)state;
	assert_null(begin(NULL, &group));
	assert_null(begin_all_reduce(NULL, 1));
	assert_null(begin_op(NULL, NULL, true));
	assert_int_equal(drop_cnt, 3);
	assert_int_equal(record_cnt, 0);
	end(begin(NULL, &foreign)); /* the context of another process is ignored */
	assert_int_equal(cnt_of(FLIGHT_NETWORK), 1);
	assert_int_equal(drop_cnt, 3);
	close_comm(comm);
}

/* --- threads --- */

#define THREADS 4
#define ROUNDS 100

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

#define SHORT_THREADS 40

static void *queue_one(void *arg)
{
	end(begin_all_reduce(arg, 1));
	return NULL;
}

static void run_one(void *(*body)(void *), void *comm)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, body, comm), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

static void *drive_one(void *arg)
{
	void *call = begin_all_reduce(arg, 1), *op = begin_op(arg, call, true);

	end(call);
	end(op);
	return NULL;
}

/* A job that opens and closes communicators has many threads of NCCL, one after the other. */
static void threads_that_come_and_go_are_all_heard(void **state)
{
	void *comm = open_comm(2);

	(void)state;
	for (size_t i = 0; i < SHORT_THREADS; i++) {
		run_one(queue_one, comm);
		run_one(drive_one, comm);
	}
	assert_int_equal(cnt_of(FLIGHT_COLLECTIVE), 2 * SHORT_THREADS);
	assert_int_equal(cnt_of(FLIGHT_NETWORK), SHORT_THREADS);
	assert_int_equal(drop_cnt, 0);
	close_comm(comm);
}

static void events_without_room_are_counted(void **state)
{
	void *comm = open_comm(2);

	(void)state;
	refuse = true;
	run_one(drive_one, comm);
	assert_int_equal(drop_cnt, 2);
	assert_int_equal(record_cnt, 0);
	refuse = false;
	run_one(drive_one, comm);
	assert_int_equal(drop_cnt, 2);
	assert_int_equal(cnt_of(FLIGHT_NETWORK), 1);
	close_comm(comm);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(waits_on_the_network_are_distinguished),
		TEST(operations_without_steps_have_a_duration_only),
		TEST(operations_for_another_process_have_no_parent_call),
		TEST(another_process_may_have_the_same_pid),
		TEST(the_mask_goes_up_and_down_while_the_job_runs),
		TEST(the_mask_stays_up_while_others_come_and_go),
		TEST(two_copies_of_nccl_have_masks_of_their_own),
		TEST(off_nothing_is_recorded),
		TEST(a_full_pool_drops_and_counts),
		TEST(ends_without_beginnings_are_let_be),
		TEST(communicators_end_in_any_order),
		TEST(without_a_communicator_nothing_begins),
		TEST(threads_queue_and_drive_at_once),
		TEST(threads_that_come_and_go_are_all_heard),
		TEST(events_without_room_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
