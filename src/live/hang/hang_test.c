/* SPDX-License-Identifier: Apache-2.0 */
/* Hangs in which the flight recorders' stacks and collectives show the rank to accuse. */
#include "live/hang/hang.h"

#include "base/test_random.h"
#include "live/hub/test_states.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

#define RANK_CNT 6

#define WAITS "train.py(1): main\ntorch/autograd/graph.py(9): run"
#define FUTEX "<system call futex>"

/* Ranks at the same mark of the same step, all waiting in one function. */
struct job {
	struct wire_state states[RANK_CNT];
	struct wire_where wheres[RANK_CNT];
	size_t where_cnt;
};

static struct job job_make(void)
{
	struct job job = { .where_cnt = RANK_CNT };

	for (uint32_t i = 0; i < RANK_CNT; i++) {
		job.states[i] = test_worker((int)i, 500, 50 * NSEC_PER_MSEC);
		job.states[i].world_size = RANK_CNT;
		job.states[i].phase = PHASE_BLOCKED;
		job.states[i].iterations = 490;
		job.wheres[i] = (struct wire_where){ .worker = i + 1, .step = 500 };
		(void)snprintf(job.wheres[i].stack, sizeof(job.wheres[i].stack), WAITS);
		(void)snprintf(job.wheres[i].leaf, sizeof(job.wheres[i].leaf), FUTEX);
	}
	return job;
}

/* leaf: the system call the innermost function waits in; "": none was seen. */
static void set_stack(struct job *job, size_t rank, const char *stack, const char *leaf)
{
	(void)snprintf(job->wheres[rank].leaf, sizeof(job->wheres[rank].leaf), "%s", leaf);
	(void)snprintf(job->wheres[rank].stack, sizeof(job->wheres[rank].stack), "%s", stack);
}

static void enter(struct wire_where *where, const char *group, int64_t number)
{
	struct wire_entered *entered = &where->entered[where->entered_cnt++];

	entered->number = number;
	(void)snprintf(entered->group, sizeof(entered->group), "%s", group);
	(void)snprintf(entered->name, sizeof(entered->name), "allreduce");
}

static struct report judged(const struct job *job)
{
	const struct hang_input facts = { .states = job->states,
					  .cnt = RANK_CNT,
					  .wheres = job->wheres,
					  .where_cnt = job->where_cnt,
					  .now_ns = TEST_NOW_NS };
	struct report report;

	assert_int_equal(hang_report(&facts, &report), 0);
	return report;
}

static void assert_accused(const struct report *report, int rank, const char *name)
{
	assert_int_equal(report->verdict, VERDICT_ABNORMAL);
	assert_int_equal(report->finding_cnt, 1);
	assert_int_equal(report->findings[0].rank_cnt, 1);
	assert_int_equal(report->findings[0].ranks[0], rank);
	assert_int_equal(report->findings[0].victim_cnt, RANK_CNT - 1);
	assert_string_equal(report->findings[0].name, name);
}

static void the_function_of_a_rank_that_is_behind_is_named_with_its_callers(void **state)
{
	struct job job = job_make();
	struct report report;

	(void)state;
	job.states[1].last_mark = MARK_DATALOADER;
	set_stack(&job, 1, "train.py(1): main\ndata.py(7): read", "<system call recvfrom>");
	report = judged(&job);
	assert_accused(&report, 1, "data.py(7): read");
	assert_int_equal(report.findings[0].stack_cnt, 2);
	assert_string_equal(report.findings[0].stack[0], "train.py(1): main");
	assert_non_null(strstr(report.findings[0].evidence[0],
			       "in data.py(7): read <system call recvfrom>"));
	arena_done(&report.arena);
}

