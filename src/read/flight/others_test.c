/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs of 100 ms, a tick each 2 ms; the training thread waits for 8 of 10 ms in a queue. */
#include "read/flight/others.h"

#include "base/test_alloc.h"
#include "read/common/test_events.h"

#include <errno.h>

#define FUTEX 202 /* numbers of system calls: x86-64 */
#define NANOSLEEP 230
#define RECVFROM 45
#define TICK_MS 2
#define LENGTH_MS 100
#define LIB "/usr/lib/python3.11/"

static struct flight_place found;

/* Stacks of the job. */
struct stacks {
	uint32_t wait, fill, load, beat, idle, raised;
};

static struct stacks stacks_of(struct fixture *x)
{
	uint32_t run = recorder_node(
		x->f, 0, recorder_frame(x->f, LIB "threading.py", "Thread._bootstrap", 5));
	struct stacks s = {
		.wait = child(x, child(x, x->step, LIB "queue.py", "Queue.get"), LIB "threading.py",
			      "Condition.wait"),
		.fill = child(x, run, "/job/train.py", "Prefetcher.fill"),
		.beat = child(x, run, "/job/train.py", "beat"),
		.raised = child(x, run, LIB "threading.py",
				"_make_invoke_excepthook.<locals>.invoke_excepthook"),
	};

	s.load = child(x, s.fill, "/job/train.py", "load");
	s.idle = child(x, child(x, s.fill, LIB "queue.py", "Queue.put"), LIB "threading.py",
		       "Condition.wait");
	return s;
}

static void put(struct fixture *x, uint32_t tid, int64_t ms, uint32_t node, uint32_t call, bool ran)
{
	struct ring_record record = {
		.time_ns = T0 + ms * MS,
		.value = ran ? MS : 0,
		.kind = FLIGHT_SAMPLE,
		.detail = FLIGHT_SAMPLE_WINDOW | (call != 0 ? flight_sample_call(call) : 0),
		.extra = (uint64_t)tid << 32 | node,
	};

	ring_push(x->f->samples, FLIGHT_SAMPLE_CNT, &x->f->sample_head, &record);
}

/* Whether the training thread waits at that time, and whether a wait has just ended. */
static bool waits(int64_t ms)
{
	return ms % 10 != 0;
}

static void train_at(struct fixture *x, const struct stacks *s, int64_t ms)
{
	if (waits(ms))
		put(x, 71, ms, s->wait, FUTEX, ms % 10 == TICK_MS);
	else
		put(x, 71, ms, x->step, 0, true);
}

static int take(struct fixture *x, struct flightlog *log)
{
	const struct flight *reader;

	flightlog_init(log);
	assert_int_equal(flight_map(x->recorder.fd, &reader, NULL), 0);
	assert_int_equal(flightlog_take(log, reader, false), 0);
	assert_int_equal(log->drops.invalid, 0);
	flight_unmap(reader);
	log->training_tid = 71;
	return 0;
}

static void look(struct fixture *x, bool all)
{
	struct flightlog log;

	take(x, &log);
	if (all)
		assert_int_equal(flight_others(&log, T0, T0 + LENGTH_MS * MS, true, &found), 0);
	else
		assert_int_equal(flight_awaited(&log, T0, T0 + LENGTH_MS * MS, &found), 0);
	flightlog_done(&log);
}

static void a_thread_that_runs_when_waits_end_is_named_beside_one_that_sleeps(void **state)
{
	struct fixture *x = *state;
	struct stacks s = stacks_of(x);

	for (int64_t ms = 0; ms < LENGTH_MS; ms += TICK_MS) {
		train_at(x, &s, ms);
		put(x, 72, ms, s.load, NANOSLEEP, !waits(ms));
		put(x, 73, ms, s.beat, NANOSLEEP, ms == 50);
	}
	look(x, false);
	assert_int_equal(found.by, AWAITED_THREAD);
	assert_int_equal(found.sample_cnt, 40);
	assert_float_equal(found.frac, 1, 1e-9);
	assert_string_equal(found.place, "train.py(5): fill > train.py(5): load > "
					 "<system call clock_nanosleep>");
}

