/* SPDX-License-Identifier: Apache-2.0 */
#include "stalls/stalljudge.h"

#include "base/test_alloc.h"
#include "stalls/test_recording.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

#define MUNMAP                                                                                \
	"__schedule<schedule<schedule_preempt_disabled<rwsem_down_write_slowpath<down_write_" \
	"killable<__vm_munmap<__x64_sys_munmap<do_syscall_64"
#define MMAP "__schedule<schedule<rwsem_down_write_slowpath<down_write_killable<vm_mmap_pgoff"
#define SMAPS_WAKE "rwsem_wake<up_read<m_stop<seq_read_iter<vfs_read"
#define SMAPS_RUN "smaps_pte_range<walk_pgd_range<smap_gather_stats<show_smap<seq_read_iter"
#define FUTEX "__schedule<schedule<futex_do_wait<__futex_wait<futex_wait<do_futex"
#define TIMER \
	"hrtimer_wakeup<__hrtimer_run_queues<hrtimer_interrupt<asm_sysvec_apic_timer_interrupt"

struct fixture {
	struct stall_recording recording;
	struct stall_verdict verdict;
	bool judged;
};

static int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	test_recording(&fixture->recording);
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	if (fixture->judged)
		stallverdict_done(&fixture->verdict);
	stallrecording_done(&fixture->recording);
	free(fixture);
	return 0;
}

static void judge(struct fixture *fixture)
{
	stallrecording_sort(&fixture->recording);
	assert_int_equal(stalljudge(&fixture->recording, &fixture->verdict), 0);
	fixture->judged = true;
}

/* The finding of a class; NULL: there is none. */
static const struct stall_finding *find(const struct fixture *fixture, enum stall_class class)
{
	vec_foreach(finding, &fixture->verdict.findings) {
		if (finding->class == class)
			return finding;
	}
	return NULL;
}

static double ms(int64_t ns)
{
	return (double)ns / NSEC_PER_MSEC;
}

static void a_reader_of_smaps_is_named_with_period_and_function(void **state)
{
	struct fixture *fixture = *state;
	struct stall_recording *r = &fixture->recording;
	const struct stall_finding *finding;

	test_process(r, 800, "python3 agent.py");
	for (int i = 0; i < 4; i++) {
		const double begin = 1000 + 2530 * i;

		test_block(r, begin, begin + 8, MUNMAP, 800, SMAPS_WAKE);
		test_block(r, begin + 9, begin + 16, MMAP, 800, SMAPS_WAKE);
		test_sample(r, begin + 4, 800, SMAPS_RUN);
	}
	judge(fixture);
	finding = find(fixture, STALL_MMAP_LOCK);
	assert_non_null(finding);
	assert_true(finding->matters);
	assert_int_equal(finding->culprits[0].pid, 800);
	assert_false(finding->culprits[0].same);
	assert_string_equal(finding->holder, "smap_gather_stats");
	assert_int_equal(finding->cnt, 8);
	assert_int_equal(finding->burst_cnt, 4);
	assert_true(ms(finding->period_ns) > 2529 && ms(finding->period_ns) < 2531);
	assert_true(ms(finding->total_ns) > 58 && ms(finding->total_ns) < 60);
	assert_int_equal(fixture->verdict.stall_cnt, 1);
	assert_false(fixture->verdict.incomplete);
}

static void a_thread_of_its_own_that_holds_the_map_is_no_foreign_reader(void **state)
{
	struct fixture *fixture = *state;

	for (int i = 0; i < 5; i++)
		test_block(&fixture->recording, 1000 + 100 * i, 1020 + 100 * i, MUNMAP, 101,
			   "rwsem_wake<up_write<__vm_munmap");
	judge(fixture);
	assert_null(find(fixture, STALL_MMAP_LOCK));
	assert_non_null(find(fixture, STALL_MM_INTERNAL));
	assert_int_equal(find(fixture, STALL_MM_INTERNAL)->culprits[0].tid, 101);
	assert_true(find(fixture, STALL_MM_INTERNAL)->culprits[0].same);
}

