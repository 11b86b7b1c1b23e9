/* SPDX-License-Identifier: Apache-2.0 */
/* Launches are timed, and attributed to the calls reported after them. */
#include "agent/nccl/test_nccl.h"

/* --- what times them --- */

#define TIMER_MAX 1024

static struct timer {
	void *queue;
	bool ended, reported;
	size_t cnt;
	struct ring_record records[4];
} timers[TIMER_MAX];

static uint64_t timer_cnt;
static bool captured; /* nothing can be timed */

static uint64_t begin_timer(void *queue)
{
	if (captured)
		return 0;
	assert_true(timer_cnt + 1 < TIMER_MAX);
	timers[++timer_cnt] = (struct timer){ .queue = queue };
	return timer_cnt;
}

static void end_timer(uint64_t timer)
{
	assert_false(timers[timer].ended);
	timers[timer].ended = true;
}

static void claim_timer(uint64_t timer, const struct ring_record *from, size_t cnt)
{
	assert_true(timers[timer].ended);
	assert_false(timers[timer].reported);
	timers[timer].reported = true;
	timers[timer].cnt = cnt;
	for (size_t i = 0; i < cnt; i++)
		timers[timer].records[i] = from[i];
}

static bool keep_none(const struct ring_record *from, size_t cnt)
{
	(void)from;
	return cnt > 0;
}

static uint32_t first_letters(const char *text, size_t len)
{
	uint32_t id = 0;

	memcpy(&id, text, MIN(len, sizeof(id)));
	return id;
}

static void drop_none(void)
{
}

static int setup_timing(void **state)
{
	static const struct nccl_timing timing = { begin_timer, end_timer, claim_timer };
	static const struct nccl_sink sink = { keep_none, first_letters, drop_none, &timing };

	(void)state;
	timer_cnt = 0;
	captured = false;
	mask = -1;
	nccl_set_sink(&sink);
	nccl_set_level(NCCL_ALWAYS);
	return 0;
}

/* --- NCCL's side --- */

static void *begin_launch(void *comm, void *queue)
{
	struct nccl_kernel_launch descr = { .head.kind = NCCL_KERNEL_LAUNCH, .stream = queue };

	return begin(comm, &descr);
}

static void *begin_group(void *comm)
{
	struct nccl_descr descr = { .kind = NCCL_GROUP };

	return begin(comm, &descr);
}

static void call(void *comm, void *group, const char *func, uint64_t seq)
{
	struct nccl_coll_v4 descr = all_reduce(seq);

	descr.func = func;
	descr.parent_group = group;
	end(begin(comm, &descr));
}

/* A plan of cnt calls of one function. */
static void run_plan(void *comm, void *queue, const char *func, uint64_t seq, int cnt)
{
	void *launch = begin_launch(comm, queue), *group;

	end(launch);
	group = begin_group(comm);
	for (int i = 0; i < cnt; i++)
		call(comm, group, func, seq + (uint64_t)i);
	end(group);
}

/* --- tests --- */

static void a_launch_gets_the_calls_reported_after_it(void **state)
{
	void *comm = open_comm(1), *queue = &comm;
	const struct timer *timer = &timers[1];

	(void)state;
	assert_int_equal(mask, NCCL_COLL | NCCL_P2P | NCCL_KERNEL_LAUNCH);
	run_plan(comm, queue, "AllReduce", 17, 1);
	assert_int_equal(timer_cnt, 1);
	assert_ptr_equal(timer->queue, queue);
	assert_int_equal(timer->cnt, 4);
	assert_int_equal(timer->records[0].kind, FLIGHT_COLLECTIVE_DONE);
	assert_int_equal(timer->records[0].detail, 1);
	assert_int_equal(timer->records[1].kind, FLIGHT_COLLECTIVE_ARGS);
	assert_int_equal(timer->records[1].value, 4000);
	assert_int_equal(timer->records[1].extra, 17);
	assert_int_equal(timer->records[2].value >> 32, 8);
	assert_int_equal(timer->records[3].kind, FLIGHT_COLLECTIVE_HOW);
	close_comm(comm);
}

static void grouped_collectives_are_one_launch(void **state)
{
	void *comm = open_comm(1), *group;

	(void)state;
	run_plan(comm, NULL, "AllReduce", 5, 3);
	assert_int_equal(timers[1].records[0].detail, 3);
	assert_int_equal(timers[1].records[1].value, 12000);
	assert_int_equal(timers[1].records[1].extra, 5);
	end(begin_launch(comm, NULL));
	group = begin_group(comm);
	call(comm, group, "AllReduce", 8);
	call(comm, group, "Broadcast", 1);
	call(comm, group, "AllReduce", 9);
	end(group);
	assert_int_equal(timers[2].records[0].detail, 3);
	assert_int_equal(timers[2].records[1].value, -1); /* not a single bandwidth */
	close_comm(comm);
}