static void a_thread_that_always_runs_goes_behind_one_that_runs_at_the_ends(void **state)
{
	struct fixture *x = *state;
	struct stacks s = stacks_of(x);

	for (int64_t ms = 0; ms < LENGTH_MS; ms += TICK_MS) {
		train_at(x, &s, ms);
		put(x, 72, ms, s.load, NANOSLEEP, !waits(ms));
		put(x, 73, ms, s.beat, 0, true);
	}
	look(x, false);
	assert_string_equal(found.place, "train.py(5): fill > train.py(5): load > "
					 "<system call clock_nanosleep>");
}

static void a_thread_that_always_runs_is_named_if_it_is_alone(void **state)
{
	struct fixture *x = *state;
	struct stacks s = stacks_of(x);

	for (int64_t ms = 0; ms < LENGTH_MS; ms += TICK_MS) {
		train_at(x, &s, ms);
		put(x, 72, ms, s.load, 0, true);
	}
	look(x, false);
	assert_string_equal(found.place, "train.py(5): fill > train.py(5): load");
}

static void threads_that_wait_or_sleep_are_not_named(void **state)
{
	struct fixture *x = *state;
	struct stacks s = stacks_of(x);

	for (int64_t ms = 0; ms < LENGTH_MS; ms += TICK_MS) {
		train_at(x, &s, ms);
		put(x, 72, ms, s.idle, FUTEX, !waits(ms));
		put(x, 73, ms, s.beat, NANOSLEEP, false);
	}
	look(x, false);
	assert_int_equal(found.sample_cnt, 0);
}

static void without_a_wait_nobody_is_awaited(void **state)
{
	struct fixture *x = *state;
	struct stacks s = stacks_of(x);

	for (int64_t ms = 0; ms < LENGTH_MS; ms += TICK_MS) {
		put(x, 71, ms, x->step, FUTEX, !waits(ms)); /* of an operator's threads */
		put(x, 72, ms, s.load, 0, true);
	}
	look(x, false);
	assert_int_equal(found.sample_cnt, 0);
}

static void a_lock_that_the_users_function_waits_for_is_a_wait(void **state)
{
	struct fixture *x = *state;
	struct stacks s = stacks_of(x);

	for (int64_t ms = 0; ms < LENGTH_MS; ms += TICK_MS) {
		put(x, 71, ms, x->step, waits(ms) ? FUTEX : 0, ms % 10 <= TICK_MS);
		put(x, 72, ms, s.load, NANOSLEEP, !waits(ms));
		put(x, 73, ms, s.beat, FUTEX, !waits(ms)); /* waits for a lock itself */
		put(x, 74, ms, s.beat, 0, true);
	}
	look(x, false);
	assert_int_equal(found.by, AWAITED_THREAD);
	assert_int_equal(found.sample_cnt, 40);
	assert_string_equal(found.place, "train.py(5): fill > train.py(5): load > "
					 "<system call clock_nanosleep>");
}

static void a_child_that_does_not_wait_itself_is_named(void **state)
{
	struct fixture *x = *state;
	struct stacks s = stacks_of(x);
	uint32_t start = child(x, x->main, LIB "multiprocessing/process.py", "start");
	uint32_t own = child(x, start, LIB "multiprocessing/process.py", "BaseProcess._bootstrap");
	uint32_t actor = child(x, own, "/job/actors.py", "actor");
	uint32_t env = child(x, actor, "/job/actors.py", "query");
	uint32_t recv = child(x, actor, LIB "multiprocessing/connection.py", "Connection._recv");

	for (int64_t ms = 0; ms < LENGTH_MS; ms += TICK_MS) {
		struct ring_record look = { .time_ns = T0 + ms * MS,
					    .kind = FLIGHT_CHILD,
					    .detail = flight_sample_call(RECVFROM),
					    .extra = UINT64_C(80) << 32 | recv };

		train_at(x, &s, ms);
		ring_push(x->f->samples, FLIGHT_SAMPLE_CNT, &x->f->sample_head, &look);
		look.extra = UINT64_C(81) << 32 | env;
		ring_push(x->f->samples, FLIGHT_SAMPLE_CNT, &x->f->sample_head, &look);
	}
	look(x, false);
	assert_int_equal(found.by, AWAITED_CHILD);
	assert_int_equal(found.sample_cnt, 40);
	assert_string_equal(found.place, "actors.py(5): actor > actors.py(5): query > "
					 "<system call recvfrom>");
}

