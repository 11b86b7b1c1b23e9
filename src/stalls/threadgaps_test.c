/* SPDX-License-Identifier: Apache-2.0 */
#include "stalls/threadgaps.h"

#include "base/test_random.h"
#include "stalls/test_recording.h"

#include <setjmp.h>
#include <stdarg.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

enum { WINDOW_MS = 10000 };

/* What a thread does in each millisecond: r: runs, q: waits for a CPU, b: is blocked. */
static void make(uint64_t *seed, struct stall_recording *r, uint32_t tid, char *doing)
{
	char now = r->threads.data[r->threads.cnt - 1].state == 'R' ? 'r' : 'b';

	for (int i = 0; i < WINDOW_MS; i++) {
		char next = now;

		if (i > 0 && test_below(seed, 20) == 0)
			next = now == 'r'   ? (test_below(seed, 2) != 0 ? 'q' : 'b')
			       : now == 'b' ? 'q'
					    : 'r';
		if (now == 'r' && next != 'r')
			test_out(r, i, tid, next == 'q' ? 'R' : 'S', "");
		else if (now == 'b' && next == 'q')
			test_wake(r, i, tid, 500, "");
		else if (now == 'q' && next == 'r')
			test_in(r, i, tid);
		doing[i] = now = next;
	}
}

static void sum(const stall_gap_vec *gaps, uint32_t thread, int64_t *blocked, int64_t *runnable)
{
	*blocked = *runnable = 0;
	vec_foreach(gap, gaps) {
		if (gap->thread != thread)
			continue;
		assert_true(gap->off_ns <= gap->wake_ns && gap->wake_ns <= gap->on_ns);
		*blocked += gap->wake_ns - gap->off_ns;
		*runnable += gap->on_ns - gap->wake_ns;
	}
}

/* The twin counts milliseconds. */
static void gaps_add_up_to_what_the_threads_did(void **state)
{
	uint64_t seed = 7;

	(void)state;
	for (int round = 0; round < 200; round++) {
		struct stall_recording r;
		struct stall_account accounts[3] = { { 0 } };
		static char doing[3][WINDOW_MS];
		stall_gap_vec gaps = { 0 };

		test_recording(&r);
		make(&seed, &r, 100, doing[0]);
		test_thread(&r, 101, 100, 'S');
		make(&seed, &r, 101, doing[1]);
		test_thread(&r, 102, 100, 'R');
		make(&seed, &r, 102, doing[2]);
		stallrecording_sort(&r);
		assert_int_equal(gaps_find(&r, accounts, &gaps), 0);
		for (uint32_t i = 0; i < 3; i++) {
			int64_t blocked, runnable, blocked_ms = 0, runnable_ms = 0;

			for (int j = 0; j < WINDOW_MS; j++) {
				blocked_ms += doing[i][j] == 'b';
				runnable_ms += doing[i][j] == 'q';
			}
			sum(&gaps, i, &blocked, &runnable);
			assert_int_equal(blocked, blocked_ms * NSEC_PER_MSEC);
			assert_int_equal(runnable, runnable_ms * NSEC_PER_MSEC);
			assert_int_equal(accounts[i].unpaired, 0);
		}
		vec_done(&gaps);
		stallrecording_done(&r);
	}
}

static void a_lost_return_ends_a_gap_where_it_was_woken(void **state)
{
	struct stall_recording r;
	struct stall_account account = { 0 };
	stall_gap_vec gaps = { 0 };

	(void)state;
	test_recording(&r);
	test_out(&r, 100, 100, 'S', "");
	test_wake(&r, 110, 100, 500, "");
	test_out(&r, 200, 100, 'S', ""); /* no IN between */
	test_in(&r, 205, 100);
	stallrecording_sort(&r);
	assert_int_equal(gaps_find(&r, &account, &gaps), 0);
	assert_int_equal(gaps.cnt, 2);
	assert_int_equal(gaps.data[0].on_ns, test_at(110));
	assert_int_equal(account.unpaired, 1);
	vec_done(&gaps);
	stallrecording_done(&r);
}

static void look(struct stall_recording *r, double ms, char state, uint64_t slices)
{
	test_event(r, &(struct stall_event){ .time_ns = test_at(ms),
					     .kind = STALL_LOOK,
					     .tid = 100,
					     .pid = 100,
					     .value = slices,
					     .state = state,
					     .chain = test_text(r, "io_schedule") });
}

static void looks_alone_make_gaps_that_are_not_too_long(void **state)
{
	struct stall_recording r;
	struct stall_account account = { 0 };
	stall_gap_vec gaps = { 0 };

	(void)state;
	test_recording(&r);
	r.sources = STALL_BY_LOOKS;
	look(&r, 10, 'R', 1);
	look(&r, 20, 'D', 1);
	look(&r, 30, 'D', 1);
	look(&r, 40, 'D', 2); /* it ran between */
	look(&r, 50, 'R', 3);
	stallrecording_sort(&r);
	assert_int_equal(gaps_find(&r, &account, &gaps), 0);
	assert_int_equal(gaps.cnt, 1);
	assert_int_equal(gaps.data[0].off_ns, test_at(20));
	assert_int_equal(gaps.data[0].on_ns, test_at(30));
	assert_false(account.exact);
	vec_done(&gaps);
	stallrecording_done(&r);
}

static void a_thread_that_is_blocked_all_the_time_has_the_stack_of_a_look(void **state)
{
	struct stall_recording r;
	struct stall_account account = { 0 };
	stall_gap_vec gaps = { 0 };

	(void)state;
	test_recording(&r);
	r.threads.data[0].state = 'R'; /* a moment before */
	look(&r, 1, 'S', 1);
	stallrecording_sort(&r);
	assert_int_equal(gaps_find(&r, &account, &gaps), 0);
	assert_int_equal(gaps.cnt, 1);
	assert_string_equal(strtab_text(&r.texts, gaps.data[0].chain), "io_schedule");
	assert_int_equal(gaps.data[0].state, 'S');
	assert_true(gaps.data[0].open_begin && gaps.data[0].open_end);
	vec_done(&gaps);
	stallrecording_done(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gaps_add_up_to_what_the_threads_did),
		cmocka_unit_test(a_lost_return_ends_a_gap_where_it_was_woken),
		cmocka_unit_test(a_thread_that_is_blocked_all_the_time_has_the_stack_of_a_look),
		cmocka_unit_test(looks_alone_make_gaps_that_are_not_too_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
