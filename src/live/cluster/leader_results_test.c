/* SPDX-License-Identifier: Apache-2.0 */
/* Results between one follower with a spool and leaders that come and go. */
#include "base/clock.h"
#include "base/file.h"
#include "base/test_random.h"
#include "host/process/test_tree.h"
#include "live/cluster/cluster.h"
#include "live/hub/test_states.h"
#include "live/link/wire_report.h"
#include "live/spool/spool.h"

#include <fcntl.h>

#define SECOND NSEC_PER_SEC

static struct {
	char out[2][200], spool[240];
	struct bus *buses[2], *nets[2]; /* of the follower, of the leader */
	struct leader *leader;
	struct follower *follower;
	struct wire_order order;   /* the latest at the follower */
	struct wire_answer answer; /* and at the leader */
	struct wire_result result;
	unsigned answers, results, missed;
	uint64_t epoch, random;
	unsigned lose_of_100;
	int64_t now_ns;
} f;

static void relay(void *arg, const struct bus_message *message)
{
	if (test_random(&f.random) % 100 >= f.lose_of_100)
		assert_int_equal(bus_pub(arg, message->subject, message->data, message->len), 0);
}

static void see_order(void *arg, const struct bus_message *message)
{
	(void)arg;
	memcpy(&f.order, message->data, sizeof(f.order));
}

static void see_answer(void *arg, const struct bus_message *message)
{
	(void)arg;
	memcpy(&f.answer, message->data, sizeof(f.answer));
	f.answers++;
	f.missed += f.answer.outcome == OUTCOME_MISSED;
}

static void see_result(void *arg, const struct bus_message *message)
{
	(void)arg;
	memcpy(&f.result, message->data, sizeof(f.result));
	f.results++;
}

static void open_leader(void)
{
	const struct cluster_setup setup = { .local = f.buses[1],
					     .net = f.nets[1],
					     .job = "job",
					     .id = "hub",
					     .host = "head",
					     .out_dir = f.out[1],
					     .no_workers = true,
					     .epoch = ++f.epoch };

	assert_int_equal(leader_open(&setup, &f.leader), 0);
}

static void open_follower(void)
{
	const struct cluster_setup setup = { .local = f.buses[0],
					     .net = f.nets[0],
					     .job = "job",
					     .id = "h1",
					     .host = "h1",
					     .out_dir = f.out[0],
					     .spool_dir = f.spool,
					     .spool_bytes = SPOOL_BYTES_MIN };

	assert_int_equal(follower_open(&setup, &f.follower), 0);
}

static int open_all(void **state)
{
	struct bus_sub *sub;

	memset(&f, 0, sizeof(f));
	if (make_root(state) < 0)
		return -1;
	f.epoch = 1000;
	f.random = 11;
	f.now_ns = clock_mono_ns();
	(void)snprintf(f.spool, sizeof(f.spool), "%s/spool", (const char *)*state);
	for (size_t i = 0; i < 2; i++) {
		char path[240];

		(void)snprintf(f.out[i], sizeof(f.out[i]), "%s/%zu", (const char *)*state, i);
		(void)snprintf(path, sizeof(path), "%s/fingerprints", f.out[i]);
		assert_int_equal(mkdir(f.out[i], 0700) + mkdir(path, 0700), 0);
		assert_int_equal(bus_open("inproc:", NULL, NULL, &f.buses[i]), 0);
		assert_int_equal(bus_open("inproc:", NULL, NULL, &f.nets[i]), 0);
	}
	assert_int_equal(bus_sub(f.nets[0], "pt.v1.job.up.>", relay, f.nets[1], &sub), 0);
	assert_int_equal(bus_sub(f.nets[1], "pt.v1.job.down", relay, f.nets[0], &sub), 0);
	assert_int_equal(bus_sub(f.nets[1], "pt.v1.job.to.>", relay, f.nets[0], &sub), 0);
	assert_int_equal(bus_sub(f.buses[0], SUBJECT_ORDER, see_order, NULL, &sub), 0);
	assert_int_equal(bus_sub(f.buses[1], SUBJECT_ANSWER, see_answer, NULL, &sub), 0);
	assert_int_equal(bus_sub(f.buses[1], SUBJECT_RESULT, see_result, NULL, &sub), 0);
	open_leader();
	open_follower();
	return 0;
}

