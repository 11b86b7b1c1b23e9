/* SPDX-License-Identifier: Apache-2.0 */
/* The job and the report of a test that has one of each; done() is its teardown. */
#pragma once

#include "localize/test_job.h"

static struct test_job job;
static struct report report;

static int done(void **state)
{
	(void)state;
	report_done(&report);
	test_job_done(&job);
	return 0;
}
