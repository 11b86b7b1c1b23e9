/* SPDX-License-Identifier: Apache-2.0 */
#include "hang/stackfacts.h"

#include "hang/hangrules.h"
#include "model/place/stacknaming.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

#define PYTHON(file_, line_, function_)                                                    \
	{                                                                                  \
		.kind = STACKS_PYTHON, .file = file_, .line = line_, .function = function_ \
	}
#define NATIVE(function_)                                                              \
	{                                                                              \
		.kind = STACKS_NATIVE, .file = "/v/lib/libx.so", .function = function_ \
	}
#define MAIN PYTHON("/home/me/train.py", 80, "main")

static struct arena arena;

static int open_arena(void **state)
{
	(void)state;
	arena_init(&arena);
	return 0;
}

static int close_arena(void **state)
{
	(void)state;
	arena_done(&arena);
	return 0;
}

static struct stacks_thread thread_of(uint32_t tid, const struct stacks_frame *frames, size_t cnt)
{
	return (struct stacks_thread){ .tid = tid,
				       .own_tid = tid,
				       .state = 'S',
				       .state_before = 'S',
				       .mixed = true,
				       .why_incomplete = "",
				       .frames = frames,
				       .frame_cnt = cnt };
}

/* The facts of a process of which two samples were taken. */
static struct stackfacts judged(struct stacks_thread *threads, size_t cnt)
{
	const struct stacks_process process = {
		.pid = 1, .threads = threads, .thread_cnt = cnt, .twice = true
	};
	const struct hang_record record = { .says = "", .child = "", .stacks = &process };
	struct stackfacts facts;

	assert_int_equal(stackfacts_find(&record, &arena, &facts), 0);
	return facts;
}

static void a_mutex_has_a_holder_and_its_place(void **state)
{
	static const struct stacks_frame waits[] = { NATIVE("pthread_mutex_lock"),
						     PYTHON("/home/me/ext.py", 7, "flush"), MAIN };
	static const struct stacks_frame holds[] = { NATIVE("read"),
						     PYTHON("/home/me/log.py", 3, "Log.write") };
	struct stacks_thread threads[] = { thread_of(1, waits, 3), thread_of(2, holds, 2) };
	struct stackfacts facts;

	(void)state;
	threads[0].owner_tid = 2;
	facts = judged(threads, 2);
	assert_int_equal(facts.facts, HANG_LOCK);
	assert_string_equal(facts.says,
			    "waits for a mutex that thread 2 holds, which is in log.py(3): write");
	assert_string_equal(facts.stack, "train.py(80): main\next.py(7): flush");
	threads[0].owner_tid = 1;
	facts = judged(threads, 2);
	assert_non_null(strstr(facts.says, "the thread itself"));
	/* Between the samples it was elsewhere: a lock that is taken often, not one that is kept. */
	threads[0].moved = true;
	threads[0].common_cnt = 1;
	assert_int_equal(judged(threads, 2).facts & HANG_LOCK, 0);
}

static void a_lock_of_python_names_who_can_hold_it(void **state)
{
	static const struct stacks_frame waits[] = { NATIVE("PyThread_acquire_lock_timed"),
						     PYTHON("/home/me/train.py", 12, "update"),
						     MAIN };
	static const struct stacks_frame holds[] = { PYTHON("/home/me/beat.py", 5, "hold") };
	static const struct stacks_frame idle[] = { PYTHON("/usr/lib/python3.11/threading.py", 327,
							   "Condition.wait") };
	struct stacks_thread threads[] = { thread_of(1, waits, 3), thread_of(2, idle, 1),
					   thread_of(3, holds, 1) };
	struct stackfacts facts;

	(void)state;
	facts = judged(threads, 3);
	assert_int_equal(facts.facts, HANG_LOCK);
	assert_string_equal(facts.says,
			    "waits for a lock of Python; other threads that can hold it: "
			    "3 in beat.py(5): hold");
	facts = judged(threads, 2);
	assert_non_null(strstr(facts.says, "it holds the lock itself, or the holder has ended"));
}