static void an_interrupted_process_is_innocent(void **state)
{
	struct fixture *fixture = *state;

	test_process(&fixture->recording, 900, "innocent");
	for (int i = 0; i < 5; i++)
		test_block(&fixture->recording, 1000 + 100 * i, 1030 + 100 * i, MUNMAP, 900, TIMER);
	judge(fixture);
	assert_null(find(fixture, STALL_MMAP_LOCK));
	assert_non_null(find(fixture, STALL_MM_UNSEEN));
	assert_int_equal(find(fixture, STALL_MM_UNSEEN)->culprit_cnt, 0);
}

/* 200 ms without a CPU; who had it is known. */
static void starve(struct stall_recording *r)
{
	test_process(r, 700, "hog");
	test_process(r, 900, "last one");
	test_out(r, 1000, 100, 'R', "__schedule<schedule<exit_to_user_mode_loop");
	test_run(r, 1000, 0, 700);
	test_run(r, 1199, 0, 900);
	test_run(r, 1199.99, 0, 100);
	test_in(r, 1200, 100);
	test_run(r, 1200, 0, 100);
}

static void starvation_names_who_had_the_cpu_not_who_had_it_last(void **state)
{
	struct fixture *fixture = *state;
	const struct stall_finding *finding;

	starve(&fixture->recording);
	judge(fixture);
	finding = find(fixture, STALL_STARVED);
	assert_non_null(finding);
	assert_true(finding->matters);
	assert_int_equal(finding->culprits[0].pid, 700);
	assert_int_equal(finding->culprit_cnt, 2);
	assert_true(ms(finding->culprits[0].ns) > 198.9 && ms(finding->culprits[0].ns) < 199.1);
	assert_false(finding->likely);
}

static void where_changes_were_not_recorded_samples_name_who_had_the_cpu(void **state)
{
	struct fixture *fixture = *state;
	struct stall_recording *r = &fixture->recording;

	test_process(r, 700, "hog");
	test_out(r, 1000, 100, 'R', "");
	for (int i = 0; i < 20; i++)
		test_sample(r, 1005 + 5 * i, 700, "");
	test_in(r, 1200, 100);
	judge(fixture);
	assert_non_null(find(fixture, STALL_STARVED));
	assert_int_equal(find(fixture, STALL_STARVED)->culprits[0].pid, 700);
	assert_true(ms(find(fixture, STALL_STARVED)->culprits[0].ns) > 99);
	assert_false(find(fixture, STALL_STARVED)->likely);
}

static void add_counters(struct stall_recording *r, double at_ms, uint64_t cnt, double held_ms)
{
	(void)vec_push(&r->counters,
		       (struct stall_counters){ .time_ns = test_at(at_ms),
						.pid = 100,
						.throttled_cnt = cnt,
						.throttled_ns = (uint64_t)(held_ms * 1e6) });
}

static void a_quota_comes_before_starvation(void **state)
{
	struct fixture *fixture = *state;

	starve(&fixture->recording);
	add_counters(&fixture->recording, 990, 7, 500);
	add_counters(&fixture->recording, 1210, 8, 690);
	fixture->recording.processes.data[0].quota_us = 60000;
	judge(fixture);
	assert_null(find(fixture, STALL_STARVED));
	assert_non_null(find(fixture, STALL_QUOTA));
	assert_int_equal(find(fixture, STALL_QUOTA)->culprit_cnt, 0);
	assert_int_equal(find(fixture, STALL_QUOTA)->throttled_cnt, 1);
	assert_int_equal(find(fixture, STALL_QUOTA)->quota_us, 60000);
}

static void a_quota_that_held_back_nothing_then_is_not_the_cause(void **state)
{
	struct fixture *fixture = *state;

	starve(&fixture->recording);
	add_counters(&fixture->recording, 500, 6, 300);
	add_counters(&fixture->recording, 990, 8, 500);
	add_counters(&fixture->recording, 1210, 8, 500);
	judge(fixture);
	assert_null(find(fixture, STALL_QUOTA));
	assert_non_null(find(fixture, STALL_STARVED));
}

static void a_wait_for_an_idle_cpu_blames_no_process(void **state)
{
	struct fixture *fixture = *state;

	test_out(&fixture->recording, 1000, 100, 'R', "");
	test_run(&fixture->recording, 1000, 0, 0);
	test_in(&fixture->recording, 1100, 100);
	judge(fixture);
	assert_null(find(fixture, STALL_STARVED));
	assert_non_null(find(fixture, STALL_UNPLACED));
	assert_int_equal(find(fixture, STALL_UNPLACED)->culprit_cnt, 0);
}

