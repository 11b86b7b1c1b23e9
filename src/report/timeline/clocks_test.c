/* SPDX-License-Identifier: Apache-2.0 */
#include "report/timeline/clocks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

#define RANK_MAX 8
#define EVENT_MAX 300
#define SECOND NSEC_PER_SEC
#define MS NSEC_PER_MSEC

/* A job of ranks with known offsets; events are made with times of the true clock. */
struct job {
	struct instance_event events[RANK_MAX][EVENT_MAX];
	uint32_t truth[RANK_MAX][EVENT_MAX]; /* which collective it is, from 1 */
	struct align_rank ranks[RANK_MAX];
	struct align_clock clocks[RANK_MAX];
	int64_t ahead_ns[RANK_MAX]; /* the rank's clock minus the true one */
	size_t cnt;
	uint64_t random;
};

static uint64_t next_random(struct job *job)
{
	job->random = job->random * 6364136223846793005u + 1442695040888963407u;
	return job->random >> 33;
}

static void job_init(struct job *job, size_t cnt, uint64_t seed)
{
	*job = (struct job){ .cnt = cnt, .random = seed };
	for (size_t r = 0; r < cnt; r++) {
		job->ahead_ns[r] = r == 0 ? 0 : (int64_t)(next_random(job) % 20000) * 1000003;
		job->ranks[r].events = job->events[r];
		job->ranks[r].host = "";
		job->ranks[r].mono_ns = 100 * SECOND + job->ahead_ns[r];
		job->ranks[r].wall_ns = 5000 * SECOND;
	}
}

static void add(struct job *job, size_t rank, int64_t end_ns, uint64_t key, int64_t seq,
		uint32_t truth)
{
	struct align_rank *to = &job->ranks[rank];

	assert_true(to->cnt < EVENT_MAX);
	job->truth[rank][to->cnt] = truth;
	job->events[rank][to->cnt++] =
		(struct instance_event){ .start_ns = end_ns - MS + job->ahead_ns[rank],
					 .end_ns = end_ns + job->ahead_ns[rank],
					 .key = key,
					 .seq = seq };
}

/* cnt collectives of all ranks, irregular, ends within 200 us; missing_pct are not recorded. */
static void run_job(struct job *job, size_t cnt, bool numbered, unsigned int missing_pct)
{
	int64_t now_ns = 200 * SECOND;

	for (size_t i = 0; i < cnt; i++) {
		now_ns += 20 * NSEC_PER_MSEC + (int64_t)(next_random(job) % 30000000);
		for (size_t r = 0; r < job->cnt; r++) {
			int64_t end_ns = now_ns + (int64_t)(next_random(job) % 200000);

			if (next_random(job) % 100 >= (r % 2 == 1 ? missing_pct : 0))
				add(job, r, end_ns, 7 + i % 2, numbered ? (int64_t)i : -1,
				    (uint32_t)i + 1);
		}
	}
}

static void assert_near(int64_t value, int64_t expected, int64_t within)
{
	if (value < expected - within || value > expected + within)
		fail_msg("%lld is not within %lld of %lld", (long long)value, (long long)within,
			 (long long)expected);
}

static void assert_aligned(struct job *job)
{
	assert_int_equal(align_clocks(job->ranks, job->cnt, job->clocks), 0);
	for (size_t r = 1; r < job->cnt; r++) {
		assert_int_equal(job->clocks[r].source, ALIGN_COLLECTIVES);
		assert_near(job->clocks[r].offset_ns, -job->ahead_ns[r], 60000);
		assert_true(job->clocks[r].spread_ns < 200000);
	}
}

/* The brute-force twin: instances are equal exactly where the collectives are. */
static void assert_matched(struct job *job)
{
	uint32_t cnt = 0;

	assert_int_equal(align_match(job->ranks, job->clocks, job->cnt, &cnt), 0);
	for (size_t a = 0; a < job->cnt; a++) {
		for (size_t i = 0; i < job->ranks[a].cnt; i++) {
			size_t others = 0;

			for (size_t b = 0; b < job->cnt; b++) {
				for (size_t k = 0; b != a && k < job->ranks[b].cnt; k++) {
					if (job->truth[a][i] != job->truth[b][k])
						continue;
					others++;
					assert_int_equal(job->events[a][i].instance,
							 job->events[b][k].instance);
				}
			}
			assert_int_equal(job->events[a][i].instance != 0, others > 0);
			assert_true(job->events[a][i].instance <= cnt);
		}
	}
}