/* queue.get(), Event.wait() and join() wait for another thread, by a lock of their own. */
static void a_wait_for_a_queue_is_no_lock(void **state)
{
	static const struct stacks_frame waits[] = {
		NATIVE("PyThread_acquire_lock_timed"),
		PYTHON("/usr/lib/python3.11/threading.py", 327, "Condition.wait"),
		PYTHON("/usr/lib/python3.11/queue.py", 171, "Queue.get"), MAIN
	};
	struct stacks_thread threads[] = { thread_of(1, waits, 4) };

	(void)state;
	assert_int_equal(judged(threads, 1).facts, 0);
}

static void the_interpreter_lock_has_a_holder(void **state)
{
	static const struct stacks_frame waits[] = { MAIN };
	static const struct stacks_frame holds[] = { NATIVE("sleep"),
						     PYTHON("/home/me/log.py", 3, "write") };
	struct stacks_thread threads[] = { thread_of(1, waits, 1), thread_of(2, holds, 2) };
	struct stackfacts facts;

	(void)state;
	threads[0].gil = STACKS_GIL_WAITS;
	threads[1].gil = STACKS_GIL_HOLDS;
	facts = judged(threads, 2);
	assert_int_equal(facts.facts, HANG_LOCK);
	assert_string_equal(
		facts.says,
		"waits for the interpreter lock (GIL), which thread 2 holds in log.py(3): write");
}

static void a_thread_that_runs_in_both_samples_loops(void **state)
{
	static const struct stacks_frame runs[] = { PYTHON("/home/me/train.py", 13, "hash_all"),
						    PYTHON("/home/me/train.py", 12, "spin"), MAIN };
	struct stacks_thread threads[] = { thread_of(1, runs, 3) };
	struct stackfacts facts;

	(void)state;
	threads[0].state = threads[0].state_before = 'R';
	threads[0].moved = true;
	threads[0].common_cnt = 2; /* main and spin */
	facts = judged(threads, 1);
	assert_int_equal(facts.facts & HANG_LOOP, HANG_LOOP);
	assert_string_equal(facts.says,
			    "ran in both of two samples, each time below train.py(12): spin");
	threads[0].state_before = 'S';
	assert_int_equal(judged(threads, 1).facts, HANG_MOVES);
	threads[0].state_before = 'R';
	threads[0].common_cnt = 0; /* nothing in common: not known to be a loop */
	assert_int_equal(judged(threads, 1).facts & HANG_LOOP, 0);
}

/* NCCL's waiting thread runs all the time; gloo's sleeps. */
static void a_thread_in_a_collective_neither_loops_nor_moves(void **state)
{
	static const struct stacks_frame waits[] = { NATIVE("_ZN4c10d4Work4waitEv"),
						     PYTHON("/home/me/train.py", 12, "step"),
						     MAIN };
	struct stacks_thread threads[] = { thread_of(1, waits, 3) };
	struct stackfacts facts;

	(void)state;
	threads[0].state = threads[0].state_before = 'R';
	threads[0].common_cnt = 2;
	facts = judged(threads, 1);
	assert_true(facts.in_collective);
	assert_int_equal(facts.facts, 0);
}

static void a_thread_that_synchronizes_waits_for_its_gpu(void **state)
{
	static const struct stacks_frame waits[] = {
		NATIVE("cuStreamSynchronize"),
		PYTHON("/v/site-packages/torch/cuda/__init__.py", 9, "synchronize"), MAIN
	};
	struct stacks_thread threads[] = { thread_of(1, waits, 3) };

	(void)state;
	assert_int_equal(judged(threads, 1).facts, HANG_GPU);
}