/* A rank skips a collective and trains on: those who wait in it are behind, and its victims. */
static void a_rank_that_goes_past_a_collective_is_accused_by_those_who_wait_in_it(void **state)
{
	static const char collective[] = "train.py(1): main\ntrain.py(31): synchronize\n"
					 "torch/distributed/distributed_c10d.py(3155): all_reduce";
	struct job job = job_make();
	struct report report;

	(void)state;
	for (size_t i = 0; i < RANK_CNT; i++) {
		job.states[i].step = job.wheres[i].step = i == 2 ? 944 : 500;
		set_stack(&job, i, i == 2 ? "train.py(1): main" : collective,
			  i == 2 ? "" : "<system call futex>");
	}
	job.states[2].phase = PHASE_STEADY;
	report = judged(&job);
	assert_accused(&report, 2, "torch/distributed/distributed_c10d.py(3155): all_reduce");
	assert_string_equal(report.findings[0].id, "PT-906");
	assert_non_null(strstr(report.findings[0].evidence[0], "its iterations go on"));
	arena_done(&report.arena);

	/* It sleeps somewhere, steps ahead. */
	job.states[2].phase = PHASE_BLOCKED;
	set_stack(&job, 2, "train.py(1): main\ntrain.py(9): poll", "<system call poll>");
	report = judged(&job);
	assert_accused(&report, 2, "train.py(9): poll");
	arena_done(&report.arena);

	/* One of those behind does not wait in a collective: it is accused, too. */
	set_stack(&job, 4, "train.py(1): main\ntrain.py(7): read", "<system call read>");
	report = judged(&job);
	assert_int_equal(report.findings[0].rank_cnt, 2);
	assert_int_equal(report.findings[0].ranks[1], 4);
	arena_done(&report.arena);
}

/* python -m, python -c, an import: their frames begin with '<', as the text of a leaf does. */
static void frames_without_a_file_are_ordinary_functions(void **state)
{
	static const char *const stacks[] = {
		"<frozen runpy>(198): _run_module_as_main\n<frozen runpy>(88): _run_code\n"
		"train.py(1): main\ndata.py(7): read",
		"train.py(1): main\n<frozen importlib._bootstrap>(241): _call_with_frames_removed\n"
		"data.py(7): read",
		"<string>(1): <module>\ndata.py(7): read",
		"<string>(1): <module>",
	};
	static const size_t depths[] = { 4, 3, 2, 1 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(stacks); i++) {
		const char *leaf = i % 2 == 0 ? "<system call recvfrom>" : "", *name;
		struct job job = job_make();
		struct report report;

		name = strrchr(stacks[i], '\n') != NULL ? strrchr(stacks[i], '\n') + 1 : stacks[i];
		job.states[1].last_mark = MARK_DATALOADER;
		set_stack(&job, 1, stacks[i], leaf);
		report = judged(&job);
		assert_accused(&report, 1, name);
		assert_int_equal(report.findings[0].stack_cnt, depths[i]);
		assert_int_equal(report.findings[0].class, CLASS_HOST);
		arena_done(&report.arena);
	}
}

/* The cluster's function may be such a frame, too. */
static void workers_below_python_m_are_one_cluster(void **state)
{
	struct job job = job_make();
	struct report report;

	(void)state;
	for (size_t i = 0; i < RANK_CNT; i++)
		set_stack(&job, i, "<frozen runpy>(88): _run_code\n<string>(1): <module>", FUTEX);
	set_stack(&job, 2, "<frozen runpy>(88): _run_code\nmodel.py(40): forward", "");
	report = judged(&job);
	assert_accused(&report, 2, "model.py(40): forward");
	arena_done(&report.arena);
}

static void where_the_loaders_children_are_is_evidence(void **state)
{
	struct job job = job_make();
	struct report report;

	(void)state;
	job.states[1].last_mark = MARK_DATALOADER;
	set_stack(&job, 1, "selectors.py(402): select", "<system call poll>");
	(void)snprintf(job.wheres[1].awaited, sizeof(job.wheres[1].awaited),
		       "train.py(8): collate > <system call read>");
	report = judged(&job);
	assert_string_equal(report.findings[0].cause, "loader-blocked");
	assert_string_equal(report.findings[0].name,
			    "train.py(8): collate (its loader's worker processes)");
	assert_non_null(strstr(report.findings[0].evidence[0],
			       "<system call poll>; its loader's worker processes are in "
			       "train.py(8): collate > <system call read>"));
	arena_done(&report.arena);
}