static int close_all(void **state)
{
	f.leader = leader_close(f.leader);
	f.follower = follower_close(f.follower);
	for (size_t i = 0; i < 2; i++) {
		f.buses[i] = bus_close(f.buses[i]);
		f.nets[i] = bus_close(f.nets[i]);
	}
	return remove_root(state);
}

static void run_buses(void)
{
	size_t cnt;

	do {
		cnt = 0;
		for (size_t i = 0; i < 2; i++)
			cnt += bus_run(f.buses[i], f.now_ns) + bus_run(f.nets[i], f.now_ns);
	} while (cnt > 0);
}

/* So long in ticks of 100 ms; time does not really pass. */
static void pass(int64_t time_ns)
{
	for (int64_t end_ns = f.now_ns + time_ns; f.now_ns < end_ns; f.now_ns += SECOND / 10) {
		if (f.follower != NULL)
			follower_tick(f.follower, f.now_ns);
		if (f.leader != NULL)
			leader_tick(f.leader, f.now_ns);
		run_buses();
	}
}

static void say(size_t at, const char *subject, const void *data, size_t len)
{
	assert_int_equal(bus_pub(f.buses[at], subject, data, len), 0);
	run_buses();
}

/* A worker of rank 3, and a window ordered with this number. */
static void begin_window(uint64_t id)
{
	const struct wire_state state = test_worker(3, 500, SECOND / 20);
	struct wire_order order = { .id = id, .start_step = 700, .window_ns = SECOND, .steps = 9 };

	order.window = (struct wire_window){ .kind = "slowdown",
					     .baseline_ms = 400,
					     .now_ms = 600.5,
					     .since_step = 650,
					     .step = 700,
					     .workers = 4 };
	pass(2 * SECOND);
	say(0, SUBJECT_STATE, &state, sizeof(state));
	say(1, SUBJECT_ORDER, &order, sizeof(order));
	pass(2 * SECOND);
}

static void answer(uint64_t order_id, const char *bytes)
{
	struct wire_answer answer = { .worker = test_worker(3, 0, 0).worker,
				      .outcome = OUTCOME_SUMMARIZED,
				      .order_id = order_id };

	write_file(f.out[0], "fingerprints/made.ptfp", bytes);
	(void)snprintf(answer.text, sizeof(answer.text), "%s/fingerprints/made.ptfp", f.out[0]);
	say(0, SUBJECT_ANSWER, &answer, sizeof(answer));
}

static void commit(uint64_t epoch, uint64_t order_id)
{
	const struct wire_committed committed = { epoch, order_id };

	say(1, SUBJECT_COMMITTED, &committed, sizeof(committed));
	pass(SECOND);
}

static void assert_bytes(const char *path, const char *expected)
{
	_cleanup_free_ char *data = NULL;
	int fd = open(path, O_RDONLY);
	struct err err;
	size_t len;

	assert_true(fd >= 0);
	assert_int_equal(file_read_whole(path, fd, 1 << 20, &data, &len, &err), 0);
	(void)close(fd);
	assert_int_equal(len, strlen(expected));
	assert_memory_equal(data, expected, len);
}

/* What the spool's folder holds, read as by another process. */
static size_t kept_on_disk(void)
{
	char copy[250], command[800];
	struct spool_setup setup = { .dir = copy, .bytes_max = SPOOL_BYTES_MIN };
	struct spool *spool = NULL;
	struct err err;
	size_t ret;

	(void)snprintf(copy, sizeof(copy), "%s.copy", f.spool);
	(void)snprintf(command, sizeof(command), "rm -rf %s && cp -r %s %s", copy, f.spool, copy);
	assert_int_equal(system(command), 0);
	assert_int_equal(spool_open(&setup, &spool, &err), 0);
	ret = spool_stats(spool).waiting;
	(void)spool_close(spool);
	return ret;
}

/* --- tests --- */

