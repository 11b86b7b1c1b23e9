/* SPDX-License-Identifier: Apache-2.0 */
/* Who hangs, where ranks meet by functions of their own: from their stacks alone. */
#include "live/hang/hang.h"
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
	struct hang_input facts = { .states = states,
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

/* As tensor parallelism by DTensor has them. */
static void who_waits_in_a_functional_collective_is_not_accused(void **state)
{
#define FORWARD "tp.py(29): forward\ntorch/nn/modules/linear.py(134): forward\n"
#define WAITS                                                                      \
	FORWARD "torch/distributed/_functional_collectives.py(147): wait_tensor\n" \
		"torch/_ops.py(1267): __call__"
	const struct seen waits[] = { { WAITS, FUTEX },
				      { "tp.py(60): main\nmishap.py(195): wait_until_ready",
					"<system call clock_nanosleep>" } };

	(void)state;
	assert_accused(waits, 2, 1, "mishap.py(195): wait_until_ready");
}

static void where_the_only_rank_stays_is_named(void **state)
{
	struct wire_state only = test_worker(0, 500, 50 * NSEC_PER_MSEC);
	struct wire_where where = { .worker = only.worker, .step = 500, .leaf = FUTEX };
	struct hang_input facts = {
		.states = &only, .cnt = 1, .wheres = &where, .where_cnt = 1, .now_ns = TEST_NOW_NS
	};
	struct report report;

	(void)state;
	only.world_size = 1;
	(void)snprintf(where.stack, sizeof(where.stack),
		       MAIN "quota.py(8): acquire\nthreading.py(1): "
			    "wait");
	assert_int_equal(hang_report(&facts, &report), 0);
	assert_int_equal(report.verdict, VERDICT_ABNORMAL);
	assert_string_equal(report.findings[0].id, "PT-908");
	assert_string_equal(report.findings[0].name, "quota.py(8): acquire");
	arena_done(&report.arena);
	only.world_size = 2; /* of a job whose other rank is not seen */
	assert_int_equal(hang_report(&facts, &report), 0);
	assert_int_equal(report.verdict, VERDICT_STUCK);
	arena_done(&report.arena);
	only.world_size = 1;
	where.stack[0] = '\0';
	assert_int_equal(hang_report(&facts, &report), 0);
	assert_int_equal(report.verdict, VERDICT_STUCK);
	arena_done(&report.arena);
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
		cmocka_unit_test(who_waits_in_a_functional_collective_is_not_accused),
		cmocka_unit_test(where_the_only_rank_stays_is_named),
		cmocka_unit_test(a_ring_in_which_all_wait_accuses_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
