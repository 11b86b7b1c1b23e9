/* SPDX-License-Identifier: Apache-2.0 */
#include "live/hub/jobstate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

static struct wire_state worker(int rank, enum wire_phase phase, uint64_t step, int64_t ms)
{
	return (struct wire_state){ .worker = (uint32_t)rank + 1,
				    .rank = rank,
				    .phase = phase,
				    .step = step,
				    .iteration_ns = ms * NSEC_PER_MSEC };
}

static void assert_line(const struct wire_state *states, size_t cnt, bool profiling,
			const char *expected)
{
	struct str line = { 0 };

	jobstate_append(states, cnt, profiling, &line);
	assert_string_equal(str_borrow(&line), expected);
	str_done(&line);
}

static void a_job_without_workers_waits_for_them(_unused_ void **state)
{
	assert_line(NULL, 0, false, "state=waiting workers=0 step=0");
	assert_line(NULL, 0, true, "state=waiting workers=0 step=0");
}

static void iteration_times_are_listed_in_order_of_ranks(_unused_ void **state)
{
	const struct wire_state states[] = { worker(2, PHASE_STEADY, 7, 30),
					     worker(0, PHASE_STEADY, 9, 10),
					     worker(1, PHASE_STEADY, 8, 0) };

	assert_line(states, 3, false, "state=watching workers=3 step=9 iteration_ms=10.0,30.0");
}

static void a_slow_job_is_shown_with_its_begin_and_its_slowest_rank(_unused_ void **state)
{
	struct wire_state states[] = { worker(0, PHASE_SLOW, 90, 30), worker(1, PHASE_SLOW, 90, 34),
				       worker(2, PHASE_STEADY, 90, 50) };
	struct jobstate_pace pace;

	states[0].slow_since_step = 70;
	states[1].slow_since_step = 65;
	states[1].baseline_ns = 10 * NSEC_PER_MSEC;
	assert_line(states, 3, false,
		    "state=slow workers=3 step=90 iteration_ms=30.0,34.0,50.0 slow_since=65 "
		    "baseline_ms=10.0 factor=3.40");
	states[0].phase = states[1].phase = PHASE_GONE; /* it ended slow */
	jobstate_pace(states, 3, &pace);
	assert_int_equal(pace.slow_since_step, 65);
	assert_int_equal(pace.now_ns, 34 * NSEC_PER_MSEC);
	states[0].slow_since_step = states[1].slow_since_step = 0;
	jobstate_pace(states, 3, &pace);
	assert_int_equal(pace.slow_since_step, 0);
	assert_int_equal(pace.now_ns, 50 * NSEC_PER_MSEC);
}

static void many_ranks_are_shown_as_least_and_greatest(_unused_ void **state)
{
	struct wire_state states[9];

	for (int i = 0; i < 9; i++)
		states[i] = worker(i, PHASE_STEADY, 1, 20 - i);
	assert_line(states, 8, false,
		    "state=watching workers=8 step=1 "
		    "iteration_ms=20.0,19.0,18.0,17.0,16.0,15.0,14.0,13.0");
	assert_line(states, 9, false, "state=watching workers=9 step=1 iteration_ms=12.0..20.0");
}

static void the_gravest_phase_is_the_state(_unused_ void **state)
{
	static const struct {
		enum wire_phase phase;
		const char *word;
	} cases[] = { { PHASE_STEADY, "watching" },
		      { PHASE_PROFILING, "watching" },
		      { PHASE_LEARNING, "learning" },
		      { PHASE_SLOW, "slow" },
		      { PHASE_BLOCKED, "blocked" } };
	struct wire_state states[ARRAY_SIZE(cases)];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		states[i] = worker((int)i, cases[i].phase, 0, 0);
		assert_string_equal(jobstate_word(states, i + 1, false), cases[i].word);
		assert_string_equal(jobstate_word(states, i + 1, true), "profiling");
	}
}

