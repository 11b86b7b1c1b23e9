/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"
#include "base/err.h"
#include "base/file.h"
#include "base/idmap.h"
#include "base/stats.h"
#include "base/str.h"
#include "base/strtab.h"
#include "base/test_alloc.h"
#include "base/test_random.h"
#include "base/text/number.h"
#include "base/vec.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
#include <unistd.h>
#include <sys/stat.h>
#include <stdlib.h>
#include <fcntl.h>
/* clang-format on */

static void arena_pieces_are_aligned_apart_and_stay_where_they_are(void **state)
{
	unsigned char *pieces[2000];
	struct arena arena;

	(void)state;
	arena_init(&arena);
	for (size_t i = 0; i < ARRAY_SIZE(pieces); i++) {
		size_t size = i % 37 + (i % 100 == 0 ? 70000 : 0) + 1;

		pieces[i] = arena_alloc(&arena, size);
		assert_non_null(pieces[i]);
		assert_int_equal((uintptr_t)pieces[i] % 16, 0);
		memset(pieces[i], (int)(i & 0xff), size);
	}
	for (size_t i = 0; i < ARRAY_SIZE(pieces); i++)
		assert_int_equal(pieces[i][i % 37], i & 0xff);
	assert_true(arena.total_bytes > 20 * 70000);
	arena_done(&arena);
	assert_int_equal(arena.total_bytes, 0);
}

static void arena_text_is_copied_and_terminated(void **state)
{
	struct arena arena;
	char text[] = "one two";
	char *copy, *part;

	(void)state;
	arena_init(&arena);
	copy = arena_strdup(&arena, text);
	part = arena_strndup(&arena, text, 3);
	text[0] = 'X';
	assert_string_equal(copy, "one two");
	assert_string_equal(part, "one");
	assert_string_equal(arena_printf(&arena, "%d-%s", 7, part), "7-one");
	assert_string_equal(arena_strndup(&arena, NULL, 0), "");
	arena_done(&arena);
}

static void arena_refuses_sizes_that_overflow(void **state)
{
	struct arena arena;

	(void)state;
	arena_init(&arena);
	assert_null(arena_alloc(&arena, SIZE_MAX));
	assert_null(arena_alloc(&arena, SIZE_MAX - 20));
	assert_null(arena_calloc(&arena, SIZE_MAX / 2, 3));
	assert_null(arena_strndup(&arena, "", SIZE_MAX));
	arena_done(&arena);
}

static void arena_is_usable_after_memory_ran_out(void **state)
{
	struct arena arena;

	(void)state;
	arena_init(&arena);
	allocations_left = 0;
	assert_null(arena_alloc(&arena, 8));
	assert_null(arena_printf(&arena, "x"));
	allocations_left = -1;
	assert_non_null(arena_alloc(&arena, 8));
	arena_done(&arena);
}

static void vec_grows_and_keeps_its_elements(void **state)
{
	VEC(int) v = { 0 };
	int sum = 0;

	(void)state;
	for (int i = 0; i < 1000; i++)
		assert_int_equal(vec_push(&v, i), 0);
	vec_foreach(p, &v)
		sum += *p;
	assert_int_equal(sum, 999 * 1000 / 2);
	assert_true(v.cap >= v.cnt);
	vec_done(&v);
	assert_null(v.data);
}

static void vec_is_unchanged_when_it_cannot_grow(void **state)
{
	VEC(uint64_t) v = { 0 };
	uint64_t *data;
	size_t cap;

	(void)state;
	while (v.cnt == 0 || v.cnt < v.cap)
		assert_int_equal(vec_push(&v, 7), 0);
	data = v.data;
	cap = v.cap;
	allocations_left = 0;
	assert_int_equal(vec_push(&v, 1), -ENOMEM);
	allocations_left = -1;
	assert_ptr_equal(v.data, data);
	assert_int_equal(v.cap, cap);
	assert_int_equal(v.cnt, cap);
	assert_int_equal(vec_reserve(&v, SIZE_MAX / 4), -ENOMEM);
	assert_int_equal(v.cap, cap);
	vec_done(&v);
}

static void str_appends_text_of_every_kind(void **state)
{
	struct str str = { 0 };

	(void)state;
	assert_string_equal(str_borrow(&str), "");
	str_append(&str, "ab");
	str_append_char(&str, 'c');
	str_append_len(&str, "defg", 2);
	str_printf(&str, "-%05d", 42);
	assert_string_equal(str_borrow(&str), "abcde-00042");
	assert_int_equal(str.len, 11);
	assert_int_equal(str_error(&str), 0);
	for (int i = 0; i < 1000; i++)
		str_printf(&str, "%d", i % 10);
	assert_int_equal(str.len, 1011);
	str_done(&str);
}