static void launches_of_several_communicators_are_distinguished(void **state)
{
	void *first = open_comm(1), *second = open_comm(1), *group;

	(void)state;
	end(begin_launch(first, NULL));
	group = begin_group(second); /* of one that was not timed */
	call(second, group, "Broadcast", 1);
	end(group);
	assert_false(timers[1].reported);
	group = begin_group(first);
	call(first, group, "AllReduce", 2);
	end(group);
	assert_int_equal(timers[1].records[1].extra, 2);
	close_comm(first);
	close_comm(second);
}

static void a_captured_launch_is_not_timed(void **state)
{
	void *comm = open_comm(1);

	(void)state;
	captured = true;
	assert_null(begin_launch(comm, NULL));
	captured = false;
	run_plan(comm, NULL, "AllReduce", 1, 1); /* the replay's calls are no launch's */
	assert_int_equal(timer_cnt, 1);
	close_comm(comm);
}

static void a_launch_without_reported_calls_is_abandoned(void **state)
{
	void *comm = open_comm(1), *open;

	(void)state;
	end(begin_launch(comm, NULL)); /* its calls come on another thread */
	end(begin_launch(comm, NULL));
	assert_true(timers[1].reported && timers[1].cnt == 0);
	close_comm(comm); /* aborted */
	comm = open_comm(1);
	run_plan(comm, NULL, "AllReduce", 1, 1);
	assert_int_equal(timers[3].cnt, 4);
	for (int i = 0; i < 600; i++)
		end(begin_launch(comm, NULL));
	run_plan(comm, NULL, "AllReduce", 2, 1);
	assert_int_equal(timers[timer_cnt].cnt, 4);
	open = begin_launch(comm, NULL);
	end(open);
	end(open); /* twice */
	end((void *)((uintptr_t)open + (1 << 16)));
	nccl_set_level(NCCL_OFF);
	assert_null(begin_launch(comm, NULL));
	close_comm(comm);
	assert_null(begin_launch(NULL, NULL));
}

/* --- before version 5 --- */

static void *open_old(void)
{
	void *comm = NULL;

	assert_int_equal(ncclProfiler_v4.init(&comm, &mask, "dp", HASH, 1, 8, 3, NULL),
			 NCCL_SUCCESS);
	return comm;
}

static void call_old(void *comm, uint64_t seq)
{
	struct nccl_coll_v4 descr = all_reduce(seq);
	void *handle = NULL;

	assert_int_equal(ncclProfiler_v4.start(comm, &handle, &descr), NCCL_SUCCESS);
	assert_int_equal(ncclProfiler_v4.stop(handle), NCCL_SUCCESS);
}

static void calls_reported_within_a_launch_belong_to_it(void **state)
{
	void *comm = open_old();
	nccl_handle launch = nccl_outer_start(&mask);

	(void)state;
	assert_true(launch != 0);
	call_old(comm, 3);
	call_old(comm, 4);
	assert_false(timers[1].reported);
	nccl_outer_stop(launch);
	assert_int_equal(timers[1].cnt, 4);
	assert_int_equal(timers[1].records[0].detail, 2);
	assert_int_equal(timers[1].records[1].value, 8000);
	assert_int_equal(timers[1].records[1].extra, 3);
	call_old(comm, 5); /* behind it */
	nccl_outer_stop(nccl_outer_start(&mask));
	assert_true(timers[2].reported && timers[2].cnt == 0);
	nccl_outer_stop(launch); /* once more */
	close_comm(comm);
}

static void two_communicators_within_a_launch_are_not_one(void **state)
{
	void *first = open_old(), *second = open_old();
	nccl_handle launch = nccl_outer_start(NULL);

	(void)state;
	call_old(first, 1);
	call_old(second, 1);
	nccl_outer_stop(launch);
	assert_true(timers[1].reported && timers[1].cnt == 0);
	close_comm(first);
	close_comm(second);
}

static void a_version_that_reports_launches_is_not_timed_twice(void **state)
{
	void *comm = open_comm(1);

	(void)state;
	assert_true(nccl_outer_start(NULL) == 0);
	nccl_outer_stop(0);
	assert_int_equal(timer_cnt, 0);
	close_comm(comm);
	comm = open_old();
	close_comm(comm);
	assert_true(nccl_outer_start(NULL) == 0); /* no communicator */
}

#define TEST_TIMING(name) cmocka_unit_test_setup_teardown(name, setup_timing, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_TIMING(a_launch_gets_the_calls_reported_after_it),
		TEST_TIMING(grouped_collectives_are_one_launch),
		TEST_TIMING(launches_of_several_communicators_are_distinguished),
		TEST_TIMING(a_captured_launch_is_not_timed),
		TEST_TIMING(a_launch_without_reported_calls_is_abandoned),
		TEST_TIMING(calls_reported_within_a_launch_belong_to_it),
		TEST_TIMING(two_communicators_within_a_launch_are_not_one),
		TEST_TIMING(a_version_that_reports_launches_is_not_timed_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
