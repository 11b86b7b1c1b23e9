/* SPDX-License-Identifier: Apache-2.0 */
/* A leader and two followers, each with its own bus, and a network that loses what a test wants. */
#include "live/cluster/cluster.h"

#include "base/clock.h"
#include "base/test_random.h"
#include "host/process/test_tree.h"
#include "live/cluster/subject.h"
#include "live/hub/test_states.h"
#include "live/link/wire_hang.h"
#include "live/link/wire_report.h"
#include "live/link/wire_request.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HOSTS 2
#define BASE(slot) ((uint32_t)(slot)*WIRE_OWN_WORKERS)

/* What arrived on the bus of one process. */
struct seen {
	struct wire_state state;
	struct wire_answer answer;
	struct wire_order order;
	struct wire_profile profile;
	struct wire_slices slices;
	struct wire_report report;
	struct wire_accept accept;
	struct wire_ask ask;
	struct wire_reply reply;
	struct wire_where where;
	struct wire_slices_cost cost;
	struct wire_save save;
	unsigned states, answers, orders, profiles, slices_cnt, reports, accepts, asks, replies,
		wheres, costs, saves;
};

static struct {
	const char *dir;
	char out[HOSTS + 1][256];
	struct bus *leader_bus, *buses[HOSTS], *nets[HOSTS + 1]; /* the last net: the leader's */
	struct leader *leader;
	struct follower *followers[HOSTS];
	struct seen at_leader, at[HOSTS];
	unsigned lose_of_100; /* messages */
	uint64_t random;
	int64_t now_ns;
} f;

#define TAKE(type, member, count)                                              \
	static void see_##member(void *arg, const struct bus_message *message) \
	{                                                                      \
		struct seen *seen = arg;                                       \
                                                                               \
		assert_int_equal(message->len, sizeof(struct type));           \
		memcpy(&seen->member, message->data, sizeof(seen->member));    \
		seen->count++;                                                 \
	}

TAKE(wire_state, state, states)
TAKE(wire_answer, answer, answers)
TAKE(wire_order, order, orders)
TAKE(wire_profile, profile, profiles)
TAKE(wire_slices, slices, slices_cnt)
TAKE(wire_report, report, reports)
TAKE(wire_accept, accept, accepts)
TAKE(wire_ask, ask, asks)
TAKE(wire_reply, reply, replies)
TAKE(wire_where, where, wheres)
TAKE(wire_slices_cost, cost, costs)
TAKE(wire_save, save, saves)

static void listen_on(struct bus *bus, struct seen *seen)
{
	static const struct {
		const char *subject;
		bus_handler *handler;
	} all[] = {
		{ SUBJECT_STATE, see_state },	   { SUBJECT_ANSWER, see_answer },
		{ SUBJECT_ORDER, see_order },	   { SUBJECT_PROFILE, see_profile },
		{ SUBJECT_SLICES, see_slices },	   { SUBJECT_REPORT, see_report },
		{ SUBJECT_ACCEPT, see_accept },	   { SUBJECT_ASK, see_ask },
		{ SUBJECT_REPLY, see_reply },	   { SUBJECT_WHERE, see_where },
		{ SUBJECT_SLICES_COST, see_cost }, { SUBJECT_SAVE, see_save },
	};
	struct bus_sub *sub;

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		assert_int_equal(bus_sub(bus, all[i].subject, all[i].handler, seen, &sub), 0);
}

/* The network: what a host says goes to the leader's part, and back. */
static void relay(struct bus *to, const struct bus_message *message)
{
	if (test_random(&f.random) % 100 >= f.lose_of_100)
		assert_int_equal(bus_pub(to, message->subject, message->data, message->len), 0);
}

static void relay_up(void *arg, const struct bus_message *message)
{
	(void)arg;
	relay(f.nets[HOSTS], message);
}

static void relay_down(void *arg, const struct bus_message *message)
{
	(void)arg;
	for (size_t i = 0; i < HOSTS; i++)
		relay(f.nets[i], message);
}

