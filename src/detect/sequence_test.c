/* SPDX-License-Identifier: Apache-2.0 */
#include "detect/sequence.h"

#include "detect/test_detect.h"

#include <string.h>

#define M 10
#define K 200

static const struct sequence_config config = { .repeat_cnt = M, .lost_cnt = K };

/* 'N' is a loader call, 'I' the user's mark, a digit the step of that optimizer. */
static enum sequence_result put(struct sequence *seq, char symbol, int64_t time_ns)
{
	if (symbol == 'N')
		return sequence_mark(seq, MARK_DATALOADER, 7, time_ns);
	if (symbol == 'I')
		return sequence_mark(seq, MARK_ITERATION, 0, time_ns);
	return sequence_mark(seq, MARK_OPTIMIZER, (uint16_t)(symbol - '0'), time_ns);
}

struct counts {
	unsigned learned, regained, matched, lost;
};

static struct counts put_all(struct sequence *seq, const char *symbols, unsigned times)
{
	struct counts counts = { 0 };
	static int64_t now_ns; /* only grows: every test sees rising times */

	for (unsigned i = 0; i < times; i++) {
		for (const char *s = symbols; *s != '\0'; s++) {
			enum sequence_result result = put(seq, *s, ++now_ns);

			counts.learned += result == SEQUENCE_LEARNED;
			counts.regained += result == SEQUENCE_REGAINED;
			counts.matched += result == SEQUENCE_MATCHED;
			counts.lost += result == SEQUENCE_LOST;
		}
	}
	return counts;
}

static void expect_sequence(const char *loop, const char *expected, uint32_t step_cnt)
{
	struct sequence *seq = sequence_new(&config);
	struct counts counts;
	char text[64];

	(void)put_all(seq, loop, 3 * M);
	assert_true(sequence_is_learned(seq));
	sequence_describe(seq, 1, text, sizeof(text));
	assert_string_equal(text, expected);
	assert_int_equal(sequence_step_cnt(seq), step_cnt);
	counts = put_all(seq, loop, 100);
	assert_int_equal(counts.matched, 100);
	assert_int_equal(counts.lost, 0);
	sequence_free(seq);
}

static void sequence_learns_the_loops_that_people_write(void **state)
{
	(void)state;
	expect_sequence("N1", "loader, optimizer 1", 1);
	expect_sequence("NNNN1", "4 x loader, optimizer 1", 1);	       /* gradient accumulation */
	expect_sequence("N12", "loader, optimizer 1, optimizer 2", 2); /* two optimizers */
	expect_sequence("N1N2", "loader, optimizer 1, loader, optimizer 2",
			2); /* discriminator and generator */
	expect_sequence("NN12", "2 x loader, optimizer 1, optimizer 2", 2);
	expect_sequence("N1N1N1N1N12", "5 x (loader, optimizer 1), optimizer 2",
			6);			/* five to one */
	expect_sequence("1", "optimizer 1", 1); /* no loader */
	expect_sequence("12", "optimizer 1, optimizer 2", 2);
	expect_sequence("I", "perftracker.step()", 1);
	expect_sequence("N1I", "perftracker.step()", 1); /* the user's marks win */
}

static void sequence_is_learned_after_ten_alike_and_not_before(void **state)
{
	struct sequence *seq = sequence_new(&config);

	(void)state;
	(void)put_all(seq, "N1", M);
	assert_false(sequence_is_learned(seq)); /* the tenth may have further steps */
	assert_int_equal(put(seq, 'N', 1 << 20), SEQUENCE_LEARNED);
	assert_int_equal(put(seq, '1', 1 << 21), SEQUENCE_MATCHED);
	assert_int_equal(sequence_borrow_match(seq)->begin_ns, 1 << 20);
	assert_int_equal(sequence_borrow_match(seq)->end_ns, 1 << 21);
	sequence_free(seq);
}

static void sequence_learns_loader_calls_alone_when_no_step_is_ever_seen(void **state)
{
	struct sequence *seq = sequence_new(&config);
	struct counts counts;

	(void)state;
	(void)put_all(seq, "N", K + M + 1);
	assert_true(sequence_is_learned(seq));
	counts = put_all(seq, "N1", 3 * M); /* it was an evaluation before the training */
	assert_int_equal(counts.lost, 1);
	assert_int_equal(counts.learned, 1);
	counts = put_all(seq, "N", 5 * K); /* a long one in the middle is not learned again */
	assert_int_equal(counts.learned, 0);
	assert_int_equal(put_all(seq, "N1", 2 * M).regained, 1);
	sequence_free(seq);
}

