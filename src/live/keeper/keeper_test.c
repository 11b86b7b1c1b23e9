/* SPDX-License-Identifier: Apache-2.0 */
#include "live/keeper/keeper.h"

#include "store/storelist.h"

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

static char folder[64], where[128];
static struct err err;

static int set_up(void **state)
{
	(void)state;
	(void)snprintf(folder, sizeof(folder), "/tmp/keeper_test.XXXXXX");
	assert_non_null(mkdtemp(folder));
	(void)snprintf(where, sizeof(where), "%s/store.db", folder);
	return 0;
}

static int tear_down(void **state)
{
	char command[96];

	(void)state;
	(void)snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command);
}

static struct keeper *open_keeper(const char *path)
{
	struct keeper_setup setup = { .where = path, .name = "train", .folder = folder };
	struct keeper *keeper = NULL;

	assert_int_equal(keeper_open(&setup, &keeper, &err), 0);
	return keeper;
}

static void say_state(struct keeper *keeper, bool ended)
{
	struct keeper_state state = { .state = ended ? "ended" : "watching",
				      .workers = 4,
				      .ended = ended,
				      .exit_status = 3 };

	keeper_state(keeper, &state);
}

struct seen {
	size_t jobs, events, times;
	uint64_t lost;
	char state[32], last[64];
	int exit_status;
};

static int see_job(void *arg, const struct store_job *job)
{
	struct seen *seen = arg;

	seen->jobs++;
	seen->lost = job->lost;
	seen->exit_status = job->exit_status;
	(void)snprintf(seen->state, sizeof(seen->state), "%s", job->state);
	return 0;
}

static int see_event(void *arg, const struct store_event *event)
{
	struct seen *seen = arg;

	seen->events++;
	assert_int_equal(event->place, seen->events);
	(void)snprintf(seen->last, sizeof(seen->last), "%s", event->text);
	return 0;
}

static int see_pace(void *arg, const struct store_pace *pace)
{
	struct seen *seen = arg;

	seen->times += pace->cnt;
	return 0;
}

static void look(const char *key, struct seen *seen)
{
	struct store *store = NULL;

	assert_int_equal(store_open_to_read(where, &store, &err), 0);
	assert_int_equal(store_list_jobs(store, 0, see_job, seen, &err), 0);
	assert_int_equal(store_list_events(store, key, see_event, seen, &err), 0);
	assert_int_equal(store_list_pace(store, key, 3600, see_pace, seen, &err), 0);
	(void)store_close(store);
}

static void all_that_was_said_is_in_the_store_in_its_order(void **state)
{
	struct keeper *keeper = open_keeper(where);
	struct seen seen = { 0 };
	char key[STORE_KEY_BYTES];

	(void)state;
	(void)snprintf(key, sizeof(key), "%s", keeper_borrow_key(keeper));
	for (int i = 0; i < 1500; i++) {
		keeper_event(keeper, "order", "number %d", i);
		keeper_pace(keeper, (uint64_t)i + 1, 1000);
		keeper_pace(keeper, (uint64_t)i + 1, 1000); /* a step that was seen */
		say_state(keeper, false);
	}
	say_state(keeper, true);
	assert_null(keeper_close(keeper));
	look(key, &seen);
	assert_int_equal(seen.jobs, 1);
	assert_string_equal(seen.state, "ended");
	assert_int_equal(seen.exit_status, 3);
	assert_int_equal(seen.events, 1500);
	assert_string_equal(seen.last, "number 1499");
	assert_int_equal(seen.times, 1500);
	assert_int_equal(seen.lost, 0);
}

static void what_does_not_fit_into_the_queue_is_counted(void **state)
{
	struct keeper *keeper = open_keeper(where);
	struct seen seen = { 0 };
	char key[STORE_KEY_BYTES];

	(void)state;
	(void)snprintf(key, sizeof(key), "%s", keeper_borrow_key(keeper));
	say_state(keeper, false);
	/* The thread wakes after 10 s: by then the queue is full. */
	for (unsigned i = 0; i < KEEPER_QUEUE_MAX + 100; i++)
		keeper_event(keeper, "order", "number %u", i);
	assert_null(keeper_close(keeper));
	look(key, &seen);
	assert_int_equal(seen.events, KEEPER_QUEUE_MAX);
	assert_int_equal(seen.lost, 100);
}

