/* SPDX-License-Identifier: Apache-2.0 */
#include "live/recovery/takennumbers.h"

#include "host/process/test_tree.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64];

static void make(const char *name, bool is_folder)
{
	char path[256];

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	if (is_folder)
		assert_int_equal(mkdir(path, 0700), 0);
	else
		assert_int_equal(close(open(path, O_CREAT | O_WRONLY, 0600)), 0);
}

static int setup(void **state)
{
	(void)state;
	(void)snprintf(folder, sizeof(folder), "/tmp/pt-numbers-XXXXXX");
	return mkdtemp(folder) != NULL ? 0 : -1;
}

static int teardown(void **state)
{
	char command[128];

	(void)state;
	(void)snprintf(command, sizeof(command), "rm -r '%s'", folder);
	return system(command);
}

static void an_empty_or_missing_folder_has_none(void **state)
{
	uint64_t report = 9;

	(void)state;
	assert_int_equal(takennumbers_find(folder, &report), 0);
	assert_int_equal(report, 0);
	assert_int_equal(takennumbers_find("/nonexistent/pt", &report), 0);
}

static void windows_without_a_report_count_and_other_names_do_not(void **state)
{
	uint64_t report;

	(void)state;
	make("report-3.json", false);
	make("report-3.html", false);
	make("report-12.json", false);
	make("report.json", false);
	make("report-x.json", false);
	make("report-99999999999999999999.json", false);
	make("fingerprints", true);
	make("fingerprints/14", true);
	make("fingerprints/2", true);
	make("fingerprints/old", true);
	assert_int_equal(takennumbers_find(folder, &report), 14);
	assert_int_equal(report, 12);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(an_empty_or_missing_folder_has_none, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			windows_without_a_report_count_and_other_names_do_not, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