static void a_futex_inside_the_gil_is_the_gil_and_its_holder_is_who_let_go(void **state)
{
	struct fixture *fixture = *state;
	struct stall_recording *r = &fixture->recording;
	const struct stall_finding *finding;

	r->processes.data[0].gil_begin = 0x1000;
	r->processes.data[0].gil_end = 0x1100;
	test_thread(r, 101, 100, 'S');
	for (int i = 0; i < 10; i++) {
		test_out(r, 1000 + 5.2 * i, 100, 'S', FUTEX);
		r->events.data[r->events.cnt - 1].address = 0x1040;
		if (i < 9)
			test_wake(r, 1005 + 5.2 * i, 100, 900, TIMER);
		else
			test_wake(r, 1005 + 5.2 * i, 100, 101, "futex_wake<do_futex");
		test_in(r, 1005.1 + 5.2 * i, 100);
	}
	judge(fixture);
	finding = find(fixture, STALL_GIL);
	assert_non_null(finding);
	assert_true(finding->matters);
	assert_int_equal(finding->culprit_cnt, 1);
	assert_int_equal(finding->culprits[0].tid, 101);
	assert_true(ms(finding->culprits[0].ns) > 49 && ms(finding->culprits[0].ns) < 51);
	assert_int_equal(finding->cnt, 1);
	assert_string_equal(finding->did, "was blocked");
}

static void a_futex_elsewhere_is_a_wait_for_an_own_thread(void **state)
{
	struct fixture *fixture = *state;

	fixture->recording.processes.data[0].gil_begin = 0x1000;
	fixture->recording.processes.data[0].gil_end = 0x1100;
	test_block(&fixture->recording, 1000, 1500, FUTEX, 101, "futex_wake<do_futex");
	judge(fixture);
	assert_null(find(fixture, STALL_GIL));
	assert_non_null(find(fixture, STALL_FUTEX));
	assert_false(find(fixture, STALL_FUTEX)->matters);
	assert_int_equal(fixture->verdict.stall_cnt, 0);
}

static void a_stop_names_who_sent_the_signal(void **state)
{
	struct fixture *fixture = *state;
	struct stall_recording *r = &fixture->recording;

	test_process(r, 300, "bash");
	test_event(r, &(struct stall_event){ .time_ns = test_at(999),
					     .kind = STALL_SIGNAL,
					     .tid = 100,
					     .pid = 300,
					     .value = 19,
					     .state = '-' });
	test_out(r, 1000, 100, 'T', "__schedule<schedule<do_signal_stop<get_signal");
	test_wake(r, 1700, 100, 400, "signal_wake_up_state");
	test_in(r, 1700.2, 100);
	judge(fixture);
	assert_non_null(find(fixture, STALL_STOPPED));
	assert_int_equal(find(fixture, STALL_STOPPED)->culprits[0].pid, 300);
	assert_true(find(fixture, STALL_STOPPED)->matters);
}

static void a_thread_stopped_all_the_time_is_seen_without_any_event(void **state)
{
	struct fixture *fixture = *state;

	fixture->recording.threads.data[0].state = 'T';
	judge(fixture);
	assert_non_null(find(fixture, STALL_STOPPED));
	assert_true(ms(find(fixture, STALL_STOPPED)->total_ns) > 9999);
}

static void a_tracer_is_named(void **state)
{
	struct fixture *fixture = *state;

	test_process(&fixture->recording, 300, "gdb");
	fixture->recording.processes.data[0].tracer = 300;
	test_block(&fixture->recording, 1000, 1500, "__schedule<schedule<ptrace_stop", 300, "");
	judge(fixture);
	assert_non_null(find(fixture, STALL_TRACED));
	assert_int_equal(find(fixture, STALL_TRACED)->culprits[0].pid, 300);
}

