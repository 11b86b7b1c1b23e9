/* SPDX-License-Identifier: Apache-2.0 */
#include "base/recurrence.h"

#include "base/str.h"
#include "base/test_random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

struct fixture {
	struct strtab names;
	recurrence_vec items;
};

static void begin(struct fixture *f)
{
	*f = (struct fixture){ 0 };
	assert_int_equal(strtab_init(&f->names), 0);
}

static void end(struct fixture *f)
{
	vec_done(&f->items);
	strtab_done(&f->names);
}

/* Each letter is a name, each at its place. */
static void add(struct fixture *f, const char *letters)
{
	for (int64_t at = 0; letters[at] != '\0'; at++) {
		struct recurrence_item item = {
			.start_ns = 10 * at,
			.name = strtab_intern(&f->names, &letters[at], 1),
		};

		assert_int_not_equal(item.name, STRTAB_NONE);
		assert_int_equal(vec_push(&f->items, item), 0);
	}
}

static struct recurrence find(struct fixture *f, const char *letters, uint32_t least, char *ret)
{
	struct recurrence found;

	f->items.cnt = 0;
	add(f, letters);
	found = recurrence_find(&f->items, least, &f->names);
	*ret = found.cnt > 0 ? *strtab_text(&f->names, f->items.data[found.first].name) : '-';
	return found;
}

static void what_comes_once_in_an_iteration_delimits_it_not_a_layer(_unused_ void **state)
{
	struct fixture f;
	struct recurrence found;
	char name;

	begin(&f);
	found = find(&f,
		     "ababc"
		     "ababc"
		     "ababc"
		     "ababc"
		     "ababc",
		     2, &name);
	assert_int_equal(name, 'c');
	assert_int_equal(found.distance, 5);
	assert_int_equal(found.cnt, 5);
	assert_int_equal(f.items.data[found.first].start_ns, 40);
	assert_int_equal(f.items.data[found.first + 4].start_ns, 240);
	end(&f);
}

static void of_names_that_recur_alike_the_first_by_the_alphabet_is_taken(_unused_ void **state)
{
	struct fixture f;
	char name;

	begin(&f);
	(void)find(&f, "zxyzxyzxyzxyzxy", 2, &name);
	assert_int_equal(name, 'x');
	end(&f);
}

static void what_is_irregular_or_rare_or_local_does_not_recur(_unused_ void **state)
{
	struct fixture f;
	char name;

	begin(&f);
	(void)find(&f, "", 1, &name);
	assert_int_equal(name, '-');
	(void)find(&f, "abcabcabc", 1, &name); /* three times */
	assert_int_equal(name, '-');
	(void)find(&f, "abbabbbbbabbbabbbbbbba", 2, &name);
	assert_int_equal(name, '-');
	(void)find(&f,
		   "abababab"
		   "cdefghijklmnopqrstuvwxyzABCDEFGH",
		   2, &name);
	assert_int_equal(name, '-');
	(void)find(&f, "aaaaaaaa", 2, &name);
	assert_int_equal(name, '-');
	(void)find(&f, "aaaaaaaa", 1, &name);
	assert_int_equal(name, 'a');
	end(&f);
}

/* Iterations of layers with names of their own, between a beginning and an end of each iteration. */
static void random_loops_are_divided_at_what_is_there_once(_unused_ void **state)
{
	uint64_t random = 1;

	for (unsigned round = 0; round < 300; round++) {
		int64_t layers = 1 + test_below(&random, 6), parts = 1 + test_below(&random, 4);
		int64_t iterations = 4 + test_below(&random, 12), warm = test_below(&random, 3);
		struct str letters = { 0 };
		struct recurrence found;
		struct fixture f;
		char name;

		for (int64_t i = 0; i < warm; i++)
			str_append_char(&letters, '?');
		for (int64_t i = 0; i < iterations; i++) {
			str_append_char(&letters, '<');
			for (int64_t k = 0; k < layers * parts; k++)
				str_append_char(&letters, "abcd"[k % parts]);
			str_append_char(&letters, '>');
		}
		begin(&f);
		found = find(&f, str_borrow(&letters), 2, &name);
		assert_true(name == '<' || (layers == 1 && name >= 'a' && name <= 'd') ||
			    name == '>');
		assert_int_equal(found.cnt, iterations);
		assert_int_equal(found.distance, 2 + layers * parts);
		end(&f);
		str_done(&letters);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_comes_once_in_an_iteration_delimits_it_not_a_layer),
		cmocka_unit_test(of_names_that_recur_alike_the_first_by_the_alphabet_is_taken),
		cmocka_unit_test(what_is_irregular_or_rare_or_local_does_not_recur),
		cmocka_unit_test(random_loops_are_divided_at_what_is_there_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