static void sequence_skips_and_counts_what_is_between_iterations(void **state)
{
	struct sequence *seq = sequence_new(&config);

	(void)state;
	(void)put_all(seq, "NN1", 2 * M);
	(void)put_all(seq, "NNNNNNNNNN", 1); /* evaluation */
	assert_int_equal(put_all(seq, "NN1", 1).matched, 1);
	assert_int_equal(sequence_borrow_match(seq)->skipped, 10);
	(void)put_all(seq, "NNN1", 1); /* the end of an epoch asks once more */
	assert_int_equal(sequence_borrow_match(seq)->skipped, 1);
	assert_int_equal(put_all(seq, "NN1", 5).matched, 5);
	assert_int_equal(sequence_borrow_match(seq)->skipped, 0);
	sequence_free(seq);
}

static void sequence_is_lost_after_200_marks_and_regained(void **state)
{
	struct sequence *seq = sequence_new(&config);
	struct counts counts;

	(void)state;
	(void)put_all(seq, "NN1", 2 * M);
	assert_int_equal(put_all(seq, "N", K + 2).lost, 0);
	assert_int_equal(put_all(seq, "N", 1).lost, 1);
	assert_false(sequence_is_learned(seq));
	counts = put_all(seq, "NN1", M + 2);
	assert_int_equal(counts.regained, 1);
	assert_int_equal(counts.learned, 0);
	sequence_free(seq);
}

static void sequence_changes_when_the_loop_grows_a_step(void **state)
{
	struct sequence *seq = sequence_new(&config);
	struct counts counts;
	char text[64];

	(void)state;
	(void)put_all(seq, "N1", 2 * M);
	counts = put_all(seq, "N12", 3 * M);
	assert_int_equal(counts.lost, 1);
	assert_int_equal(counts.learned, 1);
	sequence_describe(seq, 1, text, sizeof(text));
	assert_string_equal(text, "loader, optimizer 1, optimizer 2");
	sequence_free(seq);
}

static void sequence_longer_than_its_memory_is_not_learned(void **state)
{
	struct sequence *seq = sequence_new(&config);

	(void)state;
	for (unsigned i = 0; i < 2 * M; i++) {
		(void)put_all(seq, "N", SEQUENCE_MAX);
		(void)put_all(seq, "1", 1);
	}
	assert_false(sequence_is_learned(seq));
	sequence_free(seq);
}

/*
 * The brute-force twin gives the same results: it keeps every symbol and scans all of them
 * each time.
 */
struct twin {
	char symbols[20000];
	size_t cnt;
	size_t learn_from; /* where learning began */
	size_t matched_to; /* end of the last match, or where the sequence was learned */
	char sequence[4096];
	size_t len;
	unsigned skip_streak;
	bool learned;
};

/* Ends of the closed groups in [learn_from, cnt), for loops that begin with a loader call. */
static size_t twin_groups(const struct twin *twin, size_t *ends, size_t *begins)
{
	size_t cnt = 0, i = twin->learn_from;

	while (i < twin->cnt && twin->symbols[i] != 'N')
		i++;
	while (i < twin->cnt) {
		size_t end = i;

		while (end < twin->cnt && twin->symbols[end] == 'N')
			end++;
		while (end < twin->cnt && twin->symbols[end] != 'N')
			end++;
		if (end == twin->cnt)
			break;
		begins[cnt] = i;
		ends[cnt++] = end;
		i = end;
	}
	return cnt;
}

static bool twin_is_periodic(const struct twin *twin, const size_t *begins, const size_t *ends,
			     size_t cnt, size_t period)
{
	if (cnt < M * period)
		return false;
	for (size_t g = cnt - M * period + period; g < cnt; g++) {
		size_t len = ends[g] - begins[g];

		if (len != ends[g - period] - begins[g - period] ||
		    memcmp(&twin->symbols[begins[g]], &twin->symbols[begins[g - period]], len) != 0)
			return false;
	}
	return true;
}

static enum sequence_result twin_learn(struct twin *twin)
{
	static size_t begins[20000], ends[20000];
	size_t cnt;

	if (twin->symbols[twin->cnt - 1] != 'N' || twin->cnt < 2 ||
	    twin->symbols[twin->cnt - 2] == 'N')
		return SEQUENCE_NONE;
	cnt = twin_groups(twin, ends, begins);
	for (size_t p = 1; p <= SEQUENCE_GROUP; p++) {
		const char *from;
		size_t len;
		bool same;

		if (!twin_is_periodic(twin, begins, ends, cnt, p))
			continue;
		from = &twin->symbols[begins[cnt - p]];
		len = ends[cnt - 1] - begins[cnt - p];
		same = len == twin->len && memcmp(from, twin->sequence, len) == 0;
		memcpy(twin->sequence, from, len);
		twin->len = len;
		twin->learned = true;
		twin->matched_to = ends[cnt - 1];
		twin->skip_streak = 0;
		return same ? SEQUENCE_REGAINED : SEQUENCE_LEARNED;
	}
	return SEQUENCE_NONE;
}