static void offsets_of_seconds_are_found_by_number(void **state)
{
	struct job *job = calloc(1, sizeof(*job));

	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		job_init(job, 5, seed);
		run_job(job, 80, true, 20);
		assert_aligned(job);
		assert_matched(job);
	}
	free(job);
}

static void offsets_of_seconds_are_found_by_vote_with_a_fifth_missing(void **state)
{
	struct job *job = calloc(1, sizeof(*job));

	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		job_init(job, 5, seed);
		run_job(job, 80, false, 20);
		assert_aligned(job);
		assert_matched(job);
	}
	free(job);
}

static void wall_clocks_off_by_a_second_do_not_matter(void **state)
{
	struct job *job = calloc(1, sizeof(*job));

	(void)state;
	job_init(job, 3, 9);
	job->ranks[2].wall_ns += SECOND;
	run_job(job, 60, false, 0);
	assert_aligned(job);
	free(job);
}

/* A job like clockwork: each period is as good as the next, the wall clocks decide. */
static void of_equal_periods_the_one_that_the_wall_clocks_say_is_taken(void **state)
{
	struct job *job = calloc(1, sizeof(*job));

	(void)state;
	job_init(job, 2, 3);
	job->ranks[1].wall_ns += 20 * NSEC_PER_MSEC;
	for (int i = 0; i < 50; i++) {
		add(job, 0, 200 * SECOND + i * 100 * NSEC_PER_MSEC, 1, -1, 0);
		if (i < 45) /* this one died earlier */
			add(job, 1, 200 * SECOND + i * 100 * NSEC_PER_MSEC, 1, -1, 0);
	}
	assert_aligned(job);
	free(job);
}

static void two_in_common_are_too_few(void **state)
{
	struct job *job = calloc(1, sizeof(*job));

	(void)state;
	job_init(job, 2, 5);
	run_job(job, 2, true, 0);
	job->ranks[1].wall_ns += 5;
	assert_int_equal(align_clocks(job->ranks, 2, job->clocks), 0);
	assert_int_equal(job->clocks[1].source, ALIGN_WALL_CLOCK);
	assert_int_equal(job->clocks[1].offset_ns, 5 - job->ahead_ns[1]);
	assert_int_equal(job->clocks[1].match_cnt, 0);
	free(job);
}

/* Ranks 0 and 1 share a group, 1 and 2 another, 2 and 3 a third. */
static void a_rank_without_the_first_is_aligned_through_others(void **state)
{
	struct job *job = calloc(1, sizeof(*job));

	(void)state;
	job_init(job, 4, 11);
	for (int i = 0; i < 30; i++) {
		for (size_t group = 0; group < 3; group++) {
			int64_t end_ns = 200 * SECOND + (3 * i + (int)group) * 7777777;

			add(job, 3 - group, end_ns, 10 + group, i, 0);
			add(job, 2 - group, end_ns, 10 + group, i, 0);
		}
	}
	assert_aligned(job);
	free(job);
}

static void ranks_of_other_groups_with_equal_names_are_not_matched(void **state)
{
	static const uint64_t spans_ns[] = { 10 * SECOND, 2 * SECOND, SECOND };
	struct job *job = calloc(1, sizeof(*job));

	(void)state;
	for (uint64_t seed = 0; seed < 30; seed++) {
		job_init(job, 2, 13 + seed);
		for (size_t i = 0; i < 200; i++) {
			uint64_t at_ns = next_random(job) % spans_ns[seed % 3];

			add(job, i % 2, 200 * SECOND + (int64_t)at_ns, 1, -1, 0);
		}
		assert_int_equal(align_clocks(job->ranks, 2, job->clocks), 0);
		assert_int_equal(job->clocks[1].source, ALIGN_WALL_CLOCK);
	}
	free(job);
}