static void in_a_wait_that_does_not_end_all_threads_count(void **state)
{
	struct fixture *x = *state;
	struct stacks s = stacks_of(x);

	for (int64_t ms = 0; ms < LENGTH_MS; ms += TICK_MS) {
		put(x, 71, ms, s.wait, FUTEX, false);
		put(x, 72, ms, s.load, NANOSLEEP, false);
	}
	look(x, false);
	assert_int_equal(found.sample_cnt, 0);
	look(x, true);
	assert_int_equal(found.by, AWAITED_THREAD);
	assert_string_equal(found.place, "train.py(5): fill > train.py(5): load > "
					 "<system call clock_nanosleep>");
}

static void a_thread_that_ended_is_found_by_its_last_sample(void **state)
{
	struct fixture *x = *state;
	struct stacks s = stacks_of(x);
	struct flightlog log;
	int64_t ago_ns = -1;

	for (int64_t ms = 0; ms < 5000; ms += 100) {
		put(x, 71, ms, s.wait, FUTEX, false);
		put(x, 73, ms, s.beat, NANOSLEEP, false);
		if (ms <= 1500)
			/* last, Python writes the exception that ended it */
			put(x, 72, ms, ms < 1500 ? s.load : s.raised, 0, true);
		if (ms <= 500)
			put(x, 74, ms, s.fill, 0, true);
		if (ms <= 2500) /* a thread of C that runs Python now and then */
			put(x, 75, ms, x->step, 0, true);
	}
	take(x, &log);
	assert_int_equal(flight_ended_thread(&log, T0, &ago_ns, &found), 0);
	assert_int_equal(ago_ns, 3400 * MS);
	assert_int_equal(found.sample_cnt, 1);
	assert_string_equal(found.place, "train.py(5): fill > train.py(5): load");
	assert_int_equal(flight_ended_thread(&log, T0 + 2000 * MS, &ago_ns, &found), 0);
	assert_int_equal(found.sample_cnt, 0);
	flightlog_done(&log);
}

static void a_failed_allocation_changes_nothing(void **state)
{
	struct fixture *x = *state;
	struct stacks s = stacks_of(x);
	struct flightlog log;
	int ret = -ENOMEM;

	for (int64_t ms = 0; ms < LENGTH_MS; ms += TICK_MS) {
		train_at(x, &s, ms);
		put(x, 72, ms, s.load, 0, true);
	}
	take(x, &log);
	found.sample_cnt = 77;
	for (int n = 0; ret == -ENOMEM; n++) {
		assert_int_equal(found.sample_cnt, 77);
		allocations_left = n;
		ret = flight_awaited(&log, T0, T0 + LENGTH_MS * MS, &found);
		allocations_left = -1;
	}
	assert_int_equal(ret, 0);
	assert_int_equal(found.sample_cnt, 40);
	flightlog_done(&log);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_fixture, close_fixture)
	const struct CMUnitTest tests[] = {
		TEST(a_thread_that_runs_when_waits_end_is_named_beside_one_that_sleeps),
		TEST(a_thread_that_always_runs_goes_behind_one_that_runs_at_the_ends),
		TEST(a_thread_that_always_runs_is_named_if_it_is_alone),
		TEST(threads_that_wait_or_sleep_are_not_named),
		TEST(without_a_wait_nobody_is_awaited),
		TEST(a_lock_that_the_users_function_waits_for_is_a_wait),
		TEST(a_child_that_does_not_wait_itself_is_named),
		TEST(in_a_wait_that_does_not_end_all_threads_count),
		TEST(a_thread_that_ended_is_found_by_its_last_sample),
		TEST(a_failed_allocation_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
