/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A random job whose collectives are known: every matcher of this folder must call two
 * executions the same collective if and only if they are.
 */
#include "base/test_random.h"
#include "collective/instances.h"
#include "collective/shifts.h"
#include "collective/streaming.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

#define RANKS 6
#define COLLECTIVES 60
#define GROUPS 2
#define ROUNDS 200
#define MS NSEC_PER_MSEC

static uint64_t rng = 1;

static int64_t some(int64_t from, int64_t to)
{
	return from + (int64_t)(test_uniform(&rng) * (double)(to - from));
}

/* What a rank's window holds: executions of one group, truth[i] is the collective. */
struct rank {
	struct fp_collective all[COLLECTIVES];
	size_t truth[COLLECTIVES], cnt;
	int64_t clock_ns; /* of the rank, less the true time */
	bool one_clock;	  /* is known */
};

static struct rank ranks[RANKS];

/*
 * All ranks of a group enter each collective within 3 ms and leave it together. numbered: with
 * sequence numbers. Up to lost collectives are missing at each end of a window.
 */
static void play(size_t group_cnt, bool numbered, int64_t lost)
{
	int64_t end_ns[GROUPS][COLLECTIVES], now_ns = 0;

	for (size_t i = 0; i < COLLECTIVES; i++) {
		for (size_t g = 0; g < group_cnt; g++) {
			now_ns += some(4 * MS, 60 * MS);
			end_ns[g][i] = now_ns;
		}
	}
	for (size_t r = 0; r < RANKS; r++) {
		size_t group = r % group_cnt, first = (size_t)some(0, lost + 1);
		size_t end = COLLECTIVES - (size_t)some(0, lost + 1);
		struct rank *rank = &ranks[r];

		rank->cnt = 0;
		rank->clock_ns = some(-1000 * MS, 1000 * MS);
		for (size_t i = first; i < end; i++) {
			int64_t dur_ns = some(MS / 2, 3 * MS);

			rank->truth[rank->cnt] = i * GROUPS + group;
			rank->all[rank->cnt++] = (struct fp_collective){
				.group = 7 + group,
				.group_known = numbered,
				.name = i % 3,
				.seq = numbered ? (int64_t)i : -1,
				.start_ns = end_ns[group][i] - dur_ns + rank->clock_ns,
				.dur_ns = dur_ns + some(0, 20000),
			};
		}
	}
}

/* found: by rank and execution; 0: matched with no other. */
static void assert_found_is_truth(size_t found[RANKS][COLLECTIVES])
{
	for (size_t a = 0; a < RANKS; a++) {
		for (size_t b = 0; b < RANKS; b++) {
			for (size_t i = 0; i < ranks[a].cnt; i++) {
				for (size_t k = 0; a != b && k < ranks[b].cnt; k++) {
					bool same = found[a][i] != 0 && found[a][i] == found[b][k];

					assert_int_equal(same,
							 ranks[a].truth[i] == ranks[b].truth[k]);
				}
			}
		}
	}
}

/* --- each worker with a clock of its own --- */

static void match_by_shifts(void)
{
	size_t found[RANKS][COLLECTIVES] = { 0 };
	struct shift_worker workers[RANKS];
	struct arena arena;
	shift_groups groups;
	uint64_t unmatched;

	arena_init(&arena);
	for (size_t r = 0; r < RANKS; r++)
		workers[r] = (struct shift_worker){ ranks[r].all, ranks[r].cnt, ranks[r].one_clock,
						    ranks[r].one_clock ? -ranks[r].clock_ns : 0 };
	assert_int_equal(shifts_find(workers, RANKS, &arena, &groups, &unmatched), 0);
	assert_int_equal(groups.cnt, GROUPS);
	assert_int_equal(unmatched, 0);
	for (size_t g = 0; g < groups.cnt; g++) {
		const struct shift_group *group = &groups.data[g];

		for (int64_t k = group->first; k <= group->last; k++) {
			for (size_t m = 0; m < group->member_cnt; m++) {
				const struct shift_list *list = &group->members[m];
				const struct fp_collective *c = shift_borrow(list, k);

				if (c != NULL)
					found[list->worker][c - list->all] =
						1 + g + GROUPS * (size_t)(k - group->first);
			}
		}
	}
	assert_found_is_truth(found);
	vec_done(&groups);
	arena_done(&arena);
}

static void shifts_find_the_truth_with_and_without_numbers(void **state)
{
	(void)state;
	for (uint64_t round = 0; round < ROUNDS; round++) {
		rng = round + 1;
		play(GROUPS, round % 2 == 0, 8);
		match_by_shifts();
	}
}

/*
 * Equal steps of 10 ms on busy CPUs: each rank learns up to 4 ms late that a collective has ended.
 * At a shift of one step the ends agree as well, but not on the clock that the ranks share.
 */
static void shifts_use_the_clock_that_ranks_share(void **state)
{
	(void)state;
	for (uint64_t round = 0; round < ROUNDS; round++) {
		rng = round + 1;
		play(GROUPS, true, 8);
		for (size_t r = 0; r < RANKS; r++) {
			struct rank *rank = &ranks[r];

			rank->one_clock = true;
			for (size_t i = 0; i < rank->cnt; i++) {
				size_t step = rank->truth[i] / GROUPS;

				rank->all[i].name = 0;
				rank->all[i].seq = -1;
				rank->all[i].start_ns = (int64_t)step * 10 * MS + rank->clock_ns;
				rank->all[i].dur_ns = 2 * MS + some(0, 4 * MS);
			}
		}
		match_by_shifts();
	}
	for (size_t r = 0; r < RANKS; r++)
		ranks[r].one_clock = false;
}