static void str_error_sticks_and_later_appends_do_nothing(void **state)
{
	struct str str = { 0 };

	(void)state;
	str_append(&str, "ab");
	allocations_left = 0;
	str_printf(&str, "%0200d", 1);
	allocations_left = -1;
	assert_int_equal(str_error(&str), -ENOMEM);
	str_append(&str, "cd");
	assert_string_equal(str_borrow(&str), "ab");
	str_done(&str);
	assert_int_equal(str_error(&str), 0);
}

static void strtab_gives_equal_texts_one_id_in_order_of_appearance(void **state)
{
	struct strtab table;
	char text[32];

	(void)state;
	assert_int_equal(strtab_init(&table), 0);
	assert_int_equal(strtab_intern(&table, "", 0), 0);
	for (uint32_t round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < 5000; i++) {
			int len = snprintf(text, sizeof(text), "name %u", i);

			assert_int_equal(strtab_intern(&table, text, (size_t)len), i + 1);
		}
	}
	assert_int_equal(table.cnt, 5001);
	assert_string_equal(strtab_text(&table, 4000), "name 3999");
	assert_int_equal(strtab_find(&table, "name 7", 6), 8);
	assert_int_equal(strtab_find(&table, "name 7x", 7), STRTAB_NONE);
	assert_string_equal(strtab_text(&table, 99999), "");
	assert_string_equal(strtab_text(&table, STRTAB_NONE), "");
	strtab_done(&table);
}

static void strtab_distinguishes_texts_with_zero_bytes(void **state)
{
	struct strtab table;

	(void)state;
	assert_int_equal(strtab_init(&table), 0);
	assert_int_equal(strtab_intern(&table, "a\0b", 3), 1);
	assert_int_equal(strtab_intern(&table, "a", 1), 2);
	assert_int_equal(strtab_intern(&table, "a\0c", 3), 3);
	strtab_done(&table);
}

/* Fills a table until memory runs out after n allocations; its entries stay valid. */
static uint32_t strtab_fill(struct strtab *table, long n)
{
	uint32_t cnt = 0;
	char text[32];

	allocations_left = n;
	for (; cnt < 4000; cnt++) {
		int len = snprintf(text, sizeof(text), "%u", cnt);

		if (strtab_intern(table, text, (size_t)len) == STRTAB_NONE)
			break;
	}
	allocations_left = -1;
	return cnt;
}

static void strtab_survives_memory_running_out_anywhere(void **state)
{
	(void)state;
	for (long n = 0; n < 30; n++) {
		struct strtab table = { 0 };
		uint32_t cnt;

		allocations_left = n;
		if (strtab_init(&table) < 0) {
			allocations_left = -1;
			assert_null(table.slots);
			strtab_done(&table);
			continue;
		}
		cnt = strtab_fill(&table, allocations_left);
		for (uint32_t i = 0; i < cnt; i++) {
			char text[32];
			int len = snprintf(text, sizeof(text), "%u", i);

			assert_int_equal(strtab_find(&table, text, (size_t)len), i + 1);
		}
		cnt = (uint32_t)table.cnt;
		assert_int_equal(strtab_intern(&table, "again", 5), cnt);
		strtab_done(&table);
	}
}

static void idmap_finds_what_was_set_and_nothing_else(void **state)
{
	struct idmap map = { 0 };

	(void)state;
	assert_int_equal(idmap_get(&map, 5), IDMAP_NONE);
	for (uint64_t i = 0; i < 3000; i++)
		assert_int_equal(idmap_set(&map, i * i * 0x100000001ULL, (uint32_t)i), 0);
	for (uint64_t i = 0; i < 3000; i++)
		assert_int_equal(idmap_get(&map, i * i * 0x100000001ULL), i);
	assert_int_equal(idmap_get(&map, 2), IDMAP_NONE);
	assert_int_equal(idmap_get(&map, UINT64_MAX), IDMAP_NONE);
	assert_int_equal(map.cnt, 3000);
	assert_int_equal(idmap_set(&map, 0, 77), 0);
	assert_int_equal(idmap_get(&map, 0), 77);
	assert_int_equal(map.cnt, 3000);
	assert_int_equal(idmap_set(&map, 1, IDMAP_NONE), -EINVAL);
	idmap_done(&map);
}

static void idmap_is_unchanged_when_it_cannot_grow(void **state)
{
	struct idmap map = { 0 };
	uint64_t key = 0;

	(void)state;
	for (int n = 0; n < 2; n++) {
		allocations_left = n;
		assert_int_equal(idmap_set(&map, 1, 1), -ENOMEM);
	}
	allocations_left = -1;
	for (; key < 48; key++)
		assert_int_equal(idmap_set(&map, key, (uint32_t)key), 0);
	allocations_left = 0;
	assert_int_equal(idmap_set(&map, key, 1), -ENOMEM);
	assert_int_equal(idmap_set(&map, 3, 33), 0);
	allocations_left = -1;
	assert_int_equal(idmap_get(&map, 47), 47);
	assert_int_equal(idmap_get(&map, 3), 33);
	assert_int_equal(idmap_get(&map, 48), IDMAP_NONE);
	idmap_done(&map);
}

