/* SPDX-License-Identifier: Apache-2.0 */
/* The hub of a fleet's job that finds results of an earlier one, with a real store. */
#include "base/clock.h"
#include "base/file.h"
#include "format/fingerprint/fingerprint.h"
#include "host/process/test_tree.h"
#include "live/hub/hub.h"
#include "live/hub/test_states.h"
#include "live/keeper/keeper.h"
#include "live/link/wire_request.h"
#include "live/recovery/recovered.h"

#include <fcntl.h>

#define RANKS 2

static struct {
	const char *dir;
	struct fleet_job fleet;
	struct run_options options;
	struct bus *bus;
	struct hub *hub;
	struct keeper *keeper;
	struct wire_committed committed[8];
	size_t committed_cnt;
	int64_t now_ns;
} f;

static void see_committed(void *arg, const struct bus_message *message)
{
	(void)arg;
	assert_true(f.committed_cnt < ARRAY_SIZE(f.committed));
	memcpy(&f.committed[f.committed_cnt++], message->data, message->len);
}

static void open_hub(void)
{
	static char where[200];
	const struct keeper_setup keeping = { .where = where, .name = "job", .folder = f.dir };
	struct err err;

	(void)snprintf(where, sizeof(where), "%s/store.db", f.dir);
	assert_int_equal(hub_open(f.bus, &f.options, &f.hub), 0);
	assert_int_equal(keeper_open(&keeping, &f.keeper, &err), 0);
	hub_keep(f.hub, f.keeper);
}

static void close_hub(void)
{
	f.hub = hub_close(f.hub);
	f.keeper = keeper_close(f.keeper);
}

static int open_all(void **state)
{
	struct bus_sub *sub;

	memset(&f, 0, sizeof(f));
	if (make_root(state) < 0)
		return -1;
	f.dir = *state;
	f.now_ns = clock_mono_ns();
	f.options = (struct run_options){ .out_dir = f.dir,
					  .job_name = "job",
					  .fleet = &f.fleet,
					  .window_ns = NSEC_PER_SEC,
					  .steps_max = 10,
					  .no_audit = true,
					  .no_checkup = true,
					  .quiet = true };
	assert_int_equal(bus_open("inproc:", NULL, NULL, &f.bus), 0);
	assert_int_equal(bus_sub(f.bus, SUBJECT_COMMITTED, see_committed, NULL, &sub), 0);
	open_hub();
	return 0;
}

static int close_all(void **state)
{
	close_hub();
	f.bus = bus_close(f.bus);
	return remove_root(state);
}

/* Ticks of 100 ms; the store's thread gets a moment in each. */
static void tick(void)
{
	for (int rank = 0; rank < RANKS; rank++) {
		struct wire_state worker = test_worker(rank, 500, 50 * NSEC_PER_MSEC);

		worker.world_size = RANKS;
		worker.last_ns = f.now_ns;
		assert_int_equal(bus_pub(f.bus, SUBJECT_STATE, &worker, sizeof(worker)), 0);
	}
	hub_tick(f.hub, f.now_ns);
	while (bus_run(f.bus, f.now_ns) > 0)
		;
	f.now_ns += NSEC_PER_SEC / 10;
	(void)usleep(2000);
}

static void await_committed(size_t cnt)
{
	for (int i = 0; i < 30000 && f.committed_cnt < cnt; i++)
		tick();
	assert_int_equal(f.committed_cnt, cnt);
}

static void write_fingerprint(const char *path, int rank)
{
	struct fingerprint fp;
	struct err err;

	fingerprint_init(&fp);
	fp.rank = rank;
	fp.world_size = RANKS;
	fp.window_ns = NSEC_PER_SEC;
	assert_int_equal(fingerprint_write(&fp, path, &err), 0);
	fingerprint_done(&fp);
}

static void give(uint64_t epoch, int rank)
{
	struct wire_result result = { .epoch = epoch,
				      .order_id = 3,
				      .rank = rank,
				      .outcome = OUTCOME_SUMMARIZED,
				      .window = { .kind = "request",
						  .baseline_ms = 50,
						  .now_ms = 50,
						  .step = 400,
						  .workers = RANKS } };

	(void)snprintf(result.text, sizeof(result.text), "%s/%d.ptfp", f.dir, rank);
	write_fingerprint(result.text, rank);
	assert_int_equal(bus_pub(f.bus, SUBJECT_RESULT, &result, sizeof(result)), 0);
	tick();
}