static void connect_nets(void)
{
	struct bus_sub *sub;

	for (size_t i = 0; i <= HOSTS; i++)
		assert_int_equal(bus_open("inproc:", NULL, NULL, &f.nets[i]), 0);
	for (size_t i = 0; i < HOSTS; i++)
		assert_int_equal(bus_sub(f.nets[i], "pt.v1.job.up.>", relay_up, NULL, &sub), 0);
	assert_int_equal(bus_sub(f.nets[HOSTS], "pt.v1.job.down", relay_down, NULL, &sub), 0);
	assert_int_equal(bus_sub(f.nets[HOSTS], "pt.v1.job.to.>", relay_down, NULL, &sub), 0);
}

static void open_leader(void)
{
	const struct cluster_setup setup = { .local = f.leader_bus,
					     .net = f.nets[HOSTS],
					     .job = "job",
					     .id = "n0",
					     .host = "head",
					     .out_dir = f.out[HOSTS] };

	assert_int_equal(leader_open(&setup, &f.leader), 0);
}

static void open_follower(size_t i)
{
	static const char *const ids[] = { "n1", "n2" }, *const hosts[] = { "gpu-1", "gpu-2" };
	const struct cluster_setup setup = { .local = f.buses[i],
					     .net = f.nets[i],
					     .job = "job",
					     .id = ids[i],
					     .host = hosts[i],
					     .out_dir = f.out[i],
					     .node_rank = (uint32_t)i + 1 };

	assert_int_equal(follower_open(&setup, &f.followers[i]), 0);
}

static int open_all(void **state)
{
	memset(&f, 0, sizeof(f));
	if (make_root(state) < 0)
		return -1;
	f.dir = *state;
	f.random = 7;
	f.now_ns = clock_mono_ns();
	for (size_t i = 0; i <= HOSTS; i++) {
		char path[300];

		(void)snprintf(f.out[i], sizeof(f.out[i]), "%s/%zu", f.dir, i);
		(void)snprintf(path, sizeof(path), "%s/fingerprints", f.out[i]);
		assert_int_equal(mkdir(f.out[i], 0700), 0);
		assert_int_equal(mkdir(path, 0700), 0);
	}
	connect_nets();
	assert_int_equal(bus_open("inproc:", NULL, NULL, &f.leader_bus), 0);
	listen_on(f.leader_bus, &f.at_leader);
	open_leader();
	for (size_t i = 0; i < HOSTS; i++) {
		assert_int_equal(bus_open("inproc:", NULL, NULL, &f.buses[i]), 0);
		listen_on(f.buses[i], &f.at[i]);
		open_follower(i);
	}
	return 0;
}

static int close_all(void **state)
{
	f.leader = leader_close(f.leader);
	for (size_t i = 0; i < HOSTS; i++) {
		f.followers[i] = follower_close(f.followers[i]);
		f.buses[i] = bus_close(f.buses[i]);
	}
	f.leader_bus = bus_close(f.leader_bus);
	for (size_t i = 0; i <= HOSTS; i++)
		f.nets[i] = bus_close(f.nets[i]);
	return remove_root(state);
}

static size_t run_buses(void)
{
	size_t cnt = 0;

	for (size_t i = 0; i < HOSTS; i++)
		cnt += bus_run(f.buses[i], f.now_ns) + bus_run(f.nets[i], f.now_ns);
	return cnt + bus_run(f.leader_bus, f.now_ns) + bus_run(f.nets[HOSTS], f.now_ns);
}

/* So long in ticks of 100 ms; time does not really pass. */
static void pass(int64_t time_ns)
{
	for (int64_t end_ns = f.now_ns + time_ns; f.now_ns < end_ns;
	     f.now_ns += NSEC_PER_SEC / 10) {
		for (size_t i = 0; i < HOSTS; i++)
			follower_tick(f.followers[i], f.now_ns);
		if (f.leader != NULL)
			leader_tick(f.leader, f.now_ns);
		while (run_buses() > 0)
			;
	}
}

static void say(struct bus *bus, const char *subject, const void *data, size_t len)
{
	assert_int_equal(bus_pub(bus, subject, data, len), 0);
	while (run_buses() > 0)
		;
}