static void a_result_is_kept_until_its_window_is_committed(void **state)
{
	(void)state;
	begin_window(3);
	answer(f.order.id, "fingerprint");
	pass(5 * SECOND);
	assert_int_equal(f.answers, 1);
	assert_bytes(f.answer.text, "fingerprint");
	assert_int_equal(kept_on_disk(), 1);
	assert_false(follower_is_done(f.follower));
	pass(300 * SECOND); /* sent again meanwhile: it comes once */
	assert_true(follower_stats(f.follower).resent > 0);
	assert_int_equal(f.answers, 1);
	commit(f.epoch, 3);
	assert_int_equal(kept_on_disk(), 0);
	assert_true(follower_is_done(f.follower));
}

static void a_lost_acknowledgement_is_said_again(void **state)
{
	(void)state;
	begin_window(3);
	answer(f.order.id, "fingerprint");
	pass(5 * SECOND);
	f.lose_of_100 = 100;
	commit(f.epoch, 3);
	f.lose_of_100 = 0;
	assert_int_equal(kept_on_disk(), 1);
	pass(400 * SECOND);
	assert_int_equal(kept_on_disk(), 0);
	assert_int_equal(f.answers, 1);
}

static void another_leader_gets_what_was_not_committed_and_learns_what_it_was_for(void **state)
{
	uint64_t first;

	(void)state;
	begin_window(3);
	first = f.order.id;
	answer(first, "delivered");
	pass(5 * SECOND);
	assert_int_equal(f.answers, 1);
	f.leader = leader_close(f.leader);
	open_leader();
	pass(5 * SECOND);
	assert_int_equal(f.results, 1);
	assert_int_equal(f.result.epoch, 1001);
	assert_int_equal(f.result.order_id, 3);
	assert_int_equal(f.result.rank, 3);
	assert_int_equal(f.result.outcome, OUTCOME_SUMMARIZED);
	assert_string_equal(f.result.window.kind, "slowdown");
	assert_int_equal(f.result.window.since_step, 650);
	assert_int_equal(f.result.window.workers, 4);
	assert_true(f.result.window.now_ms == 600.5);
	assert_bytes(f.result.text, "delivered");
	/* Its own window of that number is another one. */
	begin_window(3);
	assert_int_not_equal(f.order.id, first);
	commit(f.epoch, 3);
	assert_int_equal(kept_on_disk(), 1);
	commit(1001, 3);
	assert_int_equal(kept_on_disk(), 0);
	assert_int_equal(f.answers, 1);
}

static void an_answer_to_an_earlier_leaders_order_is_sent_to_the_next(void **state)
{
	uint64_t first;

	(void)state;
	begin_window(3);
	first = f.order.id;
	f.leader = leader_close(f.leader);
	open_leader();
	begin_window(3);
	answer(first, "of the first");
	pass(5 * SECOND);
	assert_int_equal(f.answers, 0);
	assert_int_equal(f.results, 1);
	assert_int_equal(f.result.epoch, 1001);
}

static void a_daemon_that_starts_again_sends_what_the_other_kept(void **state)
{
	(void)state;
	begin_window(3);
	f.lose_of_100 = 100;
	answer(f.order.id, "kept");
	pass(SECOND);
	f.follower = follower_close(f.follower);
	f.lose_of_100 = 0;
	open_follower();
	pass(30 * SECOND);
	assert_int_equal(f.answers, 0); /* its worker is not known to this daemon */
	assert_int_equal(f.results, 1);
	assert_int_equal(f.result.epoch, f.epoch);
	assert_int_equal(f.result.rank, 3);
	assert_bytes(f.result.text, "kept");
	commit(f.epoch, 3);
	assert_int_equal(kept_on_disk(), 0);
}

static void see_slices(void *arg, const struct bus_message *message)
{
	memcpy(arg, message->data, sizeof(struct wire_slices));
}

static void see_cost(void *arg, const struct bus_message *message)
{
	memcpy(arg, message->data, sizeof(struct wire_slices_cost));
}

