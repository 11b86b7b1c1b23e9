/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A leader with its hub, to which hosts send what is damaged: it goes on, counts each message, and
 * hears the hosts that are well. `make chaos` sends a million of them.
 */
#include "base/clock.h"
#include "base/test_random.h"
#include "host/process/test_tree.h"
#include "live/cluster/cluster.h"
#include "live/cluster/convert.h"
#include "live/hub/hub.h"
#include "live/hub/test_states.h"
#include "live/run/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KINDS 4u
#define MESSAGE_MAX 2048u

static struct {
	const char *dir;
	struct run_options options;
	struct bus *local, *net;
	struct hub *hub;
	struct leader *leader;
	int64_t now_ns;
	struct wire_state state; /* the latest that the leader passed on */
	/* What a host that is well says. */
	uint8_t good[KINDS][MESSAGE_MAX];
	size_t len[KINDS];
} f;

static uint64_t tries(void)
{
	const char *points = getenv("PERFTRACKER_CHAOS_POINTS");

	return points != NULL && strtoul(points, NULL, 10) >= 200 ? 1000000 : 20000;
}

static void keep_state(void *arg, const struct bus_message *message)
{
	(void)arg;
	memcpy(&f.state, message->data, sizeof(f.state));
}

static void run(void)
{
	while (bus_run(f.net, f.now_ns) + bus_run(f.local, f.now_ns) > 0)
		;
}

/* The item of each kind of message; kind 0 has none. */
static void fill_item(unsigned kind, Cluster__Item *item, Cluster__Answer *answer,
		      Cluster__Ask *ask)
{
	cluster__item__init(item);
	cluster__answer__init(answer);
	cluster__ask__init(ask);
	item->number = 1;
	answer->worker = 1;
	answer->outcome = OUTCOME_MISSED;
	answer->text = (char *)(uintptr_t) "late";
	ask->kind = ASK_PROFILE;
	if (kind == 1)
		item->answer = answer;
	else if (kind == 2)
		item->ask = ask;
}

/* A message of kind 3 says which ranks have states and an item of a later version. */
static size_t make(unsigned kind, int rank, const char *host, uint64_t boot,
		   uint8_t bytes[static MESSAGE_MAX])
{
	struct wire_state wire = test_worker(rank, 100, 50 * NSEC_PER_MSEC);
	Cluster__State state, *states[] = { &state };
	Cluster__Item item, *items[] = { &item };
	Cluster__Answer answer;
	Cluster__Ask ask;
	Cluster__Up up;

	wire.last_ns = f.now_ns;
	convert_state_out(&wire, &state);
	fill_item(kind, &item, &answer, &ask);
	cluster__up__init(&up);
	up.version = CLUSTER_VERSION;
	up.host = (char *)(uintptr_t)host;
	up.program = (char *)(uintptr_t)PT_VERSION;
	up.boot = boot;
	up.node_rank = 1;
	up.sent_ns = f.now_ns;
	up.oldest = 1;
	up.states = states;
	up.n_states = 1;
	up.items = items;
	up.n_items = kind != 0;
	assert_true(cluster__up__get_packed_size(&up) <= MESSAGE_MAX);
	return cluster__up__pack(&up, bytes);
}

static int open_all(void **state)
{
	struct cluster_setup setup = { .job = "job", .id = "n0", .host = "head", .members = 3 };

	if (make_root(state) < 0)
		return -1;
	memset(&f, 0, sizeof(f));
	f.dir = *state;
	f.now_ns = clock_mono_ns();
	f.options = run_options_preset();
	f.options.out_dir = f.dir;
	f.options.no_audit = true;
	assert_int_equal(bus_open("inproc:", NULL, NULL, &f.local), 0);
	assert_int_equal(bus_open("inproc:", NULL, NULL, &f.net), 0);
	assert_int_equal(bus_sub(f.local, SUBJECT_STATE, keep_state, NULL, NULL), 0);
	setup.local = f.local;
	setup.net = f.net;
	setup.out_dir = f.dir;
	setup.no_workers = true;
	assert_int_equal(hub_open(f.local, &f.options, &f.hub), 0);
	assert_int_equal(leader_open(&setup, &f.leader), 0);
	for (unsigned kind = 0; kind < KINDS; kind++)
		f.len[kind] = make(kind, (int)kind, "gpu-1", 7, f.good[kind]);
	return 0;
}