static void join(void)
{
	pass(2 * NSEC_PER_SEC);
	for (size_t i = 0; i < HOSTS; i++)
		assert_true(follower_is_led(f.followers[i]));
}

static void order_profile(uint64_t id)
{
	const struct wire_order order = {
		.id = id, .start_step = 700, .window_ns = NSEC_PER_SEC, .steps = 20, .stride = 2
	};

	say(f.leader_bus, SUBJECT_ORDER, &order, sizeof(order));
	pass(NSEC_PER_SEC);
}

/* hostd of a follower has a fingerprint of this size for its rank 1. */
static void make_file(const char *path, size_t size)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	for (size_t i = 0; i < size; i++)
		(void)fputc((int)(i * 31 % 251), file);
	assert_int_equal(fclose(file), 0);
}

static void answer_with_file(size_t host, uint64_t order_id, size_t size)
{
	struct wire_answer answer = {
		.worker = 5, .outcome = OUTCOME_SUMMARIZED, .order_id = order_id, .step = 700
	};

	(void)snprintf(answer.text, sizeof(answer.text), "%s/rank1.ptfp", f.out[host]);
	make_file(answer.text, size);
	say(f.buses[host], SUBJECT_ANSWER, &answer, sizeof(answer));
}

static void assert_file(const char *path, size_t size)
{
	struct stat st;
	FILE *file = fopen(path, "r");

	assert_non_null(file);
	assert_int_equal(fstat(fileno(file), &st), 0);
	assert_int_equal(st.st_size, size);
	for (size_t i = 0; i < size; i++)
		assert_int_equal(fgetc(file), i * 31 % 251);
	(void)fclose(file);
}

static void say_state(size_t host, int rank, uint32_t worker)
{
	struct wire_state state = test_worker(rank, 500, 50 * NSEC_PER_MSEC);

	state.worker = worker;
	state.last_ns = clock_mono_ns() - NSEC_PER_SEC;
	(void)snprintf(state.host, sizeof(state.host), "local-name");
	(void)snprintf(state.sequence, sizeof(state.sequence), "forward, step");
	say(f.buses[host], SUBJECT_STATE, &state, sizeof(state));
}

/* --- tests --- */

static void a_worker_of_another_host_appears_with_its_host_and_an_id_of_its_own(void **state)
{
	(void)state;
	join();
	say_state(1, 3, 9);
	pass(2 * NSEC_PER_SEC);
	assert_int_equal(f.at_leader.state.worker & (BASE(1) - 1), 9);
	assert_in_range(f.at_leader.state.worker / WIRE_OWN_WORKERS, 1, HOSTS);
	assert_int_equal(f.at_leader.state.rank, 3);
	assert_int_equal(f.at_leader.state.step, 500);
	assert_string_equal(f.at_leader.state.host, "gpu-2");
	assert_string_equal(f.at_leader.state.sequence, "forward, step");
	/* The clocks are one here, so a second ago is a second ago. */
	assert_in_range(clock_mono_ns() - f.at_leader.state.last_ns, NSEC_PER_SEC,
			3 * NSEC_PER_SEC);
	assert_int_equal(leader_hosts(f.leader), HOSTS);
	assert_int_equal(leader_running(f.leader), HOSTS);
}

static void an_order_comes_once_with_a_number_of_its_own_and_its_answer_comes_back(void **state)
{
	(void)state;
	join();
	say_state(0, 1, 5);
	order_profile(3);
	pass(5 * NSEC_PER_SEC);
	for (size_t i = 0; i < HOSTS; i++) {
		assert_int_equal(f.at[i].orders, 1);
		assert_int_equal(f.at[i].order.start_step, 700);
		assert_int_equal(f.at[i].order.steps, 20);
		assert_int_equal(f.at[i].order.stride, 2);
	}
	answer_with_file(0, f.at[0].order.id, 1500000);
	pass(3 * NSEC_PER_SEC);
	assert_int_equal(f.at_leader.answers, 1);
	assert_int_equal(f.at_leader.answer.outcome, OUTCOME_SUMMARIZED);
	assert_int_equal(f.at_leader.answer.order_id, 3);
	assert_non_null(strstr(f.at_leader.answer.text, "/fingerprints/3/rank1.ptfp"));
	assert_file(f.at_leader.answer.text, 1500000);
	assert_true(follower_is_done(f.followers[0]));
}

