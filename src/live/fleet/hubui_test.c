/* SPDX-License-Identifier: Apache-2.0 */
#include "live/fleet/hubui.h"

#include "live/fleet/jobkey.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

static void a_folder_leads_to_the_socket_of_its_leader(void **state)
{
	char cluster[] = "east", run[] = "/run/hub", digest[17], expected[108], found[108];
	const struct site site = { .values = { .cluster = cluster, .hub_run = run } };

	(void)state;
	jobkey_digest("east/u1000/slurm-7.0", digest);
	(void)snprintf(expected, sizeof(expected), "/run/hub/%s.sock", digest);
	assert_int_equal(hubui_socket(&site, "/var/lib/jobs/u1000/slurm-7.0", found, sizeof(found)),
			 0);
	assert_string_equal(found, expected);
}

static void folders_of_other_jobs_lead_nowhere(void **state)
{
	static const char *const folders[] = { "",
					       "/",
					       "x",
					       "/out",
					       "/out/",
					       "/home/ann/perftracker-out/run-1",
					       "/jobs/u1000",
					       "/jobs/u1000/",
					       "/jobs/ux/job",
					       "/jobs/u1/../job",
					       "/jobs/u1/.hidden" };
	char cluster[] = "east", run[] = "/run/hub", found[108] = "untouched";
	const struct site site = { .values = { .cluster = cluster, .hub_run = run } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
		if (hubui_socket(&site, folders[i], found, sizeof(found)) != -ENOENT)
			fail_msg("%s: %s", folders[i], found);
	}
	assert_string_equal(found, "untouched");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_folder_leads_to_the_socket_of_its_leader),
		cmocka_unit_test(folders_of_other_jobs_lead_nowhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
