/* SPDX-License-Identifier: Apache-2.0 */
/* Who hangs, where ranks meet by functions of their own: from their stacks alone. */
#include "live/hub/hang.h"
#include "live/hub/test_states.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

#define MAIN "ring.py(49): main\n"
#define AVERAGE MAIN "ring.py(11): ring_average"
#define RECV AVERAGE "\ntorch/distributed/distributed_c10d.py(2598): recv"
#define FUTEX "<system call futex>"

struct seen {
	const char *stack, *leaf;
};

static struct report blocked(const struct seen *seen, size_t cnt)
{
	struct wire_state states[4];
	struct wire_where wheres[4];
	struct report report;
	struct hang_facts facts = { .states = states,
				    .cnt = cnt,
				    .wheres = wheres,
				    .where_cnt = cnt,
				    .now_ns = TEST_NOW_NS };

	for (size_t i = 0; i < cnt; i++) {
		states[i] = test_worker((int)i, 500, 50 * NSEC_PER_MSEC);
		wheres[i] = (struct wire_where){ .worker = states[i].worker, .step = 500 };
		(void)snprintf(wheres[i].stack, sizeof(wheres[i].stack), "%s", seen[i].stack);
		(void)snprintf(wheres[i].leaf, sizeof(wheres[i].leaf), "%s", seen[i].leaf);
	}
	assert_int_equal(hang_report(&facts, &report), 0);
	return report;
}

static void assert_accused(const struct seen *seen, size_t cnt, int rank, const char *name)
{
	struct report report = blocked(seen, cnt);

	assert_int_equal(report.finding_cnt, 1);
	assert_int_equal(report.findings[0].rank_cnt, 1);
	assert_int_equal(report.findings[0].ranks[0], rank);
	assert_string_equal(report.findings[0].name, name);
	arena_done(&report.arena);
}

/* Work.wait() leaves ring_average innermost; another rank shows that it calls collectives. */
static void who_is_outside_of_a_ring_of_sends_is_accused(void **state)
{
	const struct seen loops[] = { { AVERAGE, FUTEX },
				      { MAIN "mishap.py(118): converge", "" },
				      { RECV, FUTEX } };
	const struct seen reads[] = { { RECV, FUTEX },
				      { AVERAGE, FUTEX },
				      { MAIN "mishap.py(116): read_reply\nsocket.py(710): readinto",
					"<system call recvfrom>" } };

	(void)state;
	assert_accused(loops, 3, 1, "mishap.py(118): converge");
	assert_accused(reads, 3, 2, "mishap.py(116): read_reply");
}

static void a_ring_in_which_all_wait_accuses_none(void **state)
{
	const struct seen all[] = { { AVERAGE, FUTEX }, { RECV, FUTEX }, { AVERAGE, FUTEX } };
	struct report report = blocked(all, 3);

	(void)state;
	assert_int_equal(report.finding_cnt, 0);
	assert_int_equal(report.verdict, VERDICT_STUCK);
	arena_done(&report.arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_is_outside_of_a_ring_of_sends_is_accused),
		cmocka_unit_test(a_ring_in_which_all_wait_accuses_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
