/* SPDX-License-Identifier: Apache-2.0 */
/* One worker whose training thread waits in one frame or another. */
#include "localize/waits/waits.h"

#include "localize/test_job.h"

#define FRAME_MAX 8
#define FUTEX CALL_PREFIX "futex>"

static struct job_frame frames[FRAME_MAX];
static struct job_function functions[FRAME_MAX];
static struct fp_function spent[FRAME_MAX];
static const struct fp_function *of[FRAME_MAX];
static struct fingerprint fp;
static struct job_worker worker;
static struct job only;
static const uint32_t accused[1] = { 0 };

/* A job of no frames. */
static void begin(const char *awaited)
{
	fp = (struct fingerprint){ .host_stats.awaited = awaited };
	worker = (struct job_worker){ .fp = &fp, .iterations = 1 };
	only = (struct job){ .workers = &worker, .worker_cnt = 1 };
	only.frames.data = frames;
	only.functions.data = functions;
}

/* Its training thread spends ns in the frame itself. Returns the frame, which is a function, too. */
static uint32_t add(uint32_t parent, const char *name, int64_t ns)
{
	uint32_t i = (uint32_t)only.frames.cnt++;

	frames[i] = (struct job_frame){ .parent = parent, .kind = KIND_PYTHON, .name = name };
	spent[i] = (struct fp_function){ .thread_ns = ns };
	of[i] = &spent[i];
	functions[i] = (struct job_function){ .frame = i, .class = CLASS_HOST, .of = &of[i] };
	only.functions.cnt++;
	return i;
}

static struct accusation at(uint32_t frame)
{
	return (struct accusation){
		.workers = accused, .worker_cnt = 1, .frame = frame, .function = frame
	};
}

static bool waits(uint32_t frame)
{
	struct accusation a = at(frame);

	return waits_for_others(&only, &a);
}

static void pythons_modules_wait_for_others(void **state)
{
	uint32_t main, get, wait, call, sleep;

	(void)state;
	begin(NULL);
	main = add(FRAME_NONE, "train.py(1): main", 5);
	get = add(main, "queue.py(171): get", 0);
	wait = add(get, "threading.py(327): wait", 10);
	call = add(wait, FUTEX, 90);
	sleep = add(main, CALL_PREFIX "clock_nanosleep>", 20);
	assert_true(waits(wait));
	assert_true(waits(call));
	assert_false(waits(main));
	assert_false(waits(sleep));
}

static void the_users_function_waits_for_a_lock_if_a_thread_was_at_work(void **state)
{
	uint32_t main, call, mm;

	(void)state;
	for (int i = 0; i < 3; i++) {
		begin(i == 0   ? "thread, 92 % in train.py(3): fill"
		      : i == 1 ? "child, 92 % in train.py(3): act"
			       : NULL);
		main = add(FRAME_NONE, "train.py(1): main", 5);
		call = add(main, FUTEX, 90);
		assert_int_equal(waits(call), i == 0);
		assert_false(waits(main));
	}
	begin("thread, 92 % in train.py(3): fill");
	main = add(FRAME_NONE, "train.py(1): main", 5);
	mm = add(main, "torch/nn/modules/linear.py(130): forward", 5);
	assert_false(waits(add(mm, FUTEX, 90)));
}

static void beside_waits_of_python_a_lock_is_not_known(void **state)
{
	uint32_t main, call;

	(void)state;
	for (int64_t ns = 0; ns < 2; ns++) {
		begin("thread, 92 % in train.py(3): fill");
		main = add(FRAME_NONE, "train.py(1): main", 5);
		call = add(main, FUTEX, 90);
		(void)add(add(main, "threading.py(327): wait", 0), FUTEX, ns);
		assert_int_equal(waits(call), ns == 0);
	}
}

static void what_an_event_loop_runs_most_is_its_coroutine(void **state)
{
	uint32_t once, select, call, handle;
	struct accusation a;

	(void)state;
	begin(NULL);
	once = add(add(FRAME_NONE, "train.py(1): <module>", 0),
		   "asyncio/base_events.py(1845): _run_once", 0);
	select = add(once, "selectors.py(451): select", 1);
	call = add(select, CALL_PREFIX "epoll_wait>", 90);
	a = at(call);
	assert_null(waits_coroutine(&only, &a));
	handle = add(once, "asyncio/events.py(78): _run", 5);
	(void)add(handle, "train.py(5): fetch", 2);
	(void)add(handle, "train.py(9): train", 3);
	assert_string_equal(waits_coroutine(&only, &a), "train.py(9): train");
	a = at(handle);
	assert_null(waits_coroutine(&only, &a));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pythons_modules_wait_for_others),
		cmocka_unit_test(the_users_function_waits_for_a_lock_if_a_thread_was_at_work),
		cmocka_unit_test(beside_waits_of_python_a_lock_is_not_known),
		cmocka_unit_test(what_an_event_loop_runs_most_is_its_coroutine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