static enum sequence_result twin_lose(struct twin *twin)
{
	twin->learned = false;
	twin->learn_from = twin->cnt;
	return SEQUENCE_LOST;
}

static enum sequence_result twin_put(struct twin *twin, char symbol)
{
	size_t since;

	twin->symbols[twin->cnt++] = symbol;
	if (!twin->learned)
		return twin_learn(twin);
	since = twin->cnt - twin->matched_to;
	if (since >= twin->len &&
	    memcmp(&twin->symbols[twin->cnt - twin->len], twin->sequence, twin->len) == 0) {
		twin->skip_streak = since > twin->len ? twin->skip_streak + 1 : 0;
		twin->matched_to = twin->cnt;
		return twin->skip_streak >= M ? twin_lose(twin) : SEQUENCE_MATCHED;
	}
	return since >= twin->len + K ? twin_lose(twin) : SEQUENCE_NONE;
}

/* A loop of groups, repeated; now and then a mark is dropped, added, or loader calls burst. */
static size_t make_stream(uint64_t *rng, char *buf, size_t size)
{
	char loop[64];
	size_t len = 0, cnt = 0;

	while (cnt + 300 < size) {
		size_t repeats = 1 + splitmix_next(rng) % 60;

		if (len == 0 || splitmix_next(rng) % 4 == 0) {
			size_t groups = 1 + splitmix_next(rng) % 3;

			len = 0;
			for (size_t g = 0; g < groups; g++) {
				for (size_t n = splitmix_next(rng) % 3 + 1; n > 0; n--)
					loop[len++] = 'N';
				for (size_t o = splitmix_next(rng) % 2 + 1; o > 0; o--)
					loop[len++] = (char)('1' + splitmix_next(rng) % 2);
			}
		}
		for (; repeats > 0 && cnt + len + 260 < size; repeats--) {
			memcpy(buf + cnt, loop, len);
			cnt += len;
			if (splitmix_next(rng) % 20 == 0)
				cnt--;
			if (splitmix_next(rng) % 20 == 0)
				buf[cnt++] = "N12"[splitmix_next(rng) % 3];
		}
		if (splitmix_next(rng) % 3 == 0) {
			size_t burst = splitmix_next(rng) % 190;

			memset(buf + cnt, 'N', burst);
			cnt += burst;
		} else if (splitmix_next(rng) % 3 == 0 && cnt + 600 < size) {
			for (size_t i = 0; i < 250; i++) /* nothing that could be learned */
				buf[cnt++] = "N12"[splitmix_next(rng) % 3];
		}
	}
	return cnt;
}

static void sequence_agrees_with_a_brute_force_twin(void **state)
{
	static char stream[4000];
	static struct twin twin;
	unsigned seen[SEQUENCE_LOST + 1] = { 0 };

	(void)state;
	for (uint64_t seed = 0; seed < 60; seed++) {
		struct sequence *seq = sequence_new(&config);
		uint64_t rng = seed;
		size_t cnt = make_stream(&rng, stream, sizeof(stream));

		/* The twin knows loops with a loader only: the first mark is a loader call. */
		stream[0] = 'N';
		memset(&twin, 0, sizeof(twin));
		for (size_t i = 0; i < cnt; i++) {
			enum sequence_result expected = twin_put(&twin, stream[i]);
			enum sequence_result got = put(seq, stream[i], (int64_t)i);

			if (got != expected)
				fail_msg("seed %d mark %d: got %d, expected %d", (int)seed, (int)i,
					 (int)got, (int)expected);
			seen[got]++;
		}
		sequence_free(seq);
	}
	for (size_t i = 0; i < ARRAY_SIZE(seen); i++)
		assert_true(seen[i] > 10);
}

int run_sequence_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sequence_learns_the_loops_that_people_write),
		cmocka_unit_test(sequence_is_learned_after_ten_alike_and_not_before),
		cmocka_unit_test(sequence_learns_loader_calls_alone_when_no_step_is_ever_seen),
		cmocka_unit_test(sequence_skips_and_counts_what_is_between_iterations),
		cmocka_unit_test(sequence_is_lost_after_200_marks_and_regained),
		cmocka_unit_test(sequence_changes_when_the_loop_grows_a_step),
		cmocka_unit_test(sequence_longer_than_its_memory_is_not_learned),
		cmocka_unit_test(sequence_agrees_with_a_brute_force_twin),
	};

	return cmocka_run_group_tests_name("sequence", tests, NULL, NULL);
}