static void a_leaf_is_reported_without_a_stack(void **state)
{
	struct job job = job_make();
	struct report report;

	(void)state;
	job.states[1].last_mark = MARK_DATALOADER;
	set_stack(&job, 1, "", "<system call read>");
	report = judged(&job);
	assert_accused(&report, 1, "dataloader.next");
	assert_non_null(strstr(report.findings[0].evidence[0], ", in <system call read>"));
	arena_done(&report.arena);
}

static void a_finding_of_two_ranks_in_different_functions_names_no_function(void **state)
{
	struct job job = job_make();
	struct report report;

	(void)state;
	set_stack(&job, 1, "train.py(1): main\nmodel.py(40): forward", "");
	set_stack(&job, 2, "train.py(1): main\nmodel.py(40): forward", "<system call read>");
	report = judged(&job);
	assert_int_equal(report.findings[0].rank_cnt, 2);
	assert_string_equal(report.findings[0].name, "model.py(40): forward");
	arena_done(&report.arena);
	set_stack(&job, 2, "train.py(1): main\nother.py(8): write", "");
	report = judged(&job);
	assert_int_equal(report.findings[0].rank_cnt, 2);
	assert_string_equal(report.findings[0].name, "elsewhere than the others");
	assert_int_equal(report.findings[0].stack_cnt, 0);
	assert_non_null(strstr(report.findings[0].evidence[1], "in other.py(8): write"));
	arena_done(&report.arena);
}

static void a_stack_of_another_step_is_ignored(void **state)
{
	struct job job = job_make();
	struct report report;

	(void)state;
	job.states[1].last_mark = MARK_DATALOADER;
	set_stack(&job, 1, "data.py(7): read", "");
	job.wheres[1].step = 499;
	report = judged(&job);
	assert_accused(&report, 1, "dataloader.next");
	assert_int_equal(report.findings[0].stack_cnt, 0);
	arena_done(&report.arena);
}

static void a_stopped_rank_keeps_its_reason(void **state)
{
	struct job job = job_make();
	struct report report;

	(void)state;
	job.states[2].process = 'T';
	report = judged(&job);
	assert_accused(&report, 2, "process stopped (SIGSTOP or a debugger)");
	arena_done(&report.arena);
}

static void a_rank_in_another_function_than_the_waiting_majority_is_accused(void **state)
{
	struct job job = job_make();
	struct report report;

	(void)state;
	set_stack(&job, 2, "train.py(1): main\nmodel.py(40): forward", "");
	report = judged(&job);
	assert_accused(&report, 2, "model.py(40): forward");
	assert_string_equal(report.findings[0].id, "PT-907");
	assert_int_equal(report.findings[0].confidence, CONFIDENCE_MEDIUM);
	arena_done(&report.arena);
}

static void a_stack_alone_accuses_no_rank_without_a_waiting_majority(void **state)
{
	static const char *const others[] = {
		"torch/distributed/c10d.py(3): recv", /* its peer need not be here */
		WAITS, "",			      /* unknown */
	};
	struct report report;
	struct job job;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		job = job_make();
		set_stack(&job, 2, others[i], others[i][0] != '\0' ? FUTEX : "");
		report = judged(&job);
		assert_int_equal(report.verdict, VERDICT_STUCK);
		arena_done(&report.arena);
	}
	job = job_make(); /* most are elsewhere, each in another place */
	for (size_t i = 0; i < RANK_CNT - 1; i++)
		(void)snprintf(job.wheres[i].stack, sizeof(job.wheres[i].stack), "a.py(%zu): f", i);
	report = judged(&job);
	assert_int_equal(report.verdict, VERDICT_STUCK);
	assert_non_null(strstr(report.reason, "after step 500"));
	arena_done(&report.arena);
	job = job_make(); /* the majority has no leaf */
	for (size_t i = 0; i < RANK_CNT; i++)
		set_stack(&job, i, i == 2 ? "b.py(1): g" : "a.py(1): f", "");
	report = judged(&job);
	assert_int_equal(report.verdict, VERDICT_STUCK);
	arena_done(&report.arena);
}