static void an_answer_to_this_hosts_own_hub_stays_here(void **state)
{
	(void)state;
	join();
	answer_with_file(0, 3, 100);
	pass(3 * NSEC_PER_SEC);
	assert_int_equal(f.at_leader.answers, 0);
}

static void a_fingerprint_that_cannot_be_read_is_told_as_missed(void **state)
{
	struct wire_answer answer = { .worker = 5, .outcome = OUTCOME_SUMMARIZED };

	(void)state;
	join();
	say_state(0, 1, 5);
	order_profile(3);
	answer.order_id = f.at[0].order.id;
	(void)snprintf(answer.text, sizeof(answer.text), "%s/none", f.dir);
	say(f.buses[0], SUBJECT_ANSWER, &answer, sizeof(answer));
	pass(2 * NSEC_PER_SEC);
	assert_int_equal(f.at_leader.answer.outcome, OUTCOME_MISSED);
	assert_non_null(strstr(f.at_leader.answer.text, "No such file"));
}

static void everything_arrives_once_though_messages_are_lost(void **state)
{
	unsigned expected = 0;

	(void)state;
	join();
	say_state(0, 1, 5);
	f.lose_of_100 = 40;
	for (uint64_t id = 1; id <= 12; id++) {
		order_profile(id);
		pass(20 * NSEC_PER_SEC);
		answer_with_file(0, f.at[0].order.id, 700000);
		expected++;
	}
	pass(120 * NSEC_PER_SEC);
	assert_int_equal(f.at[0].orders, 12);
	assert_int_equal(f.at_leader.answers, expected);
	assert_int_equal(f.at_leader.answer.order_id, 12);
	assert_int_equal(f.at_leader.answer.outcome, OUTCOME_SUMMARIZED);
	assert_true(follower_stats(f.followers[0]).resent > 0);
	assert_int_equal(follower_stats(f.followers[0]).dropped, 0);
}

static void a_hub_that_starts_again_goes_on_where_the_other_stopped(void **state)
{
	uint64_t first;

	(void)state;
	join();
	say_state(0, 1, 5);
	order_profile(3);
	first = f.at[0].order.id;
	f.leader = leader_close(f.leader);
	answer_with_file(0, first, 1000); /* into the void */
	open_leader();
	pass(15 * NSEC_PER_SEC);
	assert_int_equal(f.at_leader.answers, 0); /* a result: leader_results_test.c */
	assert_int_equal(f.at_leader.state.rank, 1);
	order_profile(3);
	assert_int_equal(f.at[0].orders, 2);
	assert_int_not_equal(f.at[0].order.id, first);
}

static void a_host_without_its_hub_is_watched_alone_until_the_hub_is_back(void **state)
{
	(void)state;
	join();
	f.lose_of_100 = 100;
	pass(CLUSTER_LOST_NS + 2 * NSEC_PER_SEC);
	assert_false(follower_is_led(f.followers[0]));
	assert_int_equal(leader_running(f.leader), 0);
	f.lose_of_100 = 0;
	pass(2 * NSEC_PER_SEC);
	assert_true(follower_is_led(f.followers[0]));
}

static void the_workers_of_a_silent_host_are_unknown_not_gone(void **state)
{
	(void)state;
	join();
	say_state(0, 1, 5);
	pass(NSEC_PER_SEC);
	assert_int_equal(f.at_leader.state.phase, PHASE_STEADY);
	f.lose_of_100 = 100;
	pass(CLUSTER_QUIET_NS + 2 * NSEC_PER_SEC);
	assert_int_equal(f.at_leader.state.phase, PHASE_SILENT);
	assert_int_equal(f.at_leader.state.rank, 1);
}

