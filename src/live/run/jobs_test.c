/* SPDX-License-Identifier: Apache-2.0 */
#include "live/run/jobs.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

static void an_answer_fills_the_fields_of_its_keys(void **state)
{
	struct job_about about = { .pid = 0 };

	(void)state;
	job_about_take(&about, "name=train");
	job_about_take(&about, "pid=4711");
	job_about_take(&about, "slow_since=650");
	job_about_take(&about, "restarts=2");
	job_about_take(&about, "kept=7");
	job_about_take(&about, "dropped=1");
	job_about_take(&about, "now_ns=33800000");
	job_about_take(&about, "reason=rank 2: step=4");
	job_about_take(&about, "from-the-future=1");
	job_about_take(&about, "");
	assert_string_equal(about.name, "train");
	assert_int_equal(about.pid, 4711);
	assert_int_equal(about.slow_since_step, 650);
	assert_int_equal(about.restarts, 2);
	assert_int_equal(about.kept, 7);
	assert_int_equal(about.dropped, 1);
	assert_int_equal(about.now_ns, 33800000);
	assert_string_equal(about.reason, "rank 2: step=4");
	assert_int_equal(about.step, 0);
}

static void a_text_that_is_too_long_is_cut(void **state)
{
	struct job_about about = { .pid = 0 };
	char pair[256] = "verdict=";

	(void)state;
	memset(pair + 8, 'x', sizeof(pair) - 9);
	job_about_take(&about, pair);
	assert_int_equal(strlen(about.verdict), sizeof(about.verdict) - 1);
}

static void a_job_is_looked_for_by_folder_socket_and_name(void **state)
{
	char folder[] = "/tmp/pt-jobs-XXXXXX", socket[128] = "old";
	struct err err;

	(void)state;
	assert_non_null(mkdtemp(folder));
	assert_int_equal(setenv("XDG_RUNTIME_DIR", folder, 1), 0);
	assert_int_equal(jobs_find(folder, socket, sizeof(socket), &err), -ENOENT);
	assert_non_null(strstr(err.text, "no running job writes there"));
	assert_int_equal(jobs_find("train", socket, sizeof(socket), &err), -ENOENT);
	assert_non_null(strstr(err.text, "no running job 'train'"));
	assert_string_equal(socket, "old");
	assert_int_equal(jobs_find("/run/x.sock", socket, sizeof(socket), &err), 0);
	assert_string_equal(socket, "/run/x.sock");
	assert_int_equal(jobs_find("/run/x.sock", socket, 4, &err), -ENAMETOOLONG);
	assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_answer_fills_the_fields_of_its_keys),
		cmocka_unit_test(a_text_that_is_too_long_is_cut),
		cmocka_unit_test(a_job_is_looked_for_by_folder_socket_and_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