static void a_disk_names_its_file(void **state)
{
	struct fixture *fixture = *state;
	struct stall_recording *r = &fixture->recording;

	test_block(r, 1000, 1080, "__schedule<schedule<io_schedule<folio_wait_bit_common<ext4_sync",
		   900, TIMER);
	r->events.data[0].file = test_text(r, "/data/x");
	judge(fixture);
	assert_non_null(find(fixture, STALL_DISK));
	assert_string_equal(strtab_text(&r->texts, find(fixture, STALL_DISK)->file), "/data/x");
	assert_int_equal(find(fixture, STALL_DISK)->culprit_cnt, 0);
}

static void a_network_file_system_is_no_disk(void **state)
{
	struct fixture *fixture = *state;

	test_block(&fixture->recording, 1000, 1080,
		   "__schedule<schedule<io_schedule<folio_wait_bit_common<nfs_wait_on_request", 900,
		   TIMER);
	judge(fixture);
	assert_null(find(fixture, STALL_DISK));
	assert_non_null(find(fixture, STALL_NETWORK_FILE));
}

static void a_program_that_sleeps_has_no_stall(void **state)
{
	struct fixture *fixture = *state;

	for (int i = 0; i < 9; i++)
		test_block(&fixture->recording, 1000 * i + 10, 1000 * i + 900,
			   "__schedule<schedule<do_nanosleep<hrtimer_nanosleep", 900, TIMER);
	judge(fixture);
	assert_int_equal(fixture->verdict.stall_cnt, 0);
	assert_false(fixture->verdict.incomplete);
	assert_int_equal(fixture->verdict.accounts.data[0].lost_ns, 0);
	assert_true(ms(fixture->verdict.accounts.data[0].waited_ns) > 8000);
}

static void an_unknown_wait_is_not_explained(void **state)
{
	struct fixture *fixture = *state;

	test_block(&fixture->recording, 1000, 1100, "__schedule<schedule<some_new_function", 0, "");
	test_block(&fixture->recording, 2000, 2100, MUNMAP, 0, "");
	judge(fixture);
	assert_non_null(find(fixture, STALL_UNKNOWN));
	assert_string_equal(find(fixture, STALL_UNKNOWN)->function, "some_new_function");
	assert_true(ms(fixture->verdict.accounts.data[0].lost_ns) > 199);
	assert_true(ms(fixture->verdict.accounts.data[0].explained_ns) < 101);
}

static void ranks_hit_in_turn_are_told(void **state)
{
	struct fixture *fixture = *state;
	struct stall_recording *r = &fixture->recording;

	test_process(r, 800, "agent");
	for (uint32_t rank = 1; rank < 3; rank++)
		test_thread(r, 100 + 100 * rank, 100 + 100 * rank, 'R');
	for (int round = 0; round < 4; round++)
		for (uint32_t rank = 0; rank < 3; rank++) {
			const double begin = 1000 + 2500 * round + 18 * rank;

			test_out(r, begin, 100 + 100 * rank, 'D', MUNMAP);
			test_wake(r, begin + 17, 100 + 100 * rank, 800, SMAPS_WAKE);
			test_in(r, begin + 17.1, 100 + 100 * rank);
		}
	judge(fixture);
	assert_non_null(find(fixture, STALL_MMAP_LOCK));
	assert_true(find(fixture, STALL_MMAP_LOCK)->in_turn);
	assert_int_equal(find(fixture, STALL_MMAP_LOCK)->thread_bits, 7);
	assert_true(ms(find(fixture, STALL_MMAP_LOCK)->period_ns) > 2499);
}

static void a_period_that_no_single_thread_shows_is_found(void **state)
{
	struct fixture *fixture = *state;
	struct stall_recording *r = &fixture->recording;

	test_process(r, 800, "agent");
	test_thread(r, 200, 200, 'R');
	for (int round = 0; round < 4; round++) { /* 1, 3, 5, 7 s; threads 0, 0, 1, 1 */
		const uint32_t tid = round < 2 ? 100 : 200;

		test_out(r, 1000 + 2000 * round, tid, 'D', MUNMAP);
		test_wake(r, 1010 + 2000 * round, tid, 800, SMAPS_WAKE);
		test_in(r, 1011 + 2000 * round, tid);
	}
	judge(fixture);
	assert_non_null(find(fixture, STALL_MMAP_LOCK));
	assert_true(ms(find(fixture, STALL_MMAP_LOCK)->period_ns) > 1999);
	assert_false(find(fixture, STALL_MMAP_LOCK)->in_turn);
}

