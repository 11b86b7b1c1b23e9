/* SPDX-License-Identifier: Apache-2.0 */
#include "live/hostd/sharedblock.h"
#include "live/hub/hang.h"
#include "live/hub/plan.h"
#include "localize/cause.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

#define MS NSEC_PER_MSEC
#define NOW (1000 * NSEC_PER_SEC)

/* A worker's block as the agent makes it, and the daemon's view of it. */
struct pair {
	int fd;
	struct worker_block *block;
	struct block_reader reader;
};

static int make_block(size_t size, int seals)
{
	int fd = memfd_create("serve_test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	if (seals != 0)
		assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static struct worker_block *map_block(int fd)
{
	struct flight *flight =
		mmap(NULL, sizeof(*flight), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	assert_true(flight != MAP_FAILED);
	flight->block.magic = BLOCK_MAGIC;
	flight->block.version = BLOCK_VERSION;
	flight->block.ring_cnt = MARK_RING_CNT;
	flight->layout_bytes = sizeof(*flight);
	return &flight->block;
}

static int open_pair(void **state)
{
	static struct pair pair;
	struct err err;

	pair.fd = make_block(sizeof(struct flight), F_SEAL_SHRINK | F_SEAL_GROW);
	pair.block = map_block(pair.fd);
	assert_int_equal(block_open(pair.fd, &pair.reader, &err), 0);
	*state = &pair;
	return 0;
}

static int close_pair(void **state)
{
	struct pair *pair = *state;

	block_close(&pair->reader);
	(void)munmap(pair->block, sizeof(struct flight)); /* its first part */
	return close(pair->fd);
}

static void push(struct worker_block *block, uint16_t mark, int64_t time_ns)
{
	uint64_t head = atomic_load(&block->head);
	struct ring_record *record = &block->ring[head % MARK_RING_CNT];

	*record = (struct ring_record){ .time_ns = time_ns,
					.kind = mark,
					.seq = (uint32_t)(head + 1) };
	atomic_store(&block->head, head + 1);
}

static void a_file_that_could_shrink_is_refused(void **state)
{
	struct block_reader reader;
	struct err err;
	int fd = make_block(sizeof(struct flight), 0);

	(void)state;
	assert_int_equal(block_open(fd, &reader, &err), -EINVAL);
	assert_non_null(strstr(err.text, "F_SEAL_SHRINK"));
	assert_int_equal(close(fd), 0);
}

static void a_file_of_another_size_or_version_is_refused(void **state)
{
	struct block_reader reader;
	struct err err;
	int small = make_block(4096, F_SEAL_SHRINK);
	int empty = make_block(sizeof(struct flight), F_SEAL_SHRINK);

	(void)state;
	assert_int_equal(block_open(small, &reader, &err), -EINVAL);
	assert_int_equal(block_open(empty, &reader, &err), -EINVAL);
	assert_non_null(strstr(err.text, "different releases"));
	assert_int_equal(block_open(STDIN_FILENO, &reader, &err), -EINVAL);
	assert_int_equal(close(small), 0);
	assert_int_equal(close(empty), 0);
}

static void marks_come_out_in_order_and_once(void **state)
{
	struct pair *pair = *state;
	struct ring_record records[8];

	for (int i = 0; i < 5; i++)
		push(pair->block, MARK_OPTIMIZER, NOW + i);
	assert_int_equal(block_drain(&pair->reader, NOW + 10, records, 3), 3);
	assert_int_equal(block_drain(&pair->reader, NOW + 10, records + 3, 5), 2);
	assert_int_equal(records[4].time_ns, NOW + 4);
	assert_int_equal(block_drain(&pair->reader, NOW + 10, records, 8), 0);
}

static void a_ring_that_went_round_loses_the_oldest_and_counts(void **state)
{
	struct pair *pair = *state;
	struct ring_record record;

	for (unsigned i = 0; i < MARK_RING_CNT + 7; i++)
		push(pair->block, MARK_OPTIMIZER, NOW + i);
	assert_int_equal(block_drain(&pair->reader, NOW + 1 * NSEC_PER_SEC, &record, 1), 1);
	assert_int_equal(record.time_ns, NOW + 7);
	assert_int_equal(pair->reader.overrun, 7);
}

static void a_record_being_written_is_not_taken(void **state)
{
	struct pair *pair = *state;
	struct ring_record record;

	push(pair->block, MARK_OPTIMIZER, NOW);
	pair->block->ring[0].seq = 0;
	assert_int_equal(block_drain(&pair->reader, NOW, &record, 1), 0);
	assert_int_equal(pair->reader.torn, 1);
}

static void nonsense_is_dropped_and_counted(void **state)
{
	struct pair *pair = *state;
	struct ring_record records[8];

	push(pair->block, MARK_OPTIMIZER, NOW);
	push(pair->block, 999, NOW + 1);
	push(pair->block, MARK_OPTIMIZER, NOW - 1);
	push(pair->block, MARK_OPTIMIZER, NOW + 3600 * NSEC_PER_SEC);
	push(pair->block, MARK_OPTIMIZER, INT64_MIN);
	pair->block->ring[4].value = -5;
	push(pair->block, MARK_OPTIMIZER, NOW + 2);
	assert_int_equal(block_drain(&pair->reader, NOW + 5, records, 8), 2);
	assert_int_equal(pair->reader.invalid, 4);
}

static void a_head_anywhere_is_survived(void **state)
{
	static const uint64_t heads[] = { UINT64_MAX, 3, 0, 1ull << 63, MARK_RING_CNT, 1 };
	struct pair *pair = *state;
	struct ring_record records[64];

	for (size_t i = 0; i < ARRAY_SIZE(heads); i++) {
		atomic_store(&pair->block->head, heads[i]);
		for (unsigned j = 0; j < MARK_RING_CNT / 64 + 1; j++)
			assert_int_equal(block_drain(&pair->reader, NOW, records, 64), 0);
	}
}

static void a_ring_of_garbage_is_given_up(void **state)
{
	struct pair *pair = *state;
	struct ring_record records[64];

	memset(pair->block->ring, 0xa5, sizeof(pair->block->ring));
	atomic_store(&pair->block->head, MARK_RING_CNT);
	for (unsigned i = 0; i < MARK_RING_CNT; i++)
		assert_int_equal(block_drain(&pair->reader, NOW, records, 64), 0);
	assert_true(pair->reader.given_up);
	push(pair->block, MARK_OPTIMIZER, NOW);
	assert_int_equal(block_drain(&pair->reader, NOW, records, 64), 0);
}

static void an_order_reaches_the_block_with_its_id_last(void **state)
{
	const struct order_plan plan = { 3, 120, 5 * NSEC_PER_SEC, 16, 2 };
	struct pair *pair = *state;

	block_order(&pair->reader, &plan);
	assert_int_equal(atomic_load(&pair->block->order.id), 3);
	assert_int_equal(atomic_load(&pair->block->order.start_step), 120);
	assert_int_equal(atomic_load(&pair->block->order.min_steps), 16);
	assert_int_equal(atomic_load(&pair->block->order.max_steps), 16);
	assert_int_equal(atomic_load(&pair->block->order.stride), 2);
	block_cancel(&pair->reader);
	assert_int_equal(atomic_load(&pair->block->order.canceled), 1);
}

/* --- plan --- */

static struct wire_state worker_at(int rank, uint64_t step, int64_t step_ns)
{
	return (struct wire_state){ .worker = (uint32_t)rank + 1,
				    .rank = rank,
				    .world_size = 4,
				    .step = step,
				    .step_ns = step_ns,
				    .iteration_ns = step_ns,
				    .iterations = step,
				    .stride = 1,
				    .phase = PHASE_STEADY,
				    .process = 'S',
				    .last_mark = MARK_DATALOADER_END,
				    .last_ns = NOW - 20 * NSEC_PER_SEC };
}

static void all_workers_get_a_step_that_none_has_reached(void **state)
{
	const struct wire_state states[] = { worker_at(0, 100, 10 * MS),
					     worker_at(1, 103, 11 * MS) };
	const struct plan_limits limits = { 20 * NSEC_PER_SEC, 16 };
	struct order_plan plan;

	(void)state;
	assert_int_equal(plan_order(states, 2, &limits, &plan), 0);
	assert_true(plan.start_step >= 103 + PLAN_MARGIN_NS / (10 * MS));
	assert_true(plan.start_step <= 103 + PLAN_MARGIN_NS / (10 * MS) + 2);
	assert_int_equal(plan.steps, 16);
}

static void long_iterations_fill_the_window_but_at_least_five(void **state)
{
	const struct wire_state slow = worker_at(0, 10, 2 * NSEC_PER_SEC);
	const struct plan_limits limits = { 20 * NSEC_PER_SEC, 16 },
				 brief = { 1 * NSEC_PER_SEC, 16 };
	struct order_plan plan;

	(void)state;
	assert_int_equal(plan_order(&slow, 1, &limits, &plan), 0);
	assert_int_equal(plan.steps, 10);
	assert_int_equal(plan.start_step, 10 + PLAN_MARGIN_STEPS);
	assert_int_equal(plan_order(&slow, 1, &brief, &plan), 0);
	assert_int_equal(plan.steps, PLAN_STEPS_MIN);
}

static void two_optimizers_make_steps_of_two_marks(void **state)
{
	struct wire_state gan = worker_at(0, 101, 10 * MS);
	const struct plan_limits limits = { 200 * MS, 100 };
	struct order_plan plan;

	(void)state;
	gan.stride = 2;
	assert_int_equal(plan_order(&gan, 1, &limits, &plan), 0);
	assert_int_equal(plan.stride, 2);
	assert_int_equal(plan.start_step % 2, 0);
	assert_int_equal(plan.steps, 10);
}

static void without_a_known_pace_there_is_no_plan(void **state)
{
	struct wire_state states[] = { worker_at(0, 0, 0), worker_at(1, 7, 10 * MS) };
	const struct plan_limits limits = { 200 * MS, 100 };
	struct order_plan plan;

	(void)state;
	states[1].phase = PHASE_GONE;
	assert_int_equal(plan_order(states, 2, &limits, &plan), -EAGAIN);
}

/* --- verdict --- */

static struct report blocked(const struct wire_state *states, size_t cnt)
{
	struct report report;

	assert_int_equal(
		verdict_blocked(
			&(struct verdict_standstill){ .states = states, .cnt = cnt, .now_ns = NOW },
			&report),
		0);
	return report;
}

static void make_four(struct wire_state states[static 4])
{
	for (int i = 0; i < 4; i++)
		states[i] = worker_at(i, 500, 50 * MS);
}

static void a_stopped_rank_is_accused_and_the_others_are_victims(void **state)
{
	struct wire_state states[4];
	struct report report;

	(void)state;
	make_four(states);
	states[2].process = 'T';
	report = blocked(states, 4);
	assert_int_equal(report.verdict, VERDICT_ABNORMAL);
	assert_int_equal(report.finding_cnt, 1);
	assert_string_equal(report.findings[0].id, "PT-107");
	assert_string_equal(report.findings[0].cause, "stopped-process");
	assert_ptr_equal(report.findings[0].advice, cause_text(CAUSE_STOPPED)->advice);
	assert_int_equal(report.findings[0].rank_cnt, 1);
	assert_int_equal(report.findings[0].ranks[0], 2);
	assert_int_equal(report.findings[0].victim_cnt, 3);
	assert_non_null(strstr(report.findings[0].evidence[0], "stopped"));
	arena_done(&report.arena);
}

static void the_rank_that_waits_for_data_is_accused(void **state)
{
	struct wire_state states[4];
	struct report report;

	(void)state;
	make_four(states);
	states[1].last_mark = MARK_DATALOADER;
	report = blocked(states, 4);
	assert_int_equal(report.finding_cnt, 1);
	assert_string_equal(report.findings[0].id, "PT-901");
	assert_string_equal(report.findings[0].name, "dataloader.next");
	assert_int_equal(report.findings[0].ranks[0], 1);
	arena_done(&report.arena);
}

static void a_rank_that_is_a_step_behind_is_accused(void **state)
{
	struct wire_state states[4];
	struct report report;

	(void)state;
	make_four(states);
	states[3].step = 499;
	report = blocked(states, 4);
	assert_string_equal(report.findings[0].id, "PT-901");
	assert_string_equal(report.findings[0].name, "between two marks of the iteration");
	assert_int_equal(report.findings[0].ranks[0], 3);
	states[3].process = 'D';
	arena_done(&report.arena);
	report = blocked(states, 4);
	assert_string_equal(report.findings[0].id, "PT-901");
	assert_string_equal(report.findings[0].name, "uninterruptible wait in the kernel");
	arena_done(&report.arena);
}

static void a_rank_whose_process_ended_is_accused(void **state)
{
	struct wire_state states[4];
	struct report report;

	(void)state;
	make_four(states);
	states[0].process = 'X';
	states[0].phase = PHASE_GONE;
	report = blocked(states, 4);
	assert_string_equal(report.findings[0].id, "PT-901");
	assert_string_equal(report.findings[0].name, "process ended");
	assert_int_equal(report.findings[0].ranks[0], 0);
	assert_non_null(strstr(report.findings[0].evidence[0], "without saying so"));
	arena_done(&report.arena);
}

static void a_job_that_ends_is_told_from_a_rank_that_ends_early(void **state)
{
	struct wire_state states[4];

	(void)state;
	make_four(states);
	assert_false(verdict_is_ending(states, 4));
	states[2].bye = 1;
	assert_true(verdict_is_ending(states, 4));
	states[2].step--;
	assert_false(verdict_is_ending(states, 4));
}

static void nobody_is_accused_when_all_look_alike(void **state)
{
	struct wire_state states[4];
	struct report report;

	(void)state;
	make_four(states);
	report = blocked(states, 4);
	assert_int_equal(report.verdict, VERDICT_INCONCLUSIVE);
	assert_int_equal(report.finding_cnt, 0);
	assert_int_equal(report.note_cnt, 4);
	arena_done(&report.arena);
}

static void a_majority_that_is_behind_is_not_accused(void **state)
{
	struct wire_state states[4];
	struct report report;

	(void)state;
	make_four(states);
	states[0].step = 501;
	report = blocked(states, 4);
	assert_int_equal(report.verdict, VERDICT_INCONCLUSIVE);
	arena_done(&report.arena);
}

static void a_rank_whose_hook_is_off_is_neither_accused_nor_a_victim(void **state)
{
	struct wire_state states[4];
	struct report report;

	(void)state;
	make_four(states);
	states[1].step = 400;
	states[1].phase = PHASE_SILENT;
	states[2].process = 'T';
	report = blocked(states, 4);
	assert_int_equal(report.finding_cnt, 1);
	assert_int_equal(report.findings[0].rank_cnt, 1);
	assert_int_equal(report.findings[0].ranks[0], 2);
	assert_int_equal(report.findings[0].victim_cnt, 2);
	arena_done(&report.arena);
}

static void a_quiet_job_says_whose_hook_was_off(void **state)
{
	struct wire_state workers[2] = { worker_at(0, 200, 10 * MS), worker_at(1, 90, 10 * MS) };
	struct verdict_facts facts = { .states = workers, .cnt = 2 };
	struct report report;

	(void)state;
	workers[1].silent = 1;
	assert_int_equal(verdict_quiet(&facts, &report), 0);
	assert_int_equal(report.verdict, VERDICT_HEALTHY);
	assert_int_equal(report.workers_analyzed, 1);
	assert_non_null(strstr(report.reason, "off in 1 of 2 workers"));
	arena_done(&report.arena);
	workers[0].silent = 1;
	assert_int_equal(verdict_quiet(&facts, &report), 0);
	assert_int_equal(report.verdict, VERDICT_INCONCLUSIVE);
	arena_done(&report.arena);
}

static void a_quiet_job_is_healthy_and_a_short_one_inconclusive(void **state)
{
	struct wire_state worker = worker_at(0, 200, 10 * MS);
	struct verdict_facts facts = { .states = &worker, .cnt = 1 };
	struct report report;

	(void)state;
	assert_int_equal(verdict_quiet(&facts, &report), 0);
	assert_int_equal(report.verdict, VERDICT_HEALTHY);
	assert_string_equal(report.reason, "200 iterations watched, no slowdown");
	arena_done(&report.arena);
	worker.iterations = VERDICT_ITERATIONS_MIN - 1;
	assert_int_equal(verdict_quiet(&facts, &report), 0);
	assert_int_equal(report.verdict, VERDICT_INCONCLUSIVE);
	arena_done(&report.arena);
	worker.iterations = 1;
	assert_int_equal(verdict_quiet(&facts, &report), 0);
	assert_non_null(strstr(report.reason, "only 1 iteration was seen, 30 are needed"));
	arena_done(&report.arena);
	facts.cnt = 0;
	assert_int_equal(verdict_quiet(&facts, &report), 0);
	assert_int_equal(report.verdict, VERDICT_INCONCLUSIVE);
	assert_non_null(strstr(report.reason, "import perftracker"));
	assert_non_null(strstr(report.reason, "started by fork"));
	arena_done(&report.arena);
}

static void a_job_that_failed_is_not_called_healthy(void **state)
{
	struct wire_state worker = worker_at(2, 200, 10 * MS);
	struct verdict_facts facts = {
		.states = &worker, .cnt = 1, .exit_status = 1, .first_gone = &worker
	};
	struct report report;

	(void)state;
	worker.pid = 77;
	assert_int_equal(verdict_quiet(&facts, &report), 0);
	assert_int_equal(report.verdict, VERDICT_INCONCLUSIVE);
	assert_non_null(strstr(report.reason, "status 1, and rank 2 (pid 77)"));
	arena_done(&report.arena);
	facts.exit_status = 0;
	assert_int_equal(verdict_quiet(&facts, &report), 0);
	assert_int_equal(report.verdict, VERDICT_HEALTHY);
	arena_done(&report.arena);
}

static void a_job_that_stood_still_is_not_called_healthy(void **state)
{
	struct wire_state worker = worker_at(0, 200, 10 * MS);
	struct verdict_facts facts = { .states = &worker, .cnt = 1, .standstills = 1 };
	struct report report;

	(void)state;
	assert_int_equal(verdict_quiet(&facts, &report), 0);
	assert_int_equal(report.verdict, VERDICT_INCONCLUSIVE);
	assert_non_null(strstr(report.reason, "1 time no iteration ended"));
	assert_non_null(strstr(report.reason, "perftracker timeline"));
	assert_null(strstr(report.reason, "no slowdown"));
	arena_done(&report.arena);
	facts.exit_status = 1;
	facts.first_gone = &worker;
	assert_int_equal(verdict_quiet(&facts, &report), 0);
	assert_non_null(strstr(report.reason, "then none for a while; but the job ended"));
	arena_done(&report.arena);
}

#define with_pair(f) cmocka_unit_test_setup_teardown(f, open_pair, close_pair)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_that_could_shrink_is_refused),
		cmocka_unit_test(a_file_of_another_size_or_version_is_refused),
		with_pair(marks_come_out_in_order_and_once),
		with_pair(a_ring_that_went_round_loses_the_oldest_and_counts),
		with_pair(a_record_being_written_is_not_taken),
		with_pair(nonsense_is_dropped_and_counted),
		with_pair(a_head_anywhere_is_survived),
		with_pair(a_ring_of_garbage_is_given_up),
		with_pair(an_order_reaches_the_block_with_its_id_last),
		cmocka_unit_test(all_workers_get_a_step_that_none_has_reached),
		cmocka_unit_test(long_iterations_fill_the_window_but_at_least_five),
		cmocka_unit_test(two_optimizers_make_steps_of_two_marks),
		cmocka_unit_test(without_a_known_pace_there_is_no_plan),
		cmocka_unit_test(a_stopped_rank_is_accused_and_the_others_are_victims),
		cmocka_unit_test(the_rank_that_waits_for_data_is_accused),
		cmocka_unit_test(a_rank_that_is_a_step_behind_is_accused),
		cmocka_unit_test(a_rank_whose_process_ended_is_accused),
		cmocka_unit_test(a_job_that_ends_is_told_from_a_rank_that_ends_early),
		cmocka_unit_test(nobody_is_accused_when_all_look_alike),
		cmocka_unit_test(a_majority_that_is_behind_is_not_accused),
		cmocka_unit_test(a_rank_whose_hook_is_off_is_neither_accused_nor_a_victim),
		cmocka_unit_test(a_quiet_job_says_whose_hook_was_off),
		cmocka_unit_test(a_quiet_job_is_healthy_and_a_short_one_inconclusive),
		cmocka_unit_test(a_job_that_failed_is_not_called_healthy),
		cmocka_unit_test(a_job_that_stood_still_is_not_called_healthy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