static int close_all(void **state)
{
	f.leader = leader_close(f.leader);
	f.hub = hub_close(f.hub);
	f.net = bus_close(f.net);
	f.local = bus_close(f.local);
	return remove_root(state);
}

/* Some bytes changed, a part cut off, doubled, or bytes that were never a message. */
static size_t mutate(uint64_t *random, uint8_t bytes[static MESSAGE_MAX])
{
	unsigned kind = (unsigned)(test_random(random) % KINDS);
	size_t len = f.len[kind];

	memcpy(bytes, f.good[kind], len);
	for (uint64_t k = test_random(random) % 8 + 1; k > 0; k--)
		bytes[test_random(random) % len] = (uint8_t)test_random(random);
	switch (test_random(random) % 8) {
	case 0:
		return test_random(random) % len;
	case 1:
		memcpy(bytes + len, bytes, MIN(len, MESSAGE_MAX - len));
		return len + MIN(len, MESSAGE_MAX - len);
	case 2:
		for (size_t i = 0; i < len; i++)
			bytes[i] = (uint8_t)test_random(random);
		return len;
	default:
		return len;
	}
}

static void of_many_damaged_messages_each_is_counted_and_the_hub_goes_on(void **state)
{
	static const char *const subjects[] = { "pt.v1.job.up.n1", "pt.v1.job.up.n2",
						"pt.v1.job.up.n3" };
	const uint64_t cnt = tries();
	struct cluster_stats stats;
	uint8_t bytes[MESSAGE_MAX];
	uint64_t random = 11;
	size_t len;

	(void)state;
	for (uint64_t i = 0; i < cnt; i++) {
		len = mutate(&random, bytes);
		assert_int_equal(bus_pub(f.net, subjects[i % ARRAY_SIZE(subjects)], bytes, len), 0);
		run();
		f.now_ns += NSEC_PER_MSEC;
		if (i % 100 != 0)
			continue;
		leader_tick(f.leader, f.now_ns);
		hub_tick(f.hub, f.now_ns);
		run();
	}
	stats = leader_stats(f.leader);
	print_message("%llu messages: taken=%llu refused=%llu dropped=%llu\n",
		      (unsigned long long)cnt, (unsigned long long)stats.taken,
		      (unsigned long long)stats.refused, (unsigned long long)stats.dropped);
	/* A message is taken or refused; of one that is taken, a part may be refused. */
	assert_true(stats.taken > 0 && stats.taken < cnt);
	assert_true(stats.refused >= cnt - stats.taken);
	assert_true(leader_hosts(f.leader) <= ARRAY_SIZE(subjects) + 1);
	len = make(0, 3, "gpu-9", 99, bytes);
	f.state = (struct wire_state){ .rank = -1 };
	assert_int_equal(bus_pub(f.net, "pt.v1.job.up.n9", bytes, len), 0);
	run();
	assert_int_equal(leader_stats(f.leader).taken, stats.taken + 1);
	assert_int_equal(f.state.rank, 3);
	assert_int_equal(f.state.step, 100);
}

static unsigned answers;

static void count_answer(void *arg, const struct bus_message *message)
{
	(void)arg;
	(void)message;
	answers++;
}

/* A host sends it again then: an answer that was acknowledged is not lost. */
static void what_finds_no_room_on_the_hubs_bus_is_not_acknowledged(void **state)
{
	uint8_t bytes[MESSAGE_MAX];
	size_t len = make(1, 7, "gpu-7", 77, bytes);

	(void)state;
	answers = 0;
	assert_int_equal(bus_sub(f.local, SUBJECT_ANSWER, count_answer, NULL, NULL), 0);
	while (bus_pub(f.local, "any.one", "x", 1) == 0)
		;
	assert_int_equal(bus_pub(f.net, "pt.v1.job.up.gpu-7", bytes, len), 0);
	(void)bus_run(f.net, f.now_ns);
	run();
	assert_int_equal(answers, 0);
	assert_int_equal(bus_pub(f.net, "pt.v1.job.up.gpu-7", bytes, len), 0);
	run();
	assert_int_equal(answers, 1);
	assert_int_equal(bus_pub(f.net, "pt.v1.job.up.gpu-7", bytes, len), 0);
	run();
	assert_int_equal(answers, 1); /* it was taken */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			of_many_damaged_messages_each_is_counted_and_the_hub_goes_on, open_all,
			close_all),
		cmocka_unit_test_setup_teardown(
			what_finds_no_room_on_the_hubs_bus_is_not_acknowledged, open_all,
			close_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
