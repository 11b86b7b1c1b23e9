/* SPDX-License-Identifier: Apache-2.0 */
#include "collective/streaming.h"

#include "base/test_random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

#define OWNER_CNT 4
#define ROUND_CNT 200

/* What was handed back, by owner and number. */
static struct {
	unsigned cnt, matched;
	int64_t last_ns[OWNER_CNT][ROUND_CNT];
	bool came[OWNER_CNT][ROUND_CNT];
} seen;

static int owners[OWNER_CNT];
static struct stream stream;

static void note(void *owner, const struct stream_member *member, int64_t last_start_ns)
{
	size_t rank = (size_t)((int *)owner - owners);

	assert_false(seen.came[rank][member->what]); /* each once */
	seen.came[rank][member->what] = true;
	seen.last_ns[rank][member->what] = last_start_ns;
	seen.cnt++;
	seen.matched += last_start_ns >= 0;
}

static int begin(void **state)
{
	(void)state;
	memset(&seen, 0, sizeof(seen));
	memset(&stream, 0, sizeof(stream));
	stream.done = note;
	return 0;
}

static struct stream_member part(int rank, uint32_t what, uint32_t size, int64_t start_ns,
				 int64_t dur_ns)
{
	return (struct stream_member){ .owner = &owners[rank],
				       .what = what,
				       .group_size = size,
				       .start_ns = start_ns,
				       .dur_ns = dur_ns };
}

static void add(uint64_t key, struct stream_member member)
{
	stream_add(&stream, key, &member);
}

/* Of times without a clock the shortest is who came last; their age has one. */
static void members_may_be_laid_end_to_end(void **state)
{
	const int64_t end_ns = INT64_MAX / 2;
	struct stream_member members[] = { part(0, 0, 2, end_ns - 50, 50),
					   part(1, 0, 2, end_ns - 20, 20),
					   part(2, 0, 2, end_ns - 90, 90) };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(members); i++)
		members[i].known_ns = 1000;
	add(7, members[0]);
	add(7, members[1]);
	assert_int_equal(seen.last_ns[0][0], end_ns - 20);
	assert_int_equal(seen.last_ns[1][0], end_ns - 20);
	add(8, members[2]);
	stream_expire(&stream, 1000 + STREAM_AGE_NS);
	assert_false(seen.came[2][0]);
	stream_expire(&stream, 1001 + STREAM_AGE_NS);
	assert_int_equal(seen.last_ns[2][0], -1);
}

static void alike(struct stream_member member)
{
	stream_add_alike(&stream, 5, &member);
	stream_settle(&stream);
}

static void the_last_to_begin_is_told_to_all(void **state)
{
	(void)state;
	add(1, part(0, 0, 2, 100, 50));
	assert_int_equal(seen.cnt, 0);
	add(1, part(1, 0, 2, 130, 20));
	assert_int_equal(seen.matched, 2);
	assert_int_equal(seen.last_ns[0][0], 130);
	assert_int_equal(seen.last_ns[1][0], 130);
}

static void a_group_of_another_host_is_handed_back_at_once(void **state)
{
	(void)state;
	add(1, part(0, 0, STREAM_MEMBER_MAX + 1, 100, 50));
	assert_int_equal(seen.cnt, 1);
	assert_int_equal(seen.matched, 0);
}

static void numbers_that_come_again_begin_anew(void **state)
{
	(void)state;
	add(1, part(0, 0, 2, 100, 50));
	add(1, part(0, 1, 2, 500, 50)); /* its partner of the first time has died */
	add(1, part(1, 0, 2, 510, 40));
	assert_int_equal(seen.last_ns[0][0], -1);
	assert_int_equal(seen.last_ns[0][1], 510);
	assert_int_equal(seen.last_ns[1][0], 510);
}

static void what_is_old_or_without_owner_goes(void **state)
{
	(void)state;
	add(1, part(0, 0, 2, 100, 50));
	add(2, part(1, 0, 2, 100, 50));
	alike(part(2, 0, 2, 100, 50));
	stream_forget(&stream, &owners[1]);
	stream_expire(&stream, 100 + STREAM_AGE_NS);
	assert_int_equal(seen.cnt, 0);
	stream_expire(&stream, 101 + STREAM_AGE_NS);
	assert_int_equal(seen.cnt, 2);
	assert_false(seen.came[1][0]);
}

static void more_than_there_is_room_for_is_handed_back(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < ROUND_CNT; i++)
		add((uint64_t)i * STREAM_SLOT_CNT, part(0, i, 2, i, 1)); /* all at one place */
	assert_true(seen.cnt > ROUND_CNT / 2);
	assert_true(seen.came[0][0]);
	assert_false(seen.came[0][ROUND_CNT - 1]);
}