/* All wait for others, but not in one collective: no rank is elsewhere, one calls another one. */
static void a_rank_in_another_collective_than_the_majority_is_accused(void **state)
{
	struct job job = job_make();
	struct report report;

	(void)state;
	set_stack(&job, 2, "train.py(7): sync\ntorch/distributed/c10d.py(3): broadcast", FUTEX);
	report = judged(&job);
	assert_accused(&report, 2, "torch/distributed/c10d.py(3): broadcast");
	assert_string_equal(report.findings[0].id, "PT-915");
	assert_non_null(strstr(report.findings[0].evidence[1], "torch/autograd/graph.py(9): run"));
	arena_done(&report.arena);
	/* The same the other way round: most are in a barrier, one waits in its backward pass. */
	for (size_t i = 0; i < RANK_CNT; i++)
		set_stack(&job, i, i == 2 ? WAITS : "torch/distributed/c10d.py(3): barrier", FUTEX);
	report = judged(&job);
	assert_accused(&report, 2, "torch/autograd/graph.py(9): run");
	assert_string_equal(report.findings[0].id, "PT-915");
	arena_done(&report.arena);
	/* One half each: both sides may be wrong. */
	for (size_t i = 0; i < RANK_CNT / 2; i++)
		set_stack(&job, i, "torch/distributed/c10d.py(3): all_gather", FUTEX);
	for (size_t i = RANK_CNT / 2; i < RANK_CNT; i++)
		set_stack(&job, i, "torch/distributed/c10d.py(3): barrier", FUTEX);
	report = judged(&job);
	assert_int_equal(report.verdict, VERDICT_STUCK);
	arena_done(&report.arena);
}

/* One of two ranks waits in its backward pass: the other one sleeps somewhere else. */
static void those_that_are_not_where_others_wait_are_accused_up_to_one_half(void **state)
{
	struct job job = job_make();
	struct hang_input facts = { .states = job.states,
				    .cnt = 2,
				    .wheres = job.wheres,
				    .where_cnt = 2,
				    .now_ns = TEST_NOW_NS };
	struct report report;

	(void)state;
	set_stack(&job, 1, "job.py(30): main\njob.py(10): nap", "<system call clock_nanosleep>");
	assert_int_equal(hang_report(&facts, &report), 0);
	assert_int_equal(report.verdict, VERDICT_ABNORMAL);
	assert_int_equal(report.findings[0].ranks[0], 1);
	assert_string_equal(report.findings[0].name, "job.py(10): nap");
	assert_string_equal(report.findings[0].id, "PT-907");
	arena_done(&report.arena);
	facts.cnt = facts.where_cnt = 4; /* two each, in two places */
	set_stack(&job, 0, "job.py(30): main\ntorch/distributed/c10d.py(3): barrier", FUTEX);
	set_stack(&job, 3, "job.py(30): main\njob.py(99): save", "");
	assert_int_equal(hang_report(&facts, &report), 0);
	assert_int_equal(report.findings[0].rank_cnt, 2);
	assert_int_equal(report.findings[0].ranks[0], 1);
	assert_int_equal(report.findings[0].ranks[1], 3);
	arena_done(&report.arena);
	set_stack(&job, 2, WAITS, ""); /* computes: nothing shows that it waits */
	set_stack(&job, 0, WAITS, "");
	assert_int_equal(hang_report(&facts, &report), 0);
	assert_int_equal(report.verdict, VERDICT_STUCK);
	arena_done(&report.arena);
}

/* The cluster by its definition, comparing all pairs; NULL: none. */
static const char *cluster_of(const struct job *job)
{
	for (size_t i = 0; i < RANK_CNT; i++) {
		size_t cnt = 0;

		for (size_t j = 0; j < RANK_CNT; j++)
			cnt += strcmp(job->wheres[i].stack, job->wheres[j].stack) == 0;
		if (2 * cnt > RANK_CNT && job->wheres[i].leaf[0] != '\0' &&
		    job->wheres[i].stack[0] != '\0')
			return job->wheres[i].stack;
	}
	return NULL;
}