static void workers_gone_or_silent_are_not_counted(_unused_ void **state)
{
	const struct wire_state states[] = { worker(0, PHASE_GONE, 99, 50),
					     worker(1, PHASE_SILENT, 98, 60),
					     worker(2, PHASE_STEADY, 5, 10) };

	assert_line(states, 3, false, "state=watching workers=1 step=5 iteration_ms=10.0");
	assert_line(states, 2, true, "state=ended workers=0 step=0");
}

static struct wire_state learned(int rank, const char *sequence, uint64_t step)
{
	struct wire_state state = worker(rank, PHASE_STEADY, 100, 10);

	state.learned_step = step;
	(void)snprintf(state.sequence, sizeof(state.sequence), "%s", sequence);
	return state;
}

static void the_iteration_of_most_workers_is_the_jobs(_unused_ void **state)
{
	struct wire_state states[] = { learned(0, "backward", 40), learned(1, "", 0),
				       learned(2, "loader, optimizer 1", 10),
				       learned(3, "loader, optimizer 1", 11) };
	struct report_loop loop;

	jobstate_loop(states, 4, &loop);
	assert_string_equal(loop.marks, "loader, optimizer 1");
	assert_int_equal(loop.since_step, 10);
	assert_int_equal(loop.worker_cnt, 2);
	assert_int_equal(loop.known_cnt, 3);
	states[2].phase = states[3].phase = PHASE_GONE; /* a restarted job has new workers */
	jobstate_loop(states, 4, &loop);
	assert_string_equal(loop.marks, "backward");
	assert_int_equal(loop.known_cnt, 1);
	states[0].phase = states[1].phase = PHASE_GONE;
	jobstate_loop(states, 4, &loop);
	assert_string_equal(loop.marks, "loader, optimizer 1");
	jobstate_loop(&states[1], 1, &loop);
	assert_string_equal(loop.marks, "");
	memset(states[3].sequence, 'x', sizeof(states[3].sequence)); /* without an end */
	jobstate_loop(&states[3], 1, &loop);
	assert_int_equal(strlen(loop.marks), sizeof(loop.marks) - 1);
}

static void ranks_that_the_job_does_not_say_are_told_by_process(_unused_ void **state)
{
	struct wire_state states[12] = { 0 };
	struct report report = { .rank_source = "the job's environment" };
	static const char *const before[] = { "a note" };

	arena_init(&report.arena);
	report.notes = before;
	report.note_cnt = 1;
	for (int i = 0; i < 12; i++) {
		states[i] = worker(i, PHASE_STEADY, 1, 10);
		states[i].pid = 100 + (uint32_t)i;
	}
	jobstate_note_ranks(states, 12, &report);
	assert_int_equal(report.note_cnt, 1);
	states[0].numbered = 1; /* a job of one process has only this rank */
	jobstate_note_ranks(states, 1, &report);
	assert_int_equal(report.note_cnt, 1);
	states[1].numbered = states[2].numbered = 1;
	states[2].rank = 0; /* the first worker of rank 0 has ended */
	jobstate_note_ranks(states, 3, &report);
	jobstate_note_ranks(states, 3, &report);
	assert_int_equal(report.note_cnt, 2);
	assert_string_equal(report.rank_source, "the order in which the workers started");
	assert_string_equal(report.notes[1], "the job's environment has no ranks: rank 1 is pid "
					     "101, rank 0 is pid 102");
	report.rank_source = NULL;
	for (int i = 0; i < 12; i++)
		states[i].numbered = 1;
	jobstate_note_ranks(states, 12, &report);
	assert_non_null(strstr(report.notes[2], "rank 8 is pid 108, ..."));
	arena_done(&report.arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_job_without_workers_waits_for_them),
		cmocka_unit_test(iteration_times_are_listed_in_order_of_ranks),
		cmocka_unit_test(a_slow_job_is_shown_with_its_begin_and_its_slowest_rank),
		cmocka_unit_test(many_ranks_are_shown_as_least_and_greatest),
		cmocka_unit_test(the_gravest_phase_is_the_state),
		cmocka_unit_test(workers_gone_or_silent_are_not_counted),
		cmocka_unit_test(the_iteration_of_most_workers_is_the_jobs),
		cmocka_unit_test(ranks_that_the_job_does_not_say_are_told_by_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