static void ranks_of_one_host_share_its_clock(void **state)
{
	struct job *job = calloc(1, sizeof(*job));

	(void)state;
	job_init(job, 4, 17);
	for (size_t r = 0; r < 4; r++) {
		job->ranks[r].host = r < 2 ? "a" : "b";
		job->ranks[r].mono_ns += job->ahead_ns[r & ~1u] - job->ahead_ns[r];
		job->ahead_ns[r] = job->ahead_ns[r & ~1u];
	}
	run_job(job, 30, true, 0);
	assert_int_equal(align_clocks(job->ranks, 4, job->clocks), 0);
	assert_int_equal(job->clocks[1].source, ALIGN_SAME_CLOCK);
	assert_int_equal(job->clocks[1].offset_ns, 0);
	assert_int_equal(job->clocks[2].source, ALIGN_COLLECTIVES);
	assert_int_equal(job->clocks[3].source, ALIGN_SAME_CLOCK);
	assert_int_equal(job->clocks[3].offset_ns, job->clocks[2].offset_ns);
	free(job);
}

static void a_name_of_two_hosts_does_not_make_one_clock(void **state)
{
	struct job *job = calloc(1, sizeof(*job));

	(void)state;
	job_init(job, 3, 19);
	for (size_t r = 0; r < 3; r++)
		job->ranks[r].host = "localhost";
	run_job(job, 30, true, 0);
	assert_aligned(job);
	free(job);
}

static void a_number_that_occurs_twice_is_not_compared(void **state)
{
	struct job *job = calloc(1, sizeof(*job));

	(void)state;
	job_init(job, 2, 23);
	for (int i = 0; i < 10; i++) {
		add(job, 0, 200 * SECOND + i * SECOND, 1, i / 2, 0);
		add(job, 1, 200 * SECOND + i * SECOND, 1, i / 2, 0);
	}
	assert_int_equal(align_clocks(job->ranks, 2, job->clocks), 0);
	assert_int_equal(job->clocks[1].source, ALIGN_WALL_CLOCK);
	free(job);
}

/* The largest times that a reader lets through: a file of an attacker, or a broken one. */
/*
 * Two all-reduces at a time, as of gradients in buckets, on ranks that share too few CPUs:
 * starts and ends waver by more than lies between two collectives. The rings of the ranks
 * begin at other collectives, and one is lost here and there.
 */
static void run_wavering_job(struct job *job, size_t cnt, int64_t waver_ns,
			     unsigned int missing_pct)
{
	int64_t now_ns = 200 * SECOND;

	for (size_t i = 0; i < cnt; i++) {
		int64_t start_ns[RANK_MAX], last_ns = 0;

		now_ns += i % 2 == 0 ? 100 * MS : 3 * MS;
		for (size_t r = 0; r < job->cnt; r++) {
			start_ns[r] = now_ns + (int64_t)(next_random(job) % (uint64_t)waver_ns);
			last_ns = MAX(last_ns, start_ns[r]);
		}
		for (size_t r = 0; r < job->cnt; r++) {
			int64_t end_ns = last_ns + (int64_t)(next_random(job) % (uint64_t)waver_ns);
			struct instance_event *event = &job->events[r][job->ranks[r].cnt];

			if (i < 3 * r || next_random(job) % 100 < missing_pct)
				continue;
			add(job, r, end_ns, 7 + i % 2, -1, (uint32_t)i + 1);
			event->start_ns = start_ns[r] + job->ahead_ns[r];
		}
	}
}

static void ends_that_waver_are_matched_by_order(void **state)
{
	struct job *job = calloc(1, sizeof(*job));

	(void)state;
	for (uint64_t seed = 1; seed <= 50; seed++) {
		job_init(job, 4, seed);
		for (size_t r = 0; r < job->cnt; r++)
			job->clocks[r].offset_ns = -job->ahead_ns[r];
		run_wavering_job(job, 200, 20 * MS, seed % 2 == 0 ? 3 : 0);
		assert_matched(job);
	}
	free(job);
}

static void ends_that_waver_still_say_more_than_wall_clocks(void **state)
{
	struct job *job = calloc(1, sizeof(*job));

	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		job_init(job, 4, seed);
		for (size_t r = 1; r < job->cnt; r++)
			job->ranks[r].wall_ns += r % 2 == 0 ? 10 * MS : -10 * MS;
		run_wavering_job(job, 200, 10 * MS, 0);
		assert_int_equal(align_clocks(job->ranks, job->cnt, job->clocks), 0);
		for (size_t r = 1; r < job->cnt; r++) {
			assert_int_equal(job->clocks[r].source, ALIGN_COLLECTIVES);
			assert_near(job->clocks[r].offset_ns, -job->ahead_ns[r], 3 * MS);
		}
		assert_matched(job);
	}
	free(job);
}