static void what_the_hub_wants_reaches_all_hosts_once(void **state)
{
	struct wire_slices slices = { .id = 4, .start_step = 90, .slice_steps = 5, .slice_cnt = 8 };
	const struct wire_profile profile = { .epoch = 1,
					      .sequence = 1,
					      .progress = PROFILE_BEGUN };
	const struct wire_accept accept = { .step = 77 };
	const struct wire_report report = { .number = 2,
					    .reason = "rank 2 is late",
					    .finding_cnt = 1,
					    .findings[0] = { .cause = "host-stall",
							     .gain_ns = 5,
							     .rank_cnt = 1,
							     .ranks = { 2 } } };

	(void)state;
	join();
	say(f.leader_bus, SUBJECT_SLICES, &slices, sizeof(slices));
	say(f.leader_bus, SUBJECT_PROFILE, &profile, sizeof(profile));
	say(f.leader_bus, SUBJECT_ACCEPT, &accept, sizeof(accept));
	say(f.leader_bus, SUBJECT_REPORT, &report, sizeof(report));
	pass(3 * NSEC_PER_SEC);
	slices.slice_cnt = 0;
	say(f.leader_bus, SUBJECT_SLICES, &slices, sizeof(slices));
	pass(3 * NSEC_PER_SEC);
	for (size_t i = 0; i < HOSTS; i++) {
		assert_int_equal(f.at[i].slices_cnt, 2); /* its begin and its end */
		assert_int_equal(f.at[i].slices.slice_cnt, 0);
		assert_int_equal(f.at[i].profile.progress, PROFILE_BEGUN);
		assert_int_equal(f.at[i].accepts, 1);
		assert_int_equal(f.at[i].accept.step, 77);
		assert_int_equal(f.at[i].reports, 1);
		assert_string_equal(f.at[i].report.reason, "rank 2 is late");
		assert_string_equal(f.at[i].report.findings[0].cause, "host-stall");
		assert_int_equal(f.at[i].report.findings[0].ranks[0], 2);
	}
}

static void a_client_of_any_host_gets_the_hubs_reply(void **state)
{
	const struct wire_ask ask = { .client = 6, .window_ns = 5, .kind = ASK_PROFILE, .pid = 7 };
	struct wire_reply reply = { .status = 0, .text = "report-3.html" };

	(void)state;
	join();
	say(f.buses[1], SUBJECT_ASK, &ask, sizeof(ask));
	pass(NSEC_PER_SEC);
	assert_int_equal(f.at_leader.asks, 1);
	assert_int_equal(f.at_leader.ask.window_ns, 5);
	reply.client = f.at_leader.ask.client;
	say(f.leader_bus, SUBJECT_REPLY, &reply, sizeof(reply));
	pass(NSEC_PER_SEC);
	assert_int_equal(f.at[0].replies, 0);
	assert_int_equal(f.at[1].replies, 1);
	assert_int_equal(f.at[1].reply.client, 6);
	assert_string_equal(f.at[1].reply.text, "report-3.html");
}

static void save_recorders(size_t host, size_t size)
{
	char path[300];

	assert_int_equal(f.at[host].saves, 1);
	(void)snprintf(path, sizeof(path), "%s/flight", f.out[host]);
	assert_int_equal(mkdir(path, 0700), 0);
	(void)snprintf(path, sizeof(path), "%s/flight/rank%zu.flight", f.out[host], host);
	make_file(path, size);
	say(f.buses[host], SUBJECT_SAVED, &f.at[host].save, sizeof(f.at[host].save));
}

static void recorders_of_all_hosts_come_and_one_that_is_missing_is_told(void **state)
{
	const struct wire_collect collect = { .client = 6 };
	char path[600];

	(void)state;
	join();
	f.lose_of_100 = 30;
	say(f.leader_bus, SUBJECT_COLLECT, &collect, sizeof(collect));
	pass(5 * NSEC_PER_SEC);
	save_recorders(0, 1200000);
	pass(10 * NSEC_PER_SEC);
	assert_int_equal(f.at_leader.replies, 0); /* the other one has not answered */
	pass(10 * NSEC_PER_SEC);
	assert_int_equal(f.at_leader.replies, 1);
	assert_int_equal(f.at_leader.reply.status, ETIMEDOUT);
	(void)snprintf(path, sizeof(path), "%s/rank0.flight", f.at_leader.reply.text);
	assert_file(path, 1200000);
}

