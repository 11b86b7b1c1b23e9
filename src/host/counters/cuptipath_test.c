/* SPDX-License-Identifier: Apache-2.0 */
#include "host/counters/cuptipath.h"

#include "host/process/test_tree.h"

#include <stdio.h>
#include <string.h>

#define WHEEL_13 "lib/python3.12/site-packages/nvidia/cu13/lib/libcupti.so.13"
#define WHEEL_12 "lib/python3.12/site-packages/nvidia/cuda_cupti/lib/libcupti.so.12"
#define DRIVER_13 13000
#define DRIVER_12 12040

static struct cuptipath found;

/* root: where "bin" is. */
static void find(const char *root, int driver)
{
	char list[256];

	(void)snprintf(list, sizeof(list), "/nonexistent::%s/empty:%s/bin", root, root);
	cuptipath_find(NULL, list, driver, &found);
}

static void assert_is(const char *name, const char *root, const char *path)
{
	char expected[PATH_MAX], real[PATH_MAX], wanted[PATH_MAX];

	(void)snprintf(expected, sizeof(expected), "%s/%s", root, path);
	assert_non_null(realpath(name, real));
	assert_non_null(realpath(expected, wanted));
	assert_string_equal(real, wanted);
}

static void assert_toolkits(size_t idx, const char *major)
{
	char expected[128];

	for (int i = 0; i < 4; i++) {
		(void)snprintf(expected, sizeof(expected),
			       "/usr/local/cuda%s%s%s/lib64/libcupti.so.%s", i < 2 ? "" : "-",
			       i < 2 ? "" : major, i % 2 == 0 ? "" : "/extras/CUPTI", major);
		assert_string_equal(found.names[idx + (size_t)i], expected);
	}
}

static void without_a_wheel_the_loaders_cupti_then_the_toolkits_is_used(void **state)
{
	write_file(*state, "bin/python3", "");
	find(*state, DRIVER_13);
	assert_string_equal(found.names[0], "libcupti.so.13");
	assert_toolkits(1, "13");
	assert_string_equal(found.names[5], "libcupti.so.12");
	assert_toolkits(6, "12");
	assert_null(found.names[10]);
	cuptipath_find(NULL, NULL, DRIVER_13, &found);
	assert_null(found.names[10]);
}

static void a_wheel_beside_the_python_comes_before_the_toolkit(void **state)
{
	write_file(*state, "bin/python3", "");
	write_file(*state, WHEEL_13, "");
	find(*state, DRIVER_13);
	assert_string_equal(found.names[0], "libcupti.so.13");
	assert_is(found.names[1], *state, WHEEL_13);
	assert_toolkits(2, "13");
	write_file(*state, WHEEL_12, "");
	find(*state, DRIVER_13);
	assert_is(found.names[1], *state, WHEEL_13);
	assert_string_equal(found.names[6], "libcupti.so.12");
	assert_is(found.names[7], *state, WHEEL_12);
	assert_null(found.names[CUPTIPATH_CNT]);
}

/* CUDA 13's does not work with it. */
static void with_a_driver_of_cuda_12_only_12s_are_tried(void **state)
{
	write_file(*state, "bin/python3", "");
	write_file(*state, WHEEL_13, "");
	write_file(*state, WHEEL_12, "");
	find(*state, DRIVER_12);
	assert_string_equal(found.names[0], "libcupti.so.12");
	assert_is(found.names[1], *state, WHEEL_12);
	assert_toolkits(2, "12");
	assert_null(found.names[6]);
	find(*state, 11080);
	assert_null(found.names[0]);
	find(*state, 0);
	assert_string_equal(found.names[0], "libcupti.so.13");
	assert_string_equal(found.names[6], "libcupti.so.12");
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
	find(*state, DRIVER_13);
	assert_is(found.names[1], *state, "base/" WHEEL_13);
	write_file(*state, WHEEL_13, ""); /* its own is the nearer */
	find(*state, DRIVER_13);
	assert_is(found.names[1], *state, WHEEL_13);
}

static void a_named_cupti_is_the_only_one(void **state)
{
	write_file(*state, "bin/python3", "");
	write_file(*state, WHEEL_13, "");
	cuptipath_find("/opt/libcupti.so", *state, DRIVER_12, &found);
	assert_string_equal(found.names[0], "/opt/libcupti.so");
	assert_null(found.names[1]);
	cuptipath_find("", NULL, 0, &found);
	assert_string_equal(found.names[0], "libcupti.so.13");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_root, remove_root)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(without_a_wheel_the_loaders_cupti_then_the_toolkits_is_used),
		TEST(a_wheel_beside_the_python_comes_before_the_toolkit),
		TEST(with_a_driver_of_cuda_12_only_12s_are_tried),
		TEST(a_virtual_environments_base_has_it_too),
		TEST(a_named_cupti_is_the_only_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