/* The clocks of hosts that NTP keeps: what is left is 10 ms, which collectives take off. */
static void ends_agree_within_100_us_after_10_ms_are_taken_off(void **state)
{
	static const int64_t ahead_ns[] = { 0, 10 * MS, -10 * MS };
	struct job *job = calloc(1, sizeof(*job));
	uint32_t cnt = 0;

	(void)state;
	job_init(job, 3, 5);
	for (size_t r = 0; r < 3; r++) {
		job->ahead_ns[r] = ahead_ns[r];
		job->ranks[r].mono_ns = 100 * SECOND;
	}
	for (size_t i = 0; i < 60; i++) {
		for (size_t r = 0; r < 3; r++)
			add(job, r,
			    200 * SECOND + (int64_t)i * 40 * MS +
				    (int64_t)(next_random(job) % 50000),
			    7, -1, (uint32_t)i + 1);
	}
	assert_int_equal(align_clocks(job->ranks, 3, job->clocks), 0);
	assert_int_equal(align_match(job->ranks, job->clocks, 3, &cnt), 0);
	assert_int_equal(cnt, 60);
	for (size_t r = 0; r < 3; r++) {
		for (size_t i = 0; i < 60; i++) {
			assert_int_equal(job->events[r][i].instance, job->events[0][i].instance);
			assert_near(job->events[r][i].end_ns + job->clocks[r].offset_ns,
				    job->events[0][i].end_ns, 100000);
		}
	}
	free(job);
}

static void absurd_times_do_not_overflow(void **state)
{
	struct job *job = calloc(1, sizeof(*job));
	uint32_t cnt = 0;

	(void)state;
	job_init(job, 3, 29);
	for (int i = 0; i < 10; i++) {
		for (size_t r = 0; r < 3; r++)
			job->events[r][i] = (struct instance_event){ r == 0 ? i : INT64_C(1) << 62,
								     1, i < 5 ? i : -1, 0 };
	}
	for (size_t r = 0; r < 3; r++) {
		job->ranks[r].cnt = 10;
		job->ranks[r].mono_ns = r == 1 ? INT64_C(1) << 61 : 0;
		job->ranks[r].wall_ns = r == 2 ? INT64_C(1) << 61 : 0;
	}
	assert_int_equal(align_clocks(job->ranks, 3, job->clocks), 0);
	assert_int_equal(align_match(job->ranks, job->clocks, 3, &cnt), 0);
	for (size_t r = 0; r < 3; r++)
		assert_in_range(job->clocks[r].offset_ns + (INT64_C(1) << 60), 0, INT64_C(1) << 61);
	free(job);
}

static void no_ranks_and_no_events_are_fine(void **state)
{
	struct align_rank alone = { .host = "" };
	struct align_clock clock;
	uint32_t cnt = 5;

	(void)state;
	assert_int_equal(align_clocks(NULL, 0, NULL), 0);
	assert_int_equal(align_clocks(&alone, 1, &clock), 0);
	assert_int_equal(clock.source, ALIGN_REFERENCE);
	assert_int_equal(align_match(&alone, &clock, 1, &cnt), 0);
	assert_int_equal(cnt, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(offsets_of_seconds_are_found_by_number),
		cmocka_unit_test(offsets_of_seconds_are_found_by_vote_with_a_fifth_missing),
		cmocka_unit_test(wall_clocks_off_by_a_second_do_not_matter),
		cmocka_unit_test(of_equal_periods_the_one_that_the_wall_clocks_say_is_taken),
		cmocka_unit_test(two_in_common_are_too_few),
		cmocka_unit_test(a_rank_without_the_first_is_aligned_through_others),
		cmocka_unit_test(ranks_of_other_groups_with_equal_names_are_not_matched),
		cmocka_unit_test(ranks_of_one_host_share_its_clock),
		cmocka_unit_test(a_name_of_two_hosts_does_not_make_one_clock),
		cmocka_unit_test(a_number_that_occurs_twice_is_not_compared),
		cmocka_unit_test(ends_that_waver_are_matched_by_order),
		cmocka_unit_test(ends_that_waver_still_say_more_than_wall_clocks),
		cmocka_unit_test(ends_agree_within_100_us_after_10_ms_are_taken_off),
		cmocka_unit_test(absurd_times_do_not_overflow),
		cmocka_unit_test(no_ranks_and_no_events_are_fine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
