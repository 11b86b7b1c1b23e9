/* SPDX-License-Identifier: Apache-2.0 */
#include "host/stallwatch/gccollections.h"

#include <setjmp.h>
#include <stdarg.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

/* What the process does at each look: the thread that collects; 0: none, UINT32_MAX: one not known. */
struct script {
	const uint32_t *tids;
	size_t next;
};

static bool collects(void *context, uint32_t pid, uint32_t *ret_tid)
{
	struct script *script = context;
	const uint32_t tid = script->tids[script->next++];

	assert_int_equal(pid, 7);
	*ret_tid = tid == UINT32_MAX ? 0 : tid;
	return tid != 0;
}

/* Looks at the given milliseconds from the begin on. The caller frees ret. */
static void play(const uint32_t *tids, const int64_t *at_ms, size_t cnt,
		 struct stall_recording *ret)
{
	static const uint32_t pid = 7;
	struct script script = { .tids = tids };
	const struct stallwatch_options options = {
		.pids = &pid, .pid_cnt = 1, .collects = collects, .python_context = &script
	};
	struct gccollections collections = { 0 };

	assert_int_equal(stallrecording_init(ret), 0);
	for (size_t i = 0; i < cnt; i++)
		assert_int_equal(
			gccollections_look(&collections, &options, at_ms[i] * NSEC_PER_MSEC, ret),
			0);
	assert_int_equal(
		gccollections_end(&collections, (at_ms[cnt - 1] + 10) * NSEC_PER_MSEC, ret), 0);
	gccollections_done(&collections);
}

static void looks_in_a_row_are_one_collection(void **state)
{
	static const uint32_t tids[] = { 0, 7, 7, 7, 0 };
	static const int64_t at_ms[] = { 10, 20, 30, 40, 50 };
	struct stall_recording recording;

	(void)state;
	play(tids, at_ms, 5, &recording);
	assert_int_equal(recording.events.cnt, 1);
	assert_int_equal(recording.events.data[0].kind, STALL_COLLECT);
	assert_int_equal(recording.events.data[0].tid, 7);
	assert_int_equal(recording.events.data[0].time_ns, 15 * NSEC_PER_MSEC);
	assert_int_equal(recording.events.data[0].value, 30 * NSEC_PER_MSEC);
	stallrecording_done(&recording);
}

static void one_look_alone_is_none(void **state)
{
	static const uint32_t tids[] = { 0, 7, 0, 7, 0, 7 };
	static const int64_t at_ms[] = { 10, 20, 30, 40, 50, 60 };
	struct stall_recording recording;

	(void)state;
	play(tids, at_ms, 6, &recording);
	assert_int_equal(recording.events.cnt, 0);
	stallrecording_done(&recording);
}

static void looks_far_apart_are_not_joined(void **state)
{
	static const uint32_t tids[] = { 7, 7, 7, 7 };
	static const int64_t at_ms[] = { 10, 100, 200, 210 };
	struct stall_recording recording;

	(void)state;
	play(tids, at_ms, 4, &recording);
	assert_int_equal(recording.events.cnt, 1); /* of the last two */
	assert_int_equal(recording.events.data[0].time_ns, 200 * NSEC_PER_MSEC);
	assert_int_equal(recording.events.data[0].value, 15 * NSEC_PER_MSEC);
	stallrecording_done(&recording);
}

static void another_thread_collects_anew(void **state)
{
	static const uint32_t tids[] = { 7, UINT32_MAX, 7, 8, 8 };
	static const int64_t at_ms[] = { 10, 20, 30, 40, 50 };
	struct stall_recording recording;

	(void)state;
	play(tids, at_ms, 5, &recording);
	assert_int_equal(recording.events.cnt, 2);
	assert_int_equal(recording.events.data[0].tid, 7);
	assert_int_equal(recording.events.data[1].tid, 8);
	assert_true(recording.events.data[0].time_ns + (int64_t)recording.events.data[0].value <=
		    recording.events.data[1].time_ns);
	stallrecording_done(&recording);
}

static void a_collection_of_an_unknown_thread_accuses_none(void **state)
{
	static const uint32_t tids[] = { UINT32_MAX, UINT32_MAX, UINT32_MAX };
	static const int64_t at_ms[] = { 10, 20, 30 };
	struct stall_recording recording;

	(void)state;
	play(tids, at_ms, 3, &recording);
	assert_int_equal(recording.events.cnt, 0);
	stallrecording_done(&recording);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(looks_in_a_row_are_one_collection),
		cmocka_unit_test(one_look_alone_is_none),
		cmocka_unit_test(looks_far_apart_are_not_joined),
		cmocka_unit_test(another_thread_collects_anew),
		cmocka_unit_test(a_collection_of_an_unknown_thread_accuses_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