static void a_burst_older_than_the_window_says_nothing_of_the_period(void **state)
{
	struct fixture *fixture = *state;
	struct stall_recording *r = &fixture->recording;

	test_process(r, 800, "agent");
	r->threads.data[0].state = 'D';
	test_wake(r, 500, 100, 800, SMAPS_WAKE);
	test_in(r, 501, 100);
	for (int i = 0; i < 4; i++)
		test_block(r, 1000 + 2000 * i, 1030 + 2000 * i, MUNMAP, 800, SMAPS_WAKE);
	test_event(r, &(struct stall_event){ .time_ns = test_at(0),
					     .kind = STALL_LOOK,
					     .tid = 100,
					     .pid = 100,
					     .state = 'D',
					     .chain = test_text(r, MUNMAP) });
	judge(fixture);
	assert_non_null(find(fixture, STALL_MMAP_LOCK));
	assert_int_equal(find(fixture, STALL_MMAP_LOCK)->cnt, 5);
	assert_true(ms(find(fixture, STALL_MMAP_LOCK)->period_ns) > 1999);
}

static void the_culprits_own_rhythm_is_told_where_its_victim_is_hit_at_random(void **state)
{
	static const double HITS[] = { 1010, 3900, 6020, 8990 }; /* inside of its reads */
	struct fixture *fixture = *state;
	struct stall_recording *r = &fixture->recording;

	test_process(r, 800, "agent");
	for (int i = 0; i < 4; i++) {
		for (int j = 0; j < 10; j++)
			test_run(r, 1000 + 2500 * i + 100 * j, 1, 800);
		test_block(r, HITS[i], HITS[i] + 25, MUNMAP, 800, SMAPS_WAKE);
	}
	judge(fixture);
	assert_true(ms(find(fixture, STALL_MMAP_LOCK)->period_ns) > 2499 &&
		    ms(find(fixture, STALL_MMAP_LOCK)->period_ns) < 2501);
}

static void irregular_bursts_have_no_period(void **state)
{
	struct fixture *fixture = *state;

	test_process(&fixture->recording, 800, "agent");
	for (int i = 0; i < 6; i++)
		test_block(&fixture->recording, 1000 + 1000 * i + 100 * i * i,
			   1030 + 1000 * i + 100 * i * i, MUNMAP, 800, SMAPS_WAKE);
	judge(fixture);
	assert_int_equal(find(fixture, STALL_MMAP_LOCK)->period_ns, 0);
}

static void without_wakers_the_kernels_sum_tells_of_starvation(void **state)
{
	struct fixture *fixture = *state;
	struct stall_recording *r = &fixture->recording;

	r->sources = STALL_BY_SWITCHES | STALL_BY_LOOKS;
	test_process(r, 700, "hog");
	for (int i = 0; i < 100; i++)
		test_event(r, &(struct stall_event){ .time_ns = test_at(1000 + 10 * i),
						     .kind = STALL_DELAY,
						     .tid = 100,
						     .pid = 100,
						     .value = 5 * NSEC_PER_MSEC,
						     .state = '-' });
	test_event(r, &(struct stall_event){ .time_ns = test_at(3000),
					     .kind = STALL_USED,
					     .pid = 700,
					     .value = NSEC_PER_SEC,
					     .state = '-' });
	judge(fixture);
	assert_non_null(find(fixture, STALL_STARVED));
	assert_true(ms(find(fixture, STALL_STARVED)->total_ns) > 499);
	assert_true(find(fixture, STALL_STARVED)->likely);
	assert_int_equal(find(fixture, STALL_STARVED)->culprits[0].pid, 700);
}

static void page_faults_on_the_cpu_are_told_but_are_no_stall(void **state)
{
	struct fixture *fixture = *state;

	for (int i = 0; i < 300; i++)
		test_sample(&fixture->recording, 1000 + 5 * i, 100,
			    "clear_page_erms<do_anonymous_page<handle_mm_fault<exc_page_fault");
	judge(fixture);
	assert_non_null(find(fixture, STALL_FAULTS));
	assert_true(find(fixture, STALL_FAULTS)->matters);
	assert_int_equal(fixture->verdict.stall_cnt, 0);
}

