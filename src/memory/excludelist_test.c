/* SPDX-License-Identifier: Apache-2.0 */
#include "memory/excludelist.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

static void expect(const char *const *names, size_t cnt, const char *wanted)
{
	struct str out = { 0 };

	assert_int_equal(excludelist_slurm(names, cnt, &out), 0);
	assert_string_equal(str_borrow(&out), wanted);
	str_done(&out);
}

static void neighbors_become_a_range(void **state)
{
	static const char *const names[] = {
		"node12", "node05", "node03", "login", "node04", "gpu7"
	};

	(void)state;
	expect(names, ARRAY_SIZE(names), "--exclude=gpu7,login,node[03-05,12]");
}

static void numbers_of_other_widths_and_domains_stay_apart(void **state)
{
	static const char *const names[] = { "n1", "n2", "n01", "a.b9", "10.0.0.7", "10.0.0.8" };

	(void)state;
	expect(names, ARRAY_SIZE(names), "--exclude=10.0.0.7,10.0.0.8,a.b9,n[1-2],n01");
}

static void a_name_that_is_none_of_a_host_is_left_out(void **state)
{
	static const char *const names[] = { "a;rm -rf", "", "-x", "ok\n", "b[1-9]", "fine" };

	(void)state;
	expect(names, ARRAY_SIZE(names), "--exclude=fine");
	expect(names, 1, "");
}

static void kubernetes_gets_a_node_affinity(void **state)
{
	static const char *const names[] = { "node2", "node1", "a: b" };
	struct str out = { 0 };

	(void)state;
	assert_int_equal(excludelist_kubernetes(names, ARRAY_SIZE(names), &out), 0);
	assert_non_null(strstr(str_borrow(&out), "operator: NotIn\n          values:\n"
						 "          - \"node1\"\n          - \"node2\"\n"));
	assert_null(strstr(str_borrow(&out), "a: b"));
	str_done(&out);
}

/* What Slurm makes of the list: the names in it, each once. Returns how many. */
static size_t expand(const char *list, char names[][32])
{
	size_t cnt = 0;

	for (const char *at = list + strlen("--exclude="); *at != '\0';) {
		size_t prefix = strcspn(at, "[,");
		const char *numbers = at + prefix + 1;

		if (at[prefix] != '[') {
			(void)snprintf(names[cnt++], 32, "%.*s", (int)prefix, at);
			at += prefix + (at[prefix] == ',');
			continue;
		}
		do {
			char *end;
			int width = (int)strspn(numbers, "0123456789");
			unsigned long low = strtoul(numbers, &end, 10), high = low;

			if (*end == '-')
				high = strtoul(end + 1, &end, 10);
			for (; low <= high; low++)
				(void)snprintf(names[cnt++], 32, "%.*s%0*lu", (int)prefix, at,
					       width, low);
			numbers = end + 1;
		} while (numbers[-1] == ',');
		at = numbers + (*numbers == ',');
	}
	return cnt;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

static void a_list_names_the_same_hosts_again(void **state)
{
	unsigned seed = 7;

	(void)state;
	for (int round = 0; round < 2000; round++) {
		char in[40][32], got[64][32];
		const char *names[40];
		size_t cnt = 0, got_cnt;
		struct str out = { 0 };

		for (size_t i = 0, end = 1 + rand_r(&seed) % 30u; i < end; i++) {
			static const char *const prefixes[] = { "n", "node", "a-b", "x1y" };
			bool twice = false;

			(void)snprintf(in[cnt], 32, "%s%0*u", prefixes[rand_r(&seed) % 4],
				       1 + rand_r(&seed) % 3, rand_r(&seed) % 12u);
			for (size_t k = 0; k < cnt; k++)
				twice |= strcmp(in[k], in[cnt]) == 0;
			cnt += !twice;
		}
		for (size_t i = 0; i < cnt; i++)
			names[i] = in[i];
		assert_int_equal(excludelist_slurm(names, cnt, &out), 0);
		got_cnt = expand(str_borrow(&out), got);
		assert_int_equal(got_cnt, cnt);
		qsort(in, cnt, sizeof(in[0]), by_text);
		qsort(got, cnt, sizeof(got[0]), by_text);
		for (size_t i = 0; i < cnt; i++)
			assert_string_equal(in[i], got[i]);
		str_done(&out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(neighbors_become_a_range),
		cmocka_unit_test(numbers_of_other_widths_and_domains_stay_apart),
		cmocka_unit_test(a_name_that_is_none_of_a_host_is_left_out),
		cmocka_unit_test(kubernetes_gets_a_node_affinity),
		cmocka_unit_test(a_list_names_the_same_hosts_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