static void a_blocked_stack_and_costs_come_whole(void **state)
{
	struct wire_where where = { .worker = 5, .entered_cnt = 1, .step = 9, .stack = "a\nb" };
	struct wire_slices_cost cost = { .worker = 5, .pair_cnt = 2, .switching_ns = 3 };

	(void)state;
	join();
	where.entered[0] = (struct wire_entered){ .group = "dp", .name = "all_reduce" };
	where.entered[0].time_ns = clock_mono_ns();
	where.read = where.shown = where.in_collective = 1;
	where.says[0] = where.child[0] = 's';
	say(f.buses[0], SUBJECT_WHERE, &where, sizeof(where));
	cost.pairs[1] = 0.25;
	cost.id = 1000000 + 4;
	say(f.buses[0], SUBJECT_SLICES_COST, &cost, sizeof(cost));
	pass(NSEC_PER_SEC);
	assert_int_equal(f.at_leader.wheres, 1);
	assert_memory_equal(&f.at_leader.where.read, &where.read,
			    sizeof(where) - offsetof(struct wire_where, read));
	assert_string_equal(f.at_leader.where.stack, "a\nb");
	assert_string_equal(f.at_leader.where.entered[0].name, "all_reduce");
	assert_in_range(clock_mono_ns() - f.at_leader.where.entered[0].time_ns, 0, NSEC_PER_SEC);
	assert_int_equal(f.at_leader.costs, 1);
	assert_int_equal(f.at_leader.cost.id, 4);
	assert_true(f.at_leader.cost.pairs[1] == 0.25);
}

static void a_host_that_ends_and_a_hub_that_ends_are_known(void **state)
{
	const struct job_end end = { .exit_status = 1 };

	(void)state;
	join();
	follower_end(f.followers[0], &end);
	assert_false(follower_is_done(f.followers[0]));
	pass(NSEC_PER_SEC);
	assert_true(follower_is_done(f.followers[0]));
	assert_int_equal(leader_running(f.leader), 1);
	f.lose_of_100 = 100;
	follower_end(f.followers[1], &end);
	pass(NSEC_PER_SEC);
	assert_false(follower_is_done(f.followers[1]));
	f.lose_of_100 = 0;
	leader_end(f.leader);
	while (run_buses() > 0)
		;
	assert_true(follower_is_done(f.followers[1]));
}

static void reopen_follower(size_t i)
{
	f.followers[i] = follower_close(f.followers[i]);
	open_follower(i);
}

static void the_workers_of_a_daemon_that_was_started_again_are_new_ones(void **state)
{
	uint32_t first;

	(void)state;
	join();
	say_state(0, 1, 5);
	pass(2 * NSEC_PER_SEC);
	first = f.at_leader.state.worker;
	reopen_follower(0);
	pass(5 * NSEC_PER_SEC);
	assert_int_equal(f.at_leader.state.worker, first);
	assert_int_equal(f.at_leader.state.phase, PHASE_GONE);
	say_state(0, 1, 5);
	pass(2 * NSEC_PER_SEC);
	assert_int_not_equal(f.at_leader.state.worker, first);
	assert_int_equal(f.at_leader.state.phase, PHASE_STEADY);
	assert_int_equal(leader_hosts(f.leader), HOSTS);
}