static void lost_records_make_the_answer_incomplete(void **state)
{
	struct fixture *fixture = *state;

	fixture->recording.lost = 1;
	judge(fixture);
	assert_true(fixture->verdict.incomplete);
	assert_int_equal(fixture->verdict.stall_cnt, 0);
}

static void each_failed_allocation_is_an_error(void **state)
{
	struct fixture *fixture = *state;
	struct stall_recording *r = &fixture->recording;
	int error = -ENOMEM;

	starve(r);
	test_block(r, 3000, 3010, MUNMAP, 700, SMAPS_WAKE);
	test_sample(r, 5000, 100, "clear_page_erms<exc_page_fault");
	stallrecording_sort(r);
	for (int n = 0; error == -ENOMEM; n++) {
		allocations_left = n;
		error = stalljudge(r, &fixture->verdict);
		allocations_left = -1;
		assert_true(n < 1000);
	}
	assert_int_equal(error, 0);
	fixture->judged = true;
}

static void test_collect(struct stall_recording *r, double begin_ms, double for_ms, uint32_t tid)
{
	test_event(r, &(struct stall_event){ .time_ns = test_at(begin_ms),
					     .kind = STALL_COLLECT,
					     .tid = tid,
					     .pid = 100,
					     .state = '-',
					     .value = (uint64_t)(for_ms * NSEC_PER_MSEC) });
}

static void collections_of_garbage_count_where_their_thread_ran(void **state)
{
	struct fixture *fixture = *state;
	struct stall_recording *r = &fixture->recording;
	const struct stall_finding *finding;

	test_collect(r, 1000, 50, 100);
	test_collect(r, 2000, 80, 100);
	test_block(r, 2020, 2050, MUNMAP, 800, SMAPS_WAKE); /* has a cause of its own */
	test_collect(r, 3000, 60, 999);			    /* of a thread that is not watched */
	test_collect(r, 9995, 400, 100);		    /* ends behind the window */
	judge(fixture);
	finding = find(fixture, STALL_GC);
	assert_non_null(finding);
	assert_true(finding->matters);
	assert_true(fabs((double)ms(finding->total_ns) - 105.1) < 0.2);
	assert_float_equal(ms(finding->longest_ns), 50, 0.001);
	assert_int_equal(finding->cnt, 4);
	assert_int_equal(finding->culprit_cnt, 0);
	assert_float_equal(ms(fixture->verdict.accounts.data[0].lost_ns), 135, 0.2);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(collections_of_garbage_count_where_their_thread_ran),
		TEST(a_reader_of_smaps_is_named_with_period_and_function),
		TEST(a_thread_of_its_own_that_holds_the_map_is_no_foreign_reader),
		TEST(an_interrupted_process_is_innocent),
		TEST(starvation_names_who_had_the_cpu_not_who_had_it_last),
		TEST(where_changes_were_not_recorded_samples_name_who_had_the_cpu),
		TEST(a_quota_comes_before_starvation),
		TEST(a_quota_that_held_back_nothing_then_is_not_the_cause),
		TEST(a_wait_for_an_idle_cpu_blames_no_process),
		TEST(a_futex_inside_the_gil_is_the_gil_and_its_holder_is_who_let_go),
		TEST(a_futex_elsewhere_is_a_wait_for_an_own_thread),
		TEST(a_stop_names_who_sent_the_signal),
		TEST(a_thread_stopped_all_the_time_is_seen_without_any_event),
		TEST(a_tracer_is_named),
		TEST(a_disk_names_its_file),
		TEST(a_network_file_system_is_no_disk),
		TEST(a_program_that_sleeps_has_no_stall),
		TEST(an_unknown_wait_is_not_explained),
		TEST(ranks_hit_in_turn_are_told),
		TEST(a_period_that_no_single_thread_shows_is_found),
		TEST(a_burst_older_than_the_window_says_nothing_of_the_period),
		TEST(the_culprits_own_rhythm_is_told_where_its_victim_is_hit_at_random),
		TEST(irregular_bursts_have_no_period),
		TEST(without_wakers_the_kernels_sum_tells_of_starvation),
		TEST(page_faults_on_the_cpu_are_told_but_are_no_stall),
		TEST(lost_records_make_the_answer_incomplete),
		TEST(each_failed_allocation_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