static void the_cluster_is_the_one_that_comparing_all_pairs_finds(void **state)
{
	static const char *const stacks[] = { "a.py(1): f", "a.py(1): f", "b.py(2): g", "" };
	uint64_t random = 1;
	size_t cluster_cnt = 0;

	(void)state;
	for (int round = 0; round < 2000; round++) {
		struct job job = job_make();
		struct report report;
		const char *cluster;
		size_t elsewhere = 0;

		for (size_t i = 0; i < RANK_CNT; i++) {
			uint64_t bits = test_random(&random);

			set_stack(&job, i, stacks[bits % 4], bits / 4 % 4 == 0 ? FUTEX : "");
		}
		cluster = cluster_of(&job);
		for (size_t i = 0; i < RANK_CNT && cluster != NULL; i++)
			elsewhere += job.wheres[i].stack[0] != '\0' &&
				     strcmp(job.wheres[i].stack, cluster) != 0;
		report = judged(&job);
		assert_int_equal(report.finding_cnt, elsewhere > 0);
		if (elsewhere > 0)
			assert_int_equal(report.findings[0].rank_cnt, elsewhere);
		cluster_cnt += elsewhere > 0;
		arena_done(&report.arena);
	}
	assert_true(cluster_cnt > 100 && cluster_cnt < 1900);
}

/* All functions differ and all groups are complete, so no search ends early. */
static void a_job_of_very_many_workers_is_judged(void **state)
{
	const uint32_t cnt = 40000;
	struct wire_state *states = calloc(cnt, sizeof(*states));
	struct wire_where *wheres = calloc(cnt, sizeof(*wheres));
	struct job job = job_make();
	const struct hang_input facts = { .states = states,
					  .cnt = cnt,
					  .wheres = wheres,
					  .where_cnt = cnt,
					  .now_ns = TEST_NOW_NS };
	struct report report;

	(void)state;
	if (states == NULL || wheres == NULL) {
		fail_msg("out of memory");
		return;
	}
	for (uint32_t i = 0; i < cnt; i++) {
		states[i] = job.states[0];
		wheres[i] = job.wheres[0];
		states[i].worker = i + 1;
		wheres[i].worker = cnt - i;
		(void)snprintf(wheres[i].stack, sizeof(wheres[i].stack), "a.py(%u): f", i);
		enter(&wheres[i], "world", 42);
	}
	assert_int_equal(hang_report(&facts, &report), 0);
	assert_int_equal(report.verdict, VERDICT_STUCK);
	assert_int_equal(report.note_cnt, cnt);
	assert_non_null(strstr(report.notes[0], "in a.py(39999): f <system call futex>"));
	arena_done(&report.arena);
	free(states);
	free(wheres);
}

static void a_report_says_if_collectives_may_be_unrecorded(void **state)
{
	struct job job = job_make();
	struct hang_input facts = { .states = job.states,
				    .cnt = RANK_CNT,
				    .wheres = job.wheres,
				    .where_cnt = RANK_CNT,
				    .now_ns = TEST_NOW_NS,
				    .blind = true };
	struct report report;

	(void)state;
	assert_int_equal(hang_report(&facts, &report), 0);
	assert_int_equal(report.verdict, VERDICT_STUCK);
	assert_int_equal(report.note_cnt, 1 + RANK_CNT);
	assert_non_null(strstr(report.notes[0], "the last collectives may not be recorded"));
	assert_non_null(strstr(report.notes[1], "graph.py(9): run"));
	arena_done(&report.arena);
	set_stack(&job, 1, "train.py(1): main\ntrain.py(9): pack", FUTEX);
	assert_int_equal(hang_report(&facts, &report), 0);
	assert_accused(&report, 1, "train.py(9): pack");
	assert_int_equal(report.note_cnt, 1);
	arena_done(&report.arena);
	facts.blind = false;
	assert_int_equal(hang_report(&facts, &report), 0);
	assert_int_equal(report.note_cnt, 0);
	arena_done(&report.arena);
}

