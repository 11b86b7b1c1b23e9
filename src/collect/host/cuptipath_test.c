/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/host/cuptipath.h"

#include "collect/host/testtree.h"

#include <stdio.h>
#include <string.h>

#define WHEEL_13 "lib/python3.12/site-packages/nvidia/cu13/lib/libcupti.so.13"
#define WHEEL_OLD "lib/python3.12/site-packages/nvidia/cuda_cupti/lib/libcupti.so.12"

static struct cuptipath found;

/* root: where "bin" is. */
static void find(const char *root)
{
	char list[256];

	(void)snprintf(list, sizeof(list), "/nonexistent::%s/empty:%s/bin", root, root);
	cuptipath_find(NULL, list, &found);
}

static void assert_is(const char *name, const char *root, const char *path)
{
	char expected[PATH_MAX], real[PATH_MAX], wanted[PATH_MAX];

	(void)snprintf(expected, sizeof(expected), "%s/%s", root, path);
	assert_non_null(realpath(name, real));
	assert_non_null(realpath(expected, wanted));
	assert_string_equal(real, wanted);
}

static void without_a_wheel_it_is_the_loaders_then_the_toolkits(void **state)
{
	write_file(*state, "bin/python3", "");
	write_file(*state, WHEEL_OLD, "");
	find(*state);
	assert_string_equal(found.names[0], "libcupti.so.13");
	assert_string_equal(found.names[1], "/usr/local/cuda/lib64/libcupti.so.13");
	assert_non_null(found.names[2]);
	assert_null(found.names[3]);
	cuptipath_find(NULL, NULL, &found);
	assert_null(found.names[3]);
}

static void a_wheel_beside_the_python_comes_before_the_toolkit(void **state)
{
	write_file(*state, "bin/python3", "");
	write_file(*state, WHEEL_13, "");
	find(*state);
	assert_string_equal(found.names[0], "libcupti.so.13");
	assert_is(found.names[1], *state, WHEEL_13);
	assert_string_equal(found.names[2], "/usr/local/cuda/lib64/libcupti.so.13");
	assert_null(found.names[CUPTIPATH_CNT]);
}

static void a_virtual_environments_base_has_it_too(void **state)
{
	char base[PATH_MAX], link[PATH_MAX];

	write_file(*state, "base/bin/python3.12", "");
	write_file(*state, "base/" WHEEL_13, "");
	write_file(*state, "bin/activate", "");
	(void)snprintf(base, sizeof(base), "%s/base/bin/python3.12", (const char *)*state);
	(void)snprintf(link, sizeof(link), "%s/bin/python", (const char *)*state);
	assert_int_equal(symlink(base, link), 0);
	find(*state);
	assert_is(found.names[1], *state, "base/" WHEEL_13);
	write_file(*state, WHEEL_13, ""); /* its own is the nearer */
	find(*state);
	assert_is(found.names[1], *state, WHEEL_13);
}

static void what_is_named_is_not_looked_for(void **state)
{
	write_file(*state, "bin/python3", "");
	write_file(*state, WHEEL_13, "");
	cuptipath_find("/opt/libcupti.so", *state, &found);
	assert_string_equal(found.names[0], "/opt/libcupti.so");
	assert_null(found.names[1]);
	cuptipath_find("", NULL, &found);
	assert_string_equal(found.names[0], "libcupti.so.13");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_root, remove_root)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(without_a_wheel_it_is_the_loaders_then_the_toolkits),
		TEST(a_wheel_beside_the_python_comes_before_the_toolkit),
		TEST(a_virtual_environments_base_has_it_too),
		TEST(what_is_named_is_not_looked_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