static void a_thread_with_context_switches_is_at_work(void **state)
{
	static const struct stacks_frame sleeps[] = { MAIN };
	struct stacks_thread threads[] = { thread_of(1, sleeps, 1) };

	(void)state;
	threads[0].switched = 3;
	assert_int_equal(judged(threads, 1).facts, 0);
	threads[0].switched = 60;
	assert_int_equal(judged(threads, 1).facts, HANG_MOVES);
}

/* A forked worker has the frames of its parent at the fork below its own. */
static void a_worker_of_the_loader_is_named_by_what_it_makes_a_batch_with(void **state)
{
	static const struct stacks_frame parents[] = { MAIN };
	static const struct stacks_frame frames[] = {
		NATIVE("recv"),
		PYTHON("/home/me/data.py", 9, "Shards.read"),
		PYTHON("/v/site-packages/torch/utils/data/_utils/fetch.py", 52, "fetch"),
		PYTHON("/v/site-packages/torch/utils/data/_utils/worker.py", 300, "_worker_loop"),
		MAIN,
	};
	struct stacks_thread main_thread = thread_of(1, parents, 1);
	struct stacks_thread child_thread = thread_of(2, frames, ARRAY_SIZE(frames));
	const struct stacks_process parent = { .pid = 1, .threads = &main_thread, .thread_cnt = 1 };
	struct stacks_process child = { .pid = 2, .threads = &child_thread, .thread_cnt = 1 };
	const struct stacks_process *children[] = { &child };
	const struct hang_record record = {
		.says = "", .child = "", .stacks = &parent, .children = children, .child_cnt = 1
	};
	struct stackfacts facts;

	(void)state;
	(void)snprintf(child_thread.call, sizeof(child_thread.call), "recvfrom");
	(void)snprintf(child_thread.waits, sizeof(child_thread.waits), "descriptor 5: tcp");
	assert_int_equal(stackfacts_find(&record, &arena, &facts), 0);
	assert_string_equal(facts.child,
			    "data.py(9): read > <system call recvfrom> (descriptor 5: tcp)");
	child_thread.frames = &frames[3]; /* it waits for an index */
	child_thread.frame_cnt = 2;
	assert_int_equal(stackfacts_find(&record, &arena, &facts), 0);
	assert_string_equal(facts.child, "");
}

static void paths_of_libraries_are_shortened(void **state)
{
	static const struct {
		const char *path, *shown;
	} rows[] = {
		{ "/v/lib/python3.11/site-packages/torch/nn/x.py", "torch/nn/x.py(1): f" },
		{ "/usr/lib/python3.11/threading.py", "threading.py(1): f" },
		{ "/usr/lib/python-things/a.py", "a.py(1): f" },
		{ "/home/me/train.py", "train.py(1): f" },
		{ "src/train.py", "src/train.py(1): f" },
		{ "<frozen runpy>", "<frozen runpy>(1): f" },
		{ "", "<unknown>(1): f" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct stacks_frame frame = PYTHON(rows[i].path, 1, "C.<locals>.f");
		struct str text = { 0 };

		stacknaming_append(&text, &frame);
		assert_string_equal(str_borrow(&text), rows[i].shown);
		str_done(&text);
	}
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_arena, close_arena)
	const struct CMUnitTest tests[] = {
		TEST(a_mutex_has_a_holder_and_its_place),
		TEST(a_lock_of_python_names_who_can_hold_it),
		TEST(a_wait_for_a_queue_is_no_lock),
		TEST(the_interpreter_lock_has_a_holder),
		TEST(a_thread_that_runs_in_both_samples_loops),
		TEST(a_thread_in_a_collective_neither_loops_nor_moves),
		TEST(a_thread_that_synchronizes_waits_for_its_gpu),
		TEST(a_thread_with_context_switches_is_at_work),
		TEST(a_worker_of_the_loader_is_named_by_what_it_makes_a_batch_with),
		TEST(paths_of_libraries_are_shortened),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
