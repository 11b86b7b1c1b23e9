/* SPDX-License-Identifier: Apache-2.0 */
/* The hub on a bus where the test publishes what hostd would. */
#include "base/clock.h"
#include "base/file.h"
#include "format/fingerprint/fingerprint.h"
#include "host/process/test_tree.h"
#include "live/hub/hub_parts.h"
#include "live/hub/test_states.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define RANK_CNT 4

static struct {
	const char *dir;
	struct run_options options;
	struct bus *bus;
	struct hub *hub;
} f;

static void run(void)
{
	while (bus_run(f.bus, clock_mono_ns()) > 0)
		;
}

static int open_all(void **state)
{
	if (make_root(state) < 0)
		return -1;
	f.dir = *state;
	f.options = (struct run_options){ .out_dir = f.dir,
					  .window_ns = NSEC_PER_SEC,
					  .steps_max = 10,
					  .no_audit = true,
					  .quiet = true };
	assert_int_equal(bus_open("inproc:", NULL, NULL, &f.bus), 0);
	assert_int_equal(hub_open(f.bus, &f.options, &f.hub), 0);
	for (int rank = 0; rank < RANK_CNT; rank++) {
		const struct wire_state worker = test_worker(rank, 500, 50 * NSEC_PER_MSEC);

		assert_int_equal(bus_pub(f.bus, SUBJECT_STATE, &worker, sizeof(worker)), 0);
	}
	run();
	return 0;
}

static int close_all(void **state)
{
	(void)hub_close(f.hub);
	(void)bus_close(f.bus);
	return remove_root(state);
}

/* Sends the fingerprint of a window in which nothing is recorded. */
static void deliver(int rank)
{
	struct wire_answer answer = { .worker = (uint32_t)rank + 1,
				      .outcome = OUTCOME_SUMMARIZED,
				      .order_id = 1 };
	struct fingerprint fp;
	struct err err;

	(void)snprintf(answer.text, sizeof(answer.text), "%s/%d.ptfp", f.dir, rank);
	fingerprint_init(&fp);
	fp.rank = rank;
	fp.world_size = RANK_CNT;
	fp.window_ns = NSEC_PER_SEC;
	assert_int_equal(fingerprint_write(&fp, answer.text, &err), 0);
	fingerprint_done(&fp);
	assert_int_equal(bus_pub(f.bus, SUBJECT_ANSWER, &answer, sizeof(answer)), 0);
	run();
}

static void assert_reported(const char *expected)
{
	char path[128], *text;
	struct err err;
	size_t len;
	int fd;

	(void)snprintf(path, sizeof(path), "%s/report.json", f.dir);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(file_read_whole(path, fd, 1 << 20, &text, &len, &err), 0);
	(void)close(fd);
	if (memmem(text, len, expected, strlen(expected)) == NULL)
		fail_msg("expected \"%s\" in %.*s", expected, (int)len, text);
	free(text);
}

static void the_last_report_counts_a_slowdown_whose_profile_the_jobs_end_finishes(void **state)
{
	(void)state;
	assert_int_equal(hub_start_profile(f.hub, "slowdown", NSEC_PER_SEC, clock_mono_ns()), 0);
	for (int rank = 0; rank < RANK_CNT; rank++)
		deliver(rank);
	hub_finish(f.hub, 0);
	assert_reported("500 iterations watched; 1 short slowdown profiled, without a culprit");
}

static void a_job_without_a_profile_had_no_slowdown(void **state)
{
	(void)state;
	hub_finish(f.hub, 0);
	assert_reported("500 iterations watched, no slowdown");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			the_last_report_counts_a_slowdown_whose_profile_the_jobs_end_finishes,
			open_all, close_all),
		cmocka_unit_test_setup_teardown(a_job_without_a_profile_had_no_slowdown, open_all,
						close_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