static void those_without_number_are_one_if_they_overlap(void **state)
{
	(void)state;
	alike(part(0, 0, 2, 100, 50));
	alike(part(0, 1, 2, 200, 50));
	alike(part(1, 0, 2, 140, 10));
	alike(part(1, 1, 2, 190, 60));
	assert_int_equal(seen.matched, 4);
	assert_int_equal(seen.last_ns[0][0], 140);
	assert_int_equal(seen.last_ns[1][1], 200);
}

static void one_that_lost_its_partner_does_not_shift_the_others(void **state)
{
	(void)state;
	alike(part(0, 0, 2, 100, 10)); /* that of rank 1 was not recorded */
	alike(part(0, 1, 2, 200, 10));
	alike(part(1, 1, 2, 205, 5));
	assert_int_equal(seen.last_ns[0][0], -1);
	assert_int_equal(seen.last_ns[0][1], 205);
	assert_int_equal(seen.last_ns[1][1], 205);
}

/* Two threads of a rank execute them in turn, and are read one after the other. */
static void an_owners_members_may_come_in_any_order(void **state)
{
	struct stream_member of_threads[] = { part(1, 1, 2, 190, 60), part(1, 3, 2, 395, 20),
					      part(1, 0, 2, 140, 10), part(1, 2, 2, 310, 20) };

	(void)state;
	for (uint32_t i = 0; i < 4; i++)
		alike(part(0, i, 2, 100 * (i + 1), 50));
	for (size_t i = 0; i < ARRAY_SIZE(of_threads); i++)
		stream_add_alike(&stream, 5, &of_threads[i]);
	assert_int_equal(seen.cnt, 0);
	stream_settle(&stream);
	assert_int_equal(seen.matched, 8);
	assert_int_equal(seen.last_ns[0][0], 140);
	assert_int_equal(seen.last_ns[1][1], 200);
	assert_int_equal(seen.last_ns[1][2], 310);
	assert_int_equal(seen.last_ns[0][3], 400);
}

static void a_full_queue_is_matched_before_one_is_given_up(void **state)
{
	struct stream_member member;

	(void)state;
	for (uint32_t i = 0; i < STREAM_QUEUE_MAX / 2; i++) {
		for (int r = 0; r < 2; r++) {
			member = part(r, i % ROUND_CNT, 2, 100 * (int64_t)i, 50);
			stream_add_alike(&stream, 5, &member);
		}
	}
	assert_int_equal(seen.cnt, 0);
	member = part(0, 0, 2, 100 * STREAM_QUEUE_MAX, 50);
	stream_add_alike(&stream, 5, &member);
	assert_int_equal(seen.matched, 2);
	assert_int_equal(seen.cnt, 2);
}

/* Collectives one after the other, some records of them lost; the truth is known. */
static void random_losses_are_survived(void **state)
{
	uint64_t random = 11;

	(void)state;
	for (int with_key = 0; with_key < 2; with_key++) {
		unsigned whole = 0;

		(void)begin(NULL);
		for (uint32_t i = 0; i < ROUND_CNT; i++) {
			int64_t starts[OWNER_CNT], last_ns = 0;
			unsigned lost = 0;

			for (int r = 0; r < OWNER_CNT; r++) {
				starts[r] = i * 1000 + test_below(&random, 500);
				last_ns = MAX(last_ns, starts[r]);
			}
			for (int r = 0; r < OWNER_CNT; r++) {
				int64_t end_ns = i * 1000 + 600 + test_below(&random, 300);

				if (test_below(&random, 20) == 0) {
					lost++;
					continue;
				}
				if (with_key == 1)
					add(i,
					    part(r, i, OWNER_CNT, starts[r], end_ns - starts[r]));
				else
					alike(part(r, i, OWNER_CNT, starts[r], end_ns - starts[r]));
			}
			whole += lost == 0;
			for (int r = 0; r < OWNER_CNT; r++) {
				if (seen.came[r][i] && seen.last_ns[r][i] >= 0)
					assert_int_equal(seen.last_ns[r][i], last_ns);
			}
		}
		assert_int_equal(seen.matched, whole * OWNER_CNT);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(members_may_be_laid_end_to_end, begin),
		cmocka_unit_test_setup(the_last_to_begin_is_told_to_all, begin),
		cmocka_unit_test_setup(a_group_of_another_host_is_handed_back_at_once, begin),
		cmocka_unit_test_setup(numbers_that_come_again_begin_anew, begin),
		cmocka_unit_test_setup(what_is_old_or_without_owner_goes, begin),
		cmocka_unit_test_setup(more_than_there_is_room_for_is_handed_back, begin),
		cmocka_unit_test_setup(those_without_number_are_one_if_they_overlap, begin),
		cmocka_unit_test_setup(one_that_lost_its_partner_does_not_shift_the_others, begin),
		cmocka_unit_test_setup(an_owners_members_may_come_in_any_order, begin),
		cmocka_unit_test_setup(a_full_queue_is_matched_before_one_is_given_up, begin),
		cmocka_unit_test_setup(random_losses_are_survived, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
