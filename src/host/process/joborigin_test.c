/* SPDX-License-Identifier: Apache-2.0 */
#include "host/process/joborigin.h"

#include "host/process/test_tree.h"

static void add_process(const char *root, unsigned pid, unsigned parent, unsigned start,
			const char *program)
{
	char path[64], text[256], link[512];

	(void)snprintf(path, sizeof(path), "proc/%u/stat", pid);
	(void)snprintf(text, sizeof(text),
		       "%u (a b) S %u 1 1 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 %u 0 0 0 0 0 0 0 0 0 0 0 "
		       "0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n",
		       pid, parent, start);
	write_file(root, path, text);
	(void)snprintf(path, sizeof(path), "proc/%u/cmdline", pid);
	write_bytes(root, path, program, strlen(program) + 1);
	(void)snprintf(link, sizeof(link), "%s/proc/%u/exe", root, pid);
	assert_int_equal(symlink(program, link), 0);
}

static void find(const char *root, uint32_t pid, uint32_t expected)
{
	struct joborigin origin;

	assert_int_equal(joborigin_find(root, pid, &origin), 0);
	assert_int_equal(origin.pid, expected);
}

static void spawned_ranks_have_the_origin_of_their_script(void **state)
{
	const char *root = *state;
	struct joborigin origin;

	add_process(root, 10, 1, 100, "/bin/bash");
	add_process(root, 20, 10, 200, "/bin/python");
	add_process(root, 21, 20, 300, "/bin/python");
	add_process(root, 22, 21, 301, "/bin/python");
	add_process(root, 30, 10, 400, "/bin/python"); /* another script of the shell */
	find(root, 20, 20);
	find(root, 21, 20);
	find(root, 22, 20);
	find(root, 30, 30);
	assert_int_equal(joborigin_find(root, 22, &origin), 0);
	assert_int_equal(origin.start, 200);
	assert_string_equal(origin.command, "/bin/python");
}

static void another_program_between_ends_the_search(void **state)
{
	const char *root = *state;

	add_process(root, 10, 1, 100, "/bin/python");
	add_process(root, 20, 10, 200, "/bin/bash");
	add_process(root, 21, 20, 300, "/bin/python");
	find(root, 21, 21);
}

static void a_process_that_is_its_own_ancestor_ends_the_search(void **state)
{
	add_process(*state, 10, 10, 100, "/bin/python");
	find(*state, 10, 10);
}

static void a_process_that_is_not_seen_is_an_error(void **state)
{
	struct joborigin origin;

	assert_int_equal(joborigin_find(*state, 77, &origin), -ENOENT);
	assert_int_equal(joborigin_find(*state, 0, &origin), -ESRCH);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_root, remove_root)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(spawned_ranks_have_the_origin_of_their_script),
		TEST(another_program_between_ends_the_search),
		TEST(a_process_that_is_its_own_ancestor_ends_the_search),
		TEST(a_process_that_is_not_seen_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