static void costs_for_an_earlier_leader_name_no_measurement_of_the_next(void **state)
{
	const struct wire_slices slices = { .id = 4, .slice_cnt = 2, .slice_steps = 5 };
	struct wire_slices_cost cost = { .worker = test_worker(3, 0, 0).worker },
				seen = { .id = 9 };
	struct wire_slices ordered = { .id = 0 };
	struct bus_sub *sub;

	(void)state;
	assert_int_equal(bus_sub(f.buses[0], SUBJECT_SLICES, see_slices, &ordered, &sub), 0);
	assert_int_equal(bus_sub(f.buses[1], SUBJECT_SLICES_COST, see_cost, &seen, &sub), 0);
	begin_window(3);
	say(1, SUBJECT_SLICES, &slices, sizeof(slices));
	pass(2 * SECOND);
	cost.id = ordered.id;
	say(0, SUBJECT_SLICES_COST, &cost, sizeof(cost));
	pass(2 * SECOND);
	assert_int_equal(seen.id, 4);
	seen.worker = 77;
	f.leader = leader_close(f.leader);
	say(0, SUBJECT_SLICES_COST, &cost, sizeof(cost));
	pass(SECOND);
	open_leader();
	pass(5 * SECOND);
	assert_int_equal(seen.worker, 77); /* nothing came */
	assert_int_equal(leader_stats(f.leader).late, 1);
}

static void a_result_without_room_is_told_as_missed(void **state)
{
	static char much[200001];

	(void)state;
	begin_window(3);
	memset(much, 'x', sizeof(much) - 1);
	f.lose_of_100 = 100;
	for (int i = 0; i < 12; i++)
		answer(f.order.id, much);
	f.lose_of_100 = 0;
	pass(90 * SECOND);
	assert_true(f.missed > 0);
	assert_true(f.answers - f.missed > 0 && f.answers >= 12);
	commit(f.epoch, 3);
	assert_int_equal(kept_on_disk(), 0);
}

static void everything_comes_once_though_messages_and_leaders_are_lost(void **state)
{
	(void)state;
	f.lose_of_100 = 30;
	for (uint64_t id = 1; id <= 6; id++) {
		uint64_t first = f.order.id;

		while (f.order.id == first)
			begin_window(id);
		answer(f.order.id, "one");
		pass((int64_t)(test_random(&f.random) % 20) * SECOND);
		f.leader = leader_close(f.leader);
		open_leader();
		pass(60 * SECOND);
	}
	f.lose_of_100 = 0;
	pass(700 * SECOND);
	/* Each leader has each result of the others once. */
	assert_int_equal(kept_on_disk(), 6);
	for (uint64_t epoch = 1001; epoch <= f.epoch; epoch++) {
		for (uint64_t id = 1; id <= 6; id++)
			commit(epoch, id);
	}
	assert_int_equal(kept_on_disk(), 0);
	assert_in_range(f.results + f.answers, 6, 6 * 7);
}

static void without_a_folder_results_are_in_memory(void **state)
{
	(void)state;
	f.follower = follower_close(f.follower);
	write_file(f.out[0], "file", "");
	(void)snprintf(f.spool, sizeof(f.spool), "%s/file/spool", f.out[0]);
	open_follower();
	begin_window(3);
	answer(f.order.id, "in memory");
	pass(5 * SECOND);
	assert_int_equal(f.answers, 1);
	assert_bytes(f.answer.text, "in memory");
	assert_true(follower_is_done(f.follower));
}

int main(void)
{
#define OVER_HOSTS(test) cmocka_unit_test_setup_teardown(test, open_all, close_all)
	const struct CMUnitTest tests[] = {
		OVER_HOSTS(a_result_is_kept_until_its_window_is_committed),
		OVER_HOSTS(a_lost_acknowledgement_is_said_again),
		OVER_HOSTS(another_leader_gets_what_was_not_committed_and_learns_what_it_was_for),
		OVER_HOSTS(an_answer_to_an_earlier_leaders_order_is_sent_to_the_next),
		OVER_HOSTS(a_daemon_that_starts_again_sends_what_the_other_kept),
		OVER_HOSTS(costs_for_an_earlier_leader_name_no_measurement_of_the_next),
		OVER_HOSTS(a_result_without_room_is_told_as_missed),
		OVER_HOSTS(everything_comes_once_though_messages_and_leaders_are_lost),
		OVER_HOSTS(without_a_folder_results_are_in_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