static void a_rank_that_has_not_entered_the_collective_is_accused(void **state)
{
	struct job job = job_make();
	struct report report;

	(void)state;
	for (size_t i = 0; i < RANK_CNT; i++)
		enter(&job.wheres[i], "0", i == 3 ? 41 : 42);
	report = judged(&job);
	assert_accused(&report, 3, "torch/autograd/graph.py(9): run");
	assert_string_equal(report.findings[0].id, "PT-906");
	assert_non_null(strstr(report.findings[0].title, "has not entered a collective"));
	assert_non_null(strstr(report.findings[0].evidence[0],
			       "of group 0 it entered allreduce number 41 last"));
	assert_non_null(strstr(report.findings[0].evidence[1], "number 42 last"));
	arena_done(&report.arena);
}

/* Messages come from another process: the hub drops those whose texts do not end. */
static void a_message_whose_texts_do_not_end_is_invalid(void **state)
{
	struct job job = job_make();
	struct wire_where *where = &job.wheres[0];

	(void)state;
	enter(&job.wheres[0], "world", 7);
	assert_true(wire_where_valid(where));
	memset(where->entered[0].group, 'g', sizeof(where->entered[0].group));
	assert_false(wire_where_valid(where));
	where->entered_cnt = 0; /* entries beyond the count are ignored */
	assert_true(wire_where_valid(where));
	memset(where->leaf, 'l', sizeof(where->leaf));
	assert_false(wire_where_valid(where));
	where->leaf[sizeof(where->leaf) - 1] = '\0';
	assert_true(wire_where_valid(where));
	memset(where->stack, 's', sizeof(where->stack));
	assert_false(wire_where_valid(where));
	where->stack[0] = '\0';
	memset(where->awaited, 'c', sizeof(where->awaited));
	assert_false(wire_where_valid(where));
	where->awaited[0] = '\0';
	memset(where->ended, 'e', sizeof(where->ended));
	assert_false(wire_where_valid(where));
	where->ended[0] = '\0';
	where->awaited_by = AWAITED_BY_CNT;
	assert_false(wire_where_valid(where));
	where->awaited_by = AWAITED_CHILD;
	where->entered_cnt = WIRE_GROUPS + 1;
	assert_false(wire_where_valid(where));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_rank_that_goes_past_a_collective_is_accused_by_those_who_wait_in_it),
		cmocka_unit_test(the_function_of_a_rank_that_is_behind_is_named_with_its_callers),
		cmocka_unit_test(frames_without_a_file_are_ordinary_functions),
		cmocka_unit_test(workers_below_python_m_are_one_cluster),
		cmocka_unit_test(where_the_loaders_children_are_is_evidence),
		cmocka_unit_test(a_leaf_is_reported_without_a_stack),
		cmocka_unit_test(a_finding_of_two_ranks_in_different_functions_names_no_function),
		cmocka_unit_test(a_stack_of_another_step_is_ignored),
		cmocka_unit_test(a_stopped_rank_keeps_its_reason),
		cmocka_unit_test(a_rank_in_another_function_than_the_waiting_majority_is_accused),
		cmocka_unit_test(a_rank_in_another_collective_than_the_majority_is_accused),
		cmocka_unit_test(a_stack_alone_accuses_no_rank_without_a_waiting_majority),
		cmocka_unit_test(those_that_are_not_where_others_wait_are_accused_up_to_one_half),
		cmocka_unit_test(the_cluster_is_the_one_that_comparing_all_pairs_finds),
		cmocka_unit_test(a_job_of_very_many_workers_is_judged),
		cmocka_unit_test(a_report_says_if_collectives_may_be_unrecorded),
		cmocka_unit_test(a_rank_that_has_not_entered_the_collective_is_accused),
		cmocka_unit_test(a_message_whose_texts_do_not_end_is_invalid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