/* Few values, many, equal ones, ascending and descending ones. */
static void the_middle_is_the_median(void **state)
{
	static double values[3000], sorted[3000];
	uint64_t seed = 5;

	(void)state;
	for (size_t round = 0; round < 400; round++) {
		size_t cnt = round < 100 ? round : 1 + (size_t)test_below(&seed, 3000);

		for (size_t i = 0; i < cnt; i++) {
			values[i] = test_uniform(&seed) / (double)(round % 7 + 1);
			if (round % 4 == 1)
				values[i] = (double)test_below(&seed, 8);
			if (round % 4 == 2)
				values[i] = (double)i;
			if (round % 4 == 3)
				values[i] = -(double)i;
		}
		memcpy(sorted, values, sizeof(sorted));
		assert_true(stats_middle(values, cnt) == stats_median(sorted, cnt));
	}
}

/* Against the median of what is left when a value is taken out, with and without equal ones. */
static void stats_others_are_all_values_but_one(void **state)
{
	double values[12], sorted[12], left[12];
	uint64_t seed = 3;

	(void)state;
	for (size_t round = 0; round < 4000; round++) {
		size_t cnt = round % 13, out;
		struct stats_others others;

		for (size_t i = 0; i < cnt; i++) {
			values[i] = test_uniform(&seed);
			if (round % 2 == 1)
				values[i] = (double)test_below(&seed, 4);
		}
		memcpy(sorted, values, sizeof(sorted));
		others = stats_others_of(sorted, cnt);
		for (out = 0; out < cnt; out++) {
			memcpy(left, values, sizeof(left));
			left[out] = left[cnt - 1];
			assert_true(stats_others_median(&others, values[out]) ==
				    stats_median(left, cnt - 1));
		}
	}
}

static void stats_median_quantile_and_mad_match_hand_values(void **state)
{
	double odd[] = { 5, 1, 3 }, even[] = { 4, 1, 3, 2 }, mad[] = { 1, 1, 2, 2, 4, 6, 9 };
	double q[] = { 10, 0, 20, 30, 40 };

	(void)state;
	assert_true(stats_median(odd, 3) == 3);
	assert_true(stats_median(even, 4) == 2.5);
	assert_true(stats_median(odd, 0) == 0);
	assert_true(stats_mad(mad, 7, 2) == 1);
	assert_true(stats_quantile(q, 5, 0) == 0);
	assert_true(stats_quantile(q, 5, 1) == 40);
	assert_true(stats_quantile(q, 5, 0.25) == 10);
	assert_true(stats_quantile(q, 5, 0.625) == 25);
}

static void err_line_is_cut_cleaned_and_optional(void **state)
{
	char longer[2000];
	struct err err;

	(void)state;
	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	assert_int_equal(err_set(&err, EINVAL, "%s: bad \x1b[31m\n%d", "f", 3), -EINVAL);
	assert_string_equal(err.text, "f: bad ?[31m?3");
	assert_int_equal(err_set(NULL, EIO, "not stored"), -EIO);
	assert_int_equal(err_set(&err, EIO, "%s", longer), -EIO);
	assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
}

static void read_back(const char *path, char *ret, size_t size)
{
	FILE *in = fopen(path, "r");

	assert_non_null(in);
	ret[fread(ret, 1, size - 1, in)] = '\0';
	(void)fclose(in);
}