/* The store that a page reads, beside the one that keeps the job. */
static void a_twin_gets_the_same_under_the_same_key_but_no_fingerprints(void **state)
{
	struct keeper *keeper = open_keeper(where), *twin = NULL;
	char other[160], key[STORE_KEY_BYTES];
	struct keeper_setup setup = {
		.where = other, .name = "train", .folder = folder, .twin = keeper, .brief = true
	};
	struct seen seen = { 0 }, seen_twin = { 0 };

	(void)state;
	(void)snprintf(other, sizeof(other), "%s/page", folder);
	(void)snprintf(key, sizeof(key), "%s", keeper_borrow_key(keeper));
	assert_int_equal(keeper_open(&setup, &twin, &err), 0);
	assert_string_equal(keeper_borrow_key(twin), key);
	keeper_also(keeper, twin);
	for (int i = 0; i < 20; i++) {
		keeper_event(keeper, "order", "number %d%%", i);
		keeper_pace(keeper, (uint64_t)i + 1, 1000);
		keeper_fingerprint(keeper, 1, i, other);
	}
	say_state(keeper, true);
	assert_null(keeper_close(keeper));
	assert_null(keeper_close(twin));
	look(key, &seen);
	(void)snprintf(where, sizeof(where), "%s/page", folder);
	look(key, &seen_twin);
	assert_memory_equal(&seen, &seen_twin, sizeof(seen));
	assert_int_equal(seen.events, 20);
	assert_string_equal(seen.last, "number 19%");
	assert_int_equal(seen.times, 20);
}

/* The daemons of hosts that another one leads. */
static void a_job_without_a_state_makes_no_file(void **state)
{
	struct keeper *keeper = open_keeper(where);

	(void)state;
	keeper_event(keeper, "state", "waiting");
	assert_null(keeper_close(keeper));
	assert_int_equal(access(where, F_OK), -1);
}

static void a_store_that_cannot_be_made_holds_nobody_up(void **state)
{
	struct keeper *keeper = open_keeper("/proc/nowhere/store.db");

	(void)state;
	say_state(keeper, false);
	keeper_event(keeper, "order", "one");
	assert_null(keeper_close(keeper));
}

/* Waits for the thread. */
static enum keeper_known await_window(struct keeper *keeper, uint64_t epoch, uint64_t number,
				      int rank)
{
	enum keeper_known ret = KEEPER_ASK_AGAIN;

	for (int i = 0; i < 60000 && ret == KEEPER_ASK_AGAIN; i++) {
		ret = keeper_find_window(keeper, epoch, number, rank);
		(void)usleep(1000);
	}
	return ret;
}

static void a_window_is_committed_once_and_known_to_the_next_keeper(void **state)
{
	struct keeper *keeper = open_keeper(where);
	uint64_t epoch = 0, number = 0;

	(void)state;
	say_state(keeper, false);
	keeper_begin(keeper);
	keeper_event(keeper, "order", "one");
	keeper_window(keeper, 77, 3, (int[]){ 5, 0, 1, 2 }, 4);
	(void)usleep(20000);
	assert_false(keeper_take_committed(keeper, &epoch, &number)); /* more is to come */
	assert_int_equal(access(where, F_OK), -1);
	keeper_end(keeper);
	for (int i = 0; i < 60000 && !keeper_take_committed(keeper, &epoch, &number); i++)
		(void)usleep(1000);
	assert_int_equal(epoch, 77);
	assert_int_equal(number, 3);
	assert_false(keeper_take_committed(keeper, &epoch, &number));
	assert_null(keeper_close(keeper));
	keeper = open_keeper(where);
	assert_int_equal(await_window(keeper, 77, 3, 2), KEEPER_KNOWN);
	assert_int_equal(await_window(keeper, 77, 3, 5), KEEPER_KNOWN);
	assert_int_equal(await_window(keeper, 77, 3, 3), KEEPER_WITHOUT);
	assert_int_equal(await_window(keeper, 77, 4, 0), KEEPER_UNKNOWN);
	assert_int_equal(await_window(keeper, 76, 3, 0), KEEPER_UNKNOWN);
	assert_null(keeper_close(keeper));
}

static void no_keeper_keeps_nothing(void **state)
{
	(void)state;
	keeper_state(NULL, &(struct keeper_state){ .state = "watching" });
	keeper_pace(NULL, 1, 1);
	keeper_event(NULL, "order", "one");
	keeper_fingerprint(NULL, 1, 0, "rank0");
	assert_string_equal(keeper_borrow_key(NULL), "");
	assert_null(keeper_close(NULL));
}

#define in_folder(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		in_folder(all_that_was_said_is_in_the_store_in_its_order),
		in_folder(what_does_not_fit_into_the_queue_is_counted),
		in_folder(a_twin_gets_the_same_under_the_same_key_but_no_fingerprints),
		in_folder(a_job_without_a_state_makes_no_file),
		in_folder(a_store_that_cannot_be_made_holds_nobody_up),
		in_folder(a_window_is_committed_once_and_known_to_the_next_keeper),
		cmocka_unit_test(no_keeper_keeps_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
