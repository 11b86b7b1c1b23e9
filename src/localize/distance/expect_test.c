/* SPDX-License-Identifier: Apache-2.0 */
#include "localize/distance/expect.h"

#include "localize/test_job.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static double distance(enum event_class class, double beta, double mu, double sigma)
{
	struct expect_table table = expect_defaults();
	struct fp_function f = {
		.class = (uint8_t) class, .beta_frac = beta, .mu_frac = mu, .sigma_frac = sigma
	};

	return expect_distance(&table, &f);
}

static void the_defaults_are_the_papers_and_idle_counts_as_host(void **state)
{
	(void)state;
	assert_float_equal(distance(CLASS_HOST, 0.01, (double)NAN, (double)NAN), 0, 0);
	assert_float_equal(distance(CLASS_HOST, 0.25, (double)NAN, (double)NAN), 0.24, 1e-12);
	assert_float_equal(distance(CLASS_COMM, 0.3, 0.9, 0.9), 0, 0);
	assert_float_equal(distance(CLASS_COMM, 0.45, 0.9, 0.9), 0.15, 1e-12);
	assert_float_equal(distance(CLASS_MEMORY, 1, 1, 1), 0, 0);
	assert_float_equal(distance(CLASS_COMPUTE, 1, 0, 0), 0, 0);
	assert_float_equal(distance(CLASS_IDLE, 0.25, (double)NAN, (double)NAN), 0.24, 1e-12);
}

static void an_absent_dimension_adds_nothing(void **state)
{
	(void)state;
	assert_float_equal(distance(CLASS_HOST, 0.11, (double)NAN, (double)NAN),
			   distance(CLASS_HOST, 0.11, 0.5, 0.5), 0);
}

/* Loads text as an expectation file; returns what expect_load() returned. */
static int load(const char *text, struct expect_table *table, struct err *err)
{
	char path[] = "/tmp/expect_test.XXXXXX";
	int fd = mkstemp(path), ret;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	assert_int_equal(close(fd), 0);
	ret = expect_load(path, table, err);
	assert_int_equal(unlink(path), 0);
	return ret;
}

static void a_file_overrides_only_the_values_it_names(void **state)
{
	struct expect_table table = expect_defaults();
	struct err err;
	struct fp_function f = {
		.class = CLASS_COMPUTE, .beta_frac = 0.5, .mu_frac = 0.6, .sigma_frac = 0.2
	};

	(void)state;
	assert_int_equal(
		load("{\"compute\": {\"mu\": [0.8, 1], \"sigma\": [0, 0.1]}}", &table, &err), 0);
	assert_float_equal(expect_distance(&table, &f), 0.3, 1e-6);
	assert_float_equal(table.of_class[CLASS_HOST].beta[1], 0.01, 0);
	assert_float_equal(table.of_class[CLASS_COMPUTE].beta[1], 1, 0);
}

static void a_wrong_file_is_an_error_and_changes_nothing(void **state)
{
	static const struct {
		const char *text, *says;
	} wrong[] = {
		{ "[]", "expected an object of classes" },
		{ "{\"network\": {}}", "network: expected idle, host" },
		{ "{\"host\": 3}", "host: expected an object" },
		{ "{\"host\": {\"betta\": [0, 1]}}", "host.betta: expected beta, mu or sigma" },
		{ "{\"host\": {\"beta\": [0]}}", "host.beta: expected [low, high]" },
		{ "{\"host\": {\"beta\": [\"0\", 1]}}", "host.beta: expected [low, high]" },
		{ "{\"host\": {\"beta\": [0.5, 0.1]}}", "0 <= low <= high <= 1" },
		{ "{\"host\": {\"beta\": [0, 7]}}", "0 <= low <= high <= 1" },
		{ "{\"host\": {\"mu\": [0.5, 0.6]}, \"host\": {}}", "duplicate" },
		{ "{\"host\": {\"mu\": [0.5, 0.6]}, \"comm\": []}", "comm: expected an object" },
		{ "{\"host\": ", "" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		struct expect_table table = expect_defaults(), before = table;
		struct err err = { "" };

		assert_int_equal(load(wrong[i].text, &table, &err), -EINVAL);
		if (strstr(err.text, wrong[i].says) == NULL || err.text[0] == '\0')
			fail_msg("%s: said '%s'", wrong[i].text, err.text);
		assert_memory_equal(&table, &before, sizeof(table));
	}
}

static void an_absent_file_is_an_error(void **state)
{
	struct expect_table table = expect_defaults();
	struct err err = { "" };

	(void)state;
	assert_true(expect_load("/nonexistent/expect.json", &table, &err) < 0);
	assert_non_null(strstr(err.text, "/nonexistent/expect.json"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_defaults_are_the_papers_and_idle_counts_as_host),
		cmocka_unit_test(an_absent_dimension_adds_nothing),
		cmocka_unit_test(a_file_overrides_only_the_values_it_names),
		cmocka_unit_test(a_wrong_file_is_an_error_and_changes_nothing),
		cmocka_unit_test(an_absent_file_is_an_error),
	};

	return cmocka_run_group_tests_name("expect", tests, NULL, NULL);
}