static bool has_report(unsigned number)
{
	char path[200];

	(void)snprintf(path, sizeof(path), "%s/report-%u.json", f.dir, number);
	return access(path, F_OK) == 0;
}

static void assert_report_has(const char *expected)
{
	_cleanup_free_ char *text = NULL;
	struct err err;
	char path[200];
	size_t len;
	int fd;

	(void)snprintf(path, sizeof(path), "%s/report-1.json", f.dir);
	fd = open(path, O_RDONLY);
	assert_int_equal(file_read_whole(path, fd, 1 << 20, &text, &len, &err), 0);
	(void)close(fd);
	assert_non_null(memmem(text, len, expected, strlen(expected)));
}

static void a_window_of_an_earlier_hub_is_reported_once_and_committed(void **state)
{
	(void)state;
	give(77, 0);
	tick();
	assert_false(has_report(1));
	give(77, 1);
	await_committed(1);
	assert_true(has_report(1));
	assert_int_equal(f.committed[0].epoch, 77);
	assert_int_equal(f.committed[0].order_id, 3);
	/* A hub that comes later finds it in the store. */
	close_hub();
	open_hub();
	give(77, 0);
	give(77, 1);
	await_committed(2);
	assert_false(has_report(2));
	assert_int_equal(f.committed[1].epoch, 77);
	/* A rank that it did not count comes after all. */
	give(77, 2);
	await_committed(3);
	assert_false(has_report(2));
}

static void what_has_come_is_reported_when_the_job_ends(void **state)
{
	(void)state;
	give(77, 1);
	for (int i = 0; i < 100; i++)
		tick();
	assert_false(has_report(1));
	hub_finish(f.hub, &(struct job_end){ 0 });
	assert_true(has_report(1));
	assert_report_has("did not come after the hub was started again");
}

static void a_late_result_is_kept_and_committed(void **state)
{
	(void)state;
	give(hub_epoch(f.hub), 0); /* this hub has no window under way */
	await_committed(1);
	assert_int_equal(f.committed[0].epoch, hub_epoch(f.hub));
	assert_false(has_report(1));
}

static void see_order(void *arg, const struct bus_message *message)
{
	memcpy(arg, message->data, sizeof(struct wire_order));
}

static void answer(uint64_t order_id, int rank)
{
	struct wire_answer answer = { .worker = test_worker(rank, 0, 0).worker,
				      .outcome = OUTCOME_SUMMARIZED,
				      .order_id = order_id };

	(void)snprintf(answer.text, sizeof(answer.text), "%s/%d.ptfp", f.dir, rank);
	write_fingerprint(answer.text, rank);
	assert_int_equal(bus_pub(f.bus, SUBJECT_ANSWER, &answer, sizeof(answer)), 0);
	tick();
}

static void a_rank_whose_host_came_after_the_order_is_in_the_report(void **state)
{
	const struct wire_ask ask = { .client = 1, .kind = ASK_PROFILE };
	struct wire_state third = test_worker(2, 500, 50 * NSEC_PER_MSEC);
	struct wire_order order = { .id = 0 };
	struct bus_sub *sub;

	(void)state;
	assert_int_equal(bus_sub(f.bus, SUBJECT_ORDER, see_order, &order, &sub), 0);
	for (int i = 0; i < 30; i++)
		tick();
	assert_int_equal(bus_pub(f.bus, SUBJECT_ASK, &ask, sizeof(ask)), 0);
	for (int i = 0; i < 300 && order.id == 0; i++)
		tick();
	assert_int_not_equal(order.id, 0);
	assert_int_equal(order.window.workers, RANKS);
	assert_string_equal(order.window.kind, "request");
	assert_int_equal(bus_pub(f.bus, SUBJECT_STATE, &third, sizeof(third)), 0);
	answer(order.id, 2);
	for (int rank = 0; rank < RANKS; rank++)
		answer(order.id, rank);
	await_committed(1);
	assert_report_has("\"workers_analyzed\": 3");
}

int main(void)
{
#define WITH_HUB(test) cmocka_unit_test_setup_teardown(test, open_all, close_all)
	const struct CMUnitTest tests[] = {
		WITH_HUB(a_window_of_an_earlier_hub_is_reported_once_and_committed),
		WITH_HUB(what_has_come_is_reported_when_the_job_ends),
		WITH_HUB(a_rank_whose_host_came_after_the_order_is_in_the_report),
		WITH_HUB(a_late_result_is_kept_and_committed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