static void a_file_is_replaced_whole_and_a_failure_leaves_the_old_one(void **state)
{
	char dir[] = "/tmp/file_test.XXXXXX", path[64], tmp[80], text[16];

	(void)state;
	assert_non_null(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/out", dir);
	(void)snprintf(tmp, sizeof(tmp), "%s.tmp", path);
	assert_int_equal(file_replace(path, "old", 3, 0600), 0);
	assert_int_equal(file_replace(path, "newer", 5, 0600), 0);
	read_back(path, text, sizeof(text));
	assert_string_equal(text, "newer");
	assert_int_equal(access(tmp, F_OK), -1);
	/* A directory at the temporary file's path makes every write fail. */
	assert_int_equal(mkdir(tmp, 0700), 0);
	assert_true(file_replace(path, "lost", 4, 0600) < 0);
	read_back(path, text, sizeof(text));
	assert_string_equal(text, "newer");
	(void)rmdir(tmp);
	(void)unlink(path);
	(void)rmdir(dir);
}

static void a_pipe_is_written_to_and_not_replaced(void **state)
{
	char dir[] = "/tmp/file_test.XXXXXX", path[64], text[8] = "";
	struct stat st;
	int fd;

	(void)state;
	assert_non_null(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/pipe", dir);
	assert_int_equal(mkfifo(path, 0600), 0);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(file_replace(path, "hello", 5, 0600), 0);
	assert_int_equal(read(fd, text, sizeof(text) - 1), 5);
	assert_string_equal(text, "hello");
	assert_int_equal(stat(path, &st), 0);
	assert_true(S_ISFIFO(st.st_mode));
	(void)close(fd);
	(void)unlink(path);
	(void)rmdir(dir);
}

static int write_draft(const char *path, const char *text, int error)
{
	struct file_draft draft;
	int ret = file_begin(&draft, path, 0400, NULL);

	if (ret == 0)
		ret = file_write_all(draft.fd, text, strlen(text));
	return ret < 0 ? ret : file_commit(&draft, error, NULL);
}

static int read_draft(const char *path, size_t max_bytes, char ret[static 16], struct err *err)
{
	_cleanup_free_ char *data = NULL;
	int fd = open(path, O_RDONLY | O_CLOEXEC), error;
	size_t len = 0;

	error = file_read_whole(path, fd, max_bytes, &data, &len, err);
	(void)close(fd);
	if (error == 0)
		(void)snprintf(ret, 16, "%.*s", (int)len, data);
	return error;
}

static void a_draft_takes_the_place_of_a_file_when_it_is_complete(void **state)
{
	char dir[] = "/tmp/file_test.XXXXXX", path[64], tmp[80], text[16];
	struct stat st;
	struct err err;

	(void)state;
	assert_non_null(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/out", dir);
	(void)snprintf(tmp, sizeof(tmp), "%s.tmp", path);
	assert_int_equal(write_draft(path, "old", 0), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0400);
	assert_int_equal(write_draft(path, "broken", -ENOSPC), -ENOSPC);
	assert_int_equal(access(tmp, F_OK), -1);
	assert_int_equal(read_draft(path, 3, text, &err), 0);
	assert_string_equal(text, "old");
	assert_int_equal(read_draft(path, 2, text, &err), -EINVAL);
	assert_non_null(strstr(err.text, "expected a regular file of at most 2 bytes"));
	assert_int_equal(read_draft("/dev/null", 3, text, &err), -EINVAL);
	allocations_left = 0;
	assert_int_equal(read_draft(path, 3, text, &err), -ENOMEM);
	allocations_left = -1;
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(dir), 0);
	assert_int_equal(write_draft(path, "nowhere", 0), -ENOENT);
}

static void a_number_in_a_sentence_has_three_digits_or_more_and_no_exponent(void **state)
{
	(void)state;
	assert_string_equal(number_text(0.012345).text, "0.0123");
	assert_string_equal(number_text(12).text, "12");
	assert_string_equal(number_text(999.4).text, "999");
	assert_string_equal(number_text(999.6).text, "1000");
	assert_string_equal(number_text(123456.7).text, "123457");
	assert_string_equal(number_text(-1500).text, "-1500");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_number_in_a_sentence_has_three_digits_or_more_and_no_exponent),
		cmocka_unit_test(arena_pieces_are_aligned_apart_and_stay_where_they_are),
		cmocka_unit_test(arena_text_is_copied_and_terminated),
		cmocka_unit_test(arena_refuses_sizes_that_overflow),
		cmocka_unit_test(arena_is_usable_after_memory_ran_out),
		cmocka_unit_test(vec_grows_and_keeps_its_elements),
		cmocka_unit_test(vec_is_unchanged_when_it_cannot_grow),
		cmocka_unit_test(str_appends_text_of_every_kind),
		cmocka_unit_test(str_error_sticks_and_later_appends_do_nothing),
		cmocka_unit_test(strtab_gives_equal_texts_one_id_in_order_of_appearance),
		cmocka_unit_test(strtab_distinguishes_texts_with_zero_bytes),
		cmocka_unit_test(strtab_survives_memory_running_out_anywhere),
		cmocka_unit_test(idmap_finds_what_was_set_and_nothing_else),
		cmocka_unit_test(idmap_is_unchanged_when_it_cannot_grow),
		cmocka_unit_test(stats_median_quantile_and_mad_match_hand_values),
		cmocka_unit_test(the_middle_is_the_median),
		cmocka_unit_test(stats_others_are_all_values_but_one),
		cmocka_unit_test(err_line_is_cut_cleaned_and_optional),
		cmocka_unit_test(a_file_is_replaced_whole_and_a_failure_leaves_the_old_one),
		cmocka_unit_test(a_draft_takes_the_place_of_a_file_when_it_is_complete),
		cmocka_unit_test(a_pipe_is_written_to_and_not_replaced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
