/* SPDX-License-Identifier: Apache-2.0 */
#include "live/ending/leaver.h"

#include "live/hub/test_states.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

#define CNT 2

static struct wire_state states[CNT];
static struct wire_where where;

/* Rank 1 has left at step 300; rank 0 waits in a collective of that step. */
static int set_up(void **state)
{
	(void)state;
	for (int i = 0; i < CNT; i++)
		states[i] = test_worker(i, 300, NSEC_PER_MSEC);
	states[0].phase = PHASE_BLOCKED;
	states[0].last_ns = TEST_NOW_NS - LEAVER_NS;
	states[1].phase = PHASE_GONE;
	states[1].bye = 1;
	where = (struct wire_where){ .worker = states[0].worker, .step = 300 };
	(void)strcpy(where.stack,
		     "train.py(30): main\ntorch/distributed/distributed_c10d.py(2810): all_reduce");
	return 0;
}

static bool awaited(void)
{
	return leaver_is_awaited(states, CNT, &where, 1, TEST_NOW_NS);
}

static void a_rank_that_left_is_awaited_in_a_collective(void **state)
{
	(void)state;
	assert_true(awaited());
	states[0].last_ns++; /* not for long enough */
	assert_false(awaited());
}

static void a_rank_that_left_is_awaited_in_a_backward_pass_that_waits(void **state)
{
	(void)state;
	(void)strcpy(where.stack, "train.py(30): main\ntorch/autograd/graph.py(966): "
				  "_engine_run_backward");
	assert_false(awaited()); /* it computes */
	(void)strcpy(where.leaf, "<system call futex>");
	assert_true(awaited());
}

static void a_rank_that_saves_or_evaluates_at_the_end_awaits_no_rank(void **state)
{
	(void)state;
	(void)strcpy(where.stack, "train.py(60): main\ntorch/serialization.py(900): save");
	assert_false(awaited());
}

static void a_stack_of_an_earlier_step_says_nothing(void **state)
{
	(void)state;
	where.step = 299;
	assert_false(awaited());
	where.step = 300;
	states[0].phase = PHASE_STEADY;
	assert_false(awaited());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_rank_that_left_is_awaited_in_a_collective, set_up),
		cmocka_unit_test_setup(a_rank_that_saves_or_evaluates_at_the_end_awaits_no_rank,
				       set_up),
		cmocka_unit_test_setup(a_rank_that_left_is_awaited_in_a_backward_pass_that_waits,
				       set_up),
		cmocka_unit_test_setup(a_stack_of_an_earlier_step_says_nothing, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