/* By mistake two hosts were given one rank: the first keeps it. */
static void a_second_member_with_one_rank_is_not_taken_for_the_first(void **state)
{
	struct bus *bus;
	struct follower *second;
	struct cluster_setup setup = { .net = f.nets[1],
				       .job = "job",
				       .id = "n1",
				       .host = "gpu-9",
				       .out_dir = f.out[1],
				       .node_rank = 1 };
	uint64_t dropped;
	uint32_t first;

	(void)state;
	join();
	say_state(0, 1, 5);
	pass(2 * NSEC_PER_SEC);
	first = f.at_leader.state.worker;
	dropped = leader_stats(f.leader).dropped;
	assert_int_equal(bus_open("inproc:", NULL, NULL, &bus), 0);
	setup.local = bus;
	assert_int_equal(follower_open(&setup, &second), 0);
	for (int i = 0; i < 30; i++) {
		follower_tick(second, f.now_ns);
		(void)bus_run(bus, f.now_ns);
		pass(NSEC_PER_SEC / 5);
	}
	say_state(0, 1, 5);
	pass(2 * NSEC_PER_SEC);
	assert_int_equal(f.at_leader.state.worker, first);
	assert_string_equal(f.at_leader.state.host, "gpu-1");
	assert_true(leader_stats(f.leader).dropped > dropped);
	assert_false(follower_is_led(second)); /* it watches its host itself */
	(void)follower_close(second);
	(void)bus_close(bus);
}

static void what_is_no_message_is_refused_and_counted(void **state)
{
	unsigned char bytes[200];
	struct cluster_stats stats;

	(void)state;
	join();
	for (int i = 0; i < 3000; i++) {
		size_t len = test_random(&f.random) % sizeof(bytes);

		for (size_t k = 0; k < len; k++)
			bytes[k] = (unsigned char)test_random(&f.random);
		assert_int_equal(bus_pub(f.nets[HOSTS], "pt.v1.job.up.n1", bytes, len), 0);
		assert_int_equal(bus_pub(f.nets[0], "pt.v1.job.down", bytes, len), 0);
		(void)run_buses();
	}
	stats = leader_stats(f.leader);
	assert_true(stats.refused >= 2990);
	assert_true(follower_stats(f.followers[0]).refused >= 2990);
	assert_int_equal(f.at_leader.states, 0);
	pass(2 * NSEC_PER_SEC);
	say_state(0, 1, 5);
	pass(2 * NSEC_PER_SEC);
	assert_int_equal(f.at_leader.state.rank, 1);
}

static void subjects_of_any_names_are_valid_and_differ(void **state)
{
	static const char *const names[] = { "",
					     "a.b",
					     "a_b",
					     "a b",
					     ">",
					     "a very long name of a job, longer than others",
					     "a very long name of a job, longer than that" };
	char subjects[ARRAY_SIZE(names)][BUS_SUBJECT_MAX];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		subject_write(subjects[i], names[i], "up", names[i]);
		assert_int_equal(bus_pub(f.leader_bus, subjects[i], "x", 1), 0);
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(subjects[i], subjects[k]);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_all, close_all)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_worker_of_another_host_appears_with_its_host_and_an_id_of_its_own),
		TEST(an_order_comes_once_with_a_number_of_its_own_and_its_answer_comes_back),
		TEST(an_answer_to_this_hosts_own_hub_stays_here),
		TEST(a_fingerprint_that_cannot_be_read_is_told_as_missed),
		TEST(everything_arrives_once_though_messages_are_lost),
		TEST(a_hub_that_starts_again_goes_on_where_the_other_stopped),
		TEST(a_host_without_its_hub_is_watched_alone_until_the_hub_is_back),
		TEST(the_workers_of_a_silent_host_are_unknown_not_gone),
		TEST(what_the_hub_wants_reaches_all_hosts_once),
		TEST(a_client_of_any_host_gets_the_hubs_reply),
		TEST(recorders_of_all_hosts_come_and_one_that_is_missing_is_told),
		TEST(a_blocked_stack_and_costs_come_whole),
		TEST(a_host_that_ends_and_a_hub_that_ends_are_known),
		TEST(the_workers_of_a_daemon_that_was_started_again_are_new_ones),
		TEST(a_second_member_with_one_rank_is_not_taken_for_the_first),
		TEST(what_is_no_message_is_refused_and_counted),
		TEST(subjects_of_any_names_are_valid_and_differ),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