/*
 * The window of step 5 of a real job. Two of the last executions of the one rank are as far apart as
 * two of the first of the other: that fit of two pairs is as exact as the true one of three.
 */
static void two_intervals_that_are_alike_are_no_match(void **state)
{
	static const double ends_ms[2][5] = { { 12.434, 12.740, 15.358, 1033.792, 1174.381 },
					      { 2.318, 1020.737, 1161.336, 1161.646 } };
	static struct fp_collective all[2][5];
	const struct shift_worker workers[] = { { .all = all[0], .cnt = 5 },
						{ .all = all[1], .cnt = 4 } };
	struct arena arena;
	shift_groups groups;
	uint64_t unmatched;

	(void)state;
	for (size_t r = 0; r < 2; r++) {
		for (size_t i = 0; i < workers[r].cnt; i++)
			all[r][i] =
				(struct fp_collective){ .group = 1,
							.name = 1,
							.seq = -1,
							.start_ns = (int64_t)(ends_ms[r][i] * MS) -
								    1000,
							.dur_ns = 1000 };
	}
	arena_init(&arena);
	assert_int_equal(shifts_find(workers, 2, &arena, &groups, &unmatched), 0);
	assert_int_equal(groups.cnt, 1);
	assert_int_equal(groups.data[0].members[1].shift - groups.data[0].members[0].shift, 2);
	vec_done(&groups);
	arena_done(&arena);
}

/* --- one clock for all --- */

static void match_by_instances(void)
{
	static struct instance_event events[RANKS][COLLECTIVES];
	size_t found[RANKS][COLLECTIVES] = { 0 };
	struct instance_rank aligned[RANKS];
	uint32_t cnt;

	for (size_t r = 0; r < RANKS; r++) {
		aligned[r] =
			(struct instance_rank){ events[r], ranks[r].cnt, -ranks[r].clock_ns, 0 };
		for (size_t i = 0; i < ranks[r].cnt; i++) {
			const struct fp_collective *c = &ranks[r].all[i];

			events[r][i] = (struct instance_event){
				.start_ns = c->start_ns,
				.end_ns = c->start_ns + c->dur_ns,
				.key = c->group * 3 + c->name,
				.seq = c->seq,
			};
		}
	}
	assert_int_equal(instances_find(aligned, RANKS, &cnt), 0);
	for (size_t r = 0; r < RANKS; r++) {
		for (size_t i = 0; i < ranks[r].cnt; i++) {
			assert_true(events[r][i].instance <= cnt);
			found[r][i] = events[r][i].instance;
		}
	}
	assert_found_is_truth(found);
}

static void instances_are_the_truth_with_and_without_numbers(void **state)
{
	(void)state;
	for (uint64_t round = 0; round < ROUNDS; round++) {
		rng = round + 1;
		play(GROUPS, round % 2 == 0, 8);
		match_by_instances();
	}
}

/* --- as they come, on one host --- */

static size_t streamed[RANKS][COLLECTIVES];

static void settle(void *owner, const struct stream_member *member, int64_t last_start_ns)
{
	struct rank *rank = owner;
	int64_t latest_ns = 0;

	/* The members of one collective have the same latest start: it is their number. */
	for (size_t r = 0; r < RANKS && last_start_ns >= 0; r++) {
		for (size_t i = 0; i < ranks[r].cnt; i++) {
			if (ranks[r].truth[i] == rank->truth[member->what])
				latest_ns = MAX(latest_ns,
						ranks[r].all[i].start_ns - ranks[r].clock_ns);
		}
	}
	assert_true(last_start_ns < 0 || last_start_ns == latest_ns);
	streamed[rank - ranks][member->what] = (size_t)MAX(last_start_ns, 0);
}

static void match_by_stream(size_t group_cnt, bool numbered)
{
	static struct stream stream;

	memset(&stream, 0, sizeof(stream));
	memset(streamed, 0, sizeof(streamed));
	stream.done = settle;
	for (uint32_t i = 0; i < COLLECTIVES; i++) {
		for (size_t r = 0; r < RANKS; r++) {
			const struct fp_collective *c = &ranks[r].all[i];
			struct stream_member member = {
				.owner = &ranks[r],
				.what = i,
				.group_size = (uint32_t)(RANKS / group_cnt),
				.start_ns = c->start_ns - ranks[r].clock_ns,
				.dur_ns = c->dur_ns,
			};

			if (numbered)
				stream_add(&stream, c->group * COLLECTIVES + (uint64_t)c->seq,
					   &member);
			else
				stream_add_alike(&stream, c->name, &member);
			stream_settle(&stream);
		}
	}
	assert_found_is_truth(streamed);
}

static void a_stream_of_numbered_executions_is_matched_as_it_comes(void **state)
{
	(void)state;
	for (uint64_t round = 0; round < ROUNDS; round++) {
		rng = round + 1;
		play(GROUPS, true, 0);
		match_by_stream(GROUPS, true);
	}
}

static void a_stream_without_numbers_is_matched_in_a_job_of_one_group(void **state)
{
	(void)state;
	for (uint64_t round = 0; round < ROUNDS; round++) {
		rng = round + 1;
		play(1, false, 0);
		match_by_stream(1, false);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shifts_find_the_truth_with_and_without_numbers),
		cmocka_unit_test(shifts_use_the_clock_that_ranks_share),
		cmocka_unit_test(two_intervals_that_are_alike_are_no_match),
		cmocka_unit_test(instances_are_the_truth_with_and_without_numbers),
		cmocka_unit_test(a_stream_of_numbered_executions_is_matched_as_it_comes),
		cmocka_unit_test(a_stream_without_numbers_is_matched_in_a_job_of_one_group),
	};

	return cmocka_run_group_tests_name("same_collective", tests, NULL, NULL);
}
