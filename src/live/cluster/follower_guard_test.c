/* SPDX-License-Identifier: Apache-2.0 */
/* A leader whose messages a recorder hands to a follower: late, again, changed, or from another leader. */
#include "base/clock.h"
#include "base/test_random.h"
#include "host/process/test_tree.h"
#include "live/cluster/cluster.h"
#include "live/hub/test_states.h"

#include <stdio.h>
#include <string.h>

#define RECORDED 4096u
#define CHANGED 20000u

static struct {
	struct bus *leader_local, *leader_net, *local, *net;
	struct leader *leader;
	struct follower *follower;
	struct seal *seal;
	/* What leaders said, in this order. */
	struct {
		char subject[BUS_SUBJECT_MAX];
		uint8_t bytes[1024];
		size_t len;
	} recorded[RECORDED];
	size_t cnt;
	int64_t now_ns;
	unsigned orders;	   /* that the follower carried out */
	struct wire_answer answer; /* the latest that the leader got */
} f;

static void record(void *arg, const struct bus_message *message)
{
	(void)arg;
	assert_true(f.cnt < RECORDED && message->len <= sizeof(f.recorded[0].bytes));
	(void)snprintf(f.recorded[f.cnt].subject, BUS_SUBJECT_MAX, "%s", message->subject);
	memcpy(f.recorded[f.cnt].bytes, message->data, message->len);
	f.recorded[f.cnt++].len = message->len;
}

static void pass_up(void *arg, const struct bus_message *message)
{
	(void)arg;
	assert_int_equal(bus_pub(f.leader_net, message->subject, message->data, message->len), 0);
}

static void count_order(void *arg, const struct bus_message *message)
{
	(void)arg;
	(void)message;
	f.orders++;
}

static void keep_answer(void *arg, const struct bus_message *message)
{
	(void)arg;
	memcpy(&f.answer, message->data, sizeof(f.answer));
}

static void run(void)
{
	while (bus_run(f.leader_local, f.now_ns) + bus_run(f.leader_net, f.now_ns) +
		       bus_run(f.local, f.now_ns) + bus_run(f.net, f.now_ns) >
	       0)
		;
}

static void hand_over(const char *subject, const void *bytes, size_t len)
{
	assert_int_equal(bus_pub(f.net, subject, bytes, len), 0);
	run();
}

/* Time goes on; what the leader says meanwhile is handed over. */
static void pass(int64_t time_ns)
{
	for (int64_t end_ns = f.now_ns + time_ns; f.now_ns < end_ns;
	     f.now_ns += NSEC_PER_SEC / 10) {
		size_t from = f.cnt;

		follower_tick(f.follower, f.now_ns);
		leader_tick(f.leader, f.now_ns);
		run();
		for (size_t i = from; i < f.cnt; i++)
			hand_over(f.recorded[i].subject, f.recorded[i].bytes, f.recorded[i].len);
	}
}

static void open_leader(const struct seal *seal)
{
	struct cluster_setup setup = { .local = f.leader_local,
				       .net = f.leader_net,
				       .job = "job",
				       .id = "n0",
				       .host = "head",
				       .out_dir = "/tmp",
				       .seal = seal };

	assert_int_equal(leader_open(&setup, &f.leader), 0);
}

static void order(uint64_t id, int64_t window_ns)
{
	const struct wire_order wire = { .id = id,
					 .start_step = 700,
					 .window_ns = (uint64_t)window_ns,
					 .steps = 20,
					 .stride = 1 };

	assert_int_equal(bus_pub(f.leader_local, SUBJECT_ORDER, &wire, sizeof(wire)), 0);
	pass(NSEC_PER_SEC);
}

static struct seal *of_secret(const char *secret)
{
	struct seal *ret;
	struct err err = { "" };

	assert_int_equal(seal_of_secret(secret, &ret, &err), 0);
	return ret;
}

static int open_all(void **state)
{
	struct cluster_setup setup = { .job = "job",
				       .id = "n1",
				       .host = "gpu-1",
				       .out_dir = "/tmp",
				       .node_rank = 1,
				       .expires_ns = 3600 * NSEC_PER_SEC,
				       .window_ns = 60 * NSEC_PER_SEC,
				       .windows_per_hour = 6 };
	struct wire_state worker = test_worker(0, 650, 50 * NSEC_PER_MSEC);
	struct bus_sub *sub;

	struct bus **const buses[] = { &f.leader_local, &f.leader_net, &f.local, &f.net };

	(void)state;
	memset(&f, 0, sizeof(f));
	f.now_ns = clock_mono_ns();
	f.seal = of_secret("secret");
	for (size_t i = 0; i < ARRAY_SIZE(buses); i++)
		assert_int_equal(bus_open("inproc:", NULL, NULL, buses[i]), 0);
	assert_int_equal(bus_sub(f.leader_net, "pt.v1.job.down", record, NULL, &sub), 0);
	assert_int_equal(bus_sub(f.leader_net, "pt.v1.job.to.>", record, NULL, &sub), 0);
	assert_int_equal(bus_sub(f.leader_local, SUBJECT_ANSWER, keep_answer, NULL, &sub), 0);
	assert_int_equal(bus_sub(f.net, "pt.v1.job.up.>", pass_up, NULL, &sub), 0);
	assert_int_equal(bus_sub(f.local, SUBJECT_ORDER, count_order, NULL, &sub), 0);
	setup.local = f.local;
	setup.net = f.net;
	setup.seal = f.seal;
	open_leader(f.seal);
	assert_int_equal(follower_open(&setup, &f.follower), 0);
	assert_int_equal(bus_pub(f.local, SUBJECT_STATE, &worker, sizeof(worker)), 0);
	run();
	pass(2 * NSEC_PER_SEC);
	assert_true(follower_is_led(f.follower));
	return 0;
}

static int close_all(void **state)
{
	(void)state;
	f.leader = leader_close(f.leader);
	f.follower = follower_close(f.follower);
	f.leader_local = bus_close(f.leader_local);
	f.leader_net = bus_close(f.leader_net);
	f.local = bus_close(f.local);
	f.net = bus_close(f.net);
	f.seal = seal_close(f.seal);
	return 0;
}

static void a_signed_order_is_carried_out_once(void **state)
{
	(void)state;
	order(1, NSEC_PER_SEC);
	pass(20 * NSEC_PER_SEC); /* it is repeated */
	assert_int_equal(f.orders, 1);
	assert_int_equal(follower_stats(f.follower).forged, 0);
}

static void what_was_recorded_is_not_carried_out_again(void **state)
{
	struct cluster_stats before;

	(void)state;
	order(1, NSEC_PER_SEC);
	order(2, NSEC_PER_SEC);
	before = follower_stats(f.follower);
	for (size_t i = 0; i < f.cnt; i++)
		hand_over(f.recorded[i].subject, f.recorded[i].bytes, f.recorded[i].len);
	assert_int_equal(f.orders, 2);
	assert_int_equal(follower_stats(f.follower).forged, f.cnt);
	assert_int_equal(follower_stats(f.follower).taken, before.taken);
}

/* A message of the first leader counts for nothing once the second one leads. */
static void an_earlier_leader_is_not_obeyed(void **state)
{
	size_t of_first;

	(void)state;
	order(1, NSEC_PER_SEC);
	of_first = f.cnt;
	f.leader = leader_close(f.leader);
	open_leader(f.seal);
	pass(2 * NSEC_PER_SEC);
	for (size_t i = 0; i < of_first; i++)
		hand_over(f.recorded[i].subject, f.recorded[i].bytes, f.recorded[i].len);
	assert_int_equal(f.orders, 1);
	assert_int_equal(follower_stats(f.follower).forged, of_first);
}

static void a_leader_without_the_key_is_not_obeyed(void **state)
{
	struct seal *other = of_secret("another secret");
	const struct seal *seals[] = { NULL, other };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(seals); i++) {
		f.leader = leader_close(f.leader);
		open_leader(seals[i]);
		order(1 + i, NSEC_PER_SEC);
		pass(5 * NSEC_PER_SEC);
	}
	assert_int_equal(f.orders, 0);
	assert_true(follower_stats(f.follower).forged > 10);
	f.leader = leader_close(f.leader);
	open_leader(f.seal);
	order(1, NSEC_PER_SEC);
	assert_int_equal(f.orders, 1);
	(void)seal_close(other);
}

static void of_many_orders_that_were_changed_none_is_carried_out(void **state)
{
	uint64_t random = 3;
	size_t with_order;

	(void)state;
	f.leader = leader_close(f.leader); /* its orders come from the recorder alone */
	open_leader(f.seal);
	leader_tick(f.leader, f.now_ns);
	assert_int_equal(bus_pub(f.leader_local, SUBJECT_ORDER,
				 &(struct wire_order){ .id = 9,
						       .start_step = 700,
						       .window_ns = NSEC_PER_SEC,
						       .steps = 20,
						       .stride = 1 },
				 sizeof(struct wire_order)),
			 0);
	run();
	leader_tick(f.leader, f.now_ns);
	run();
	with_order = f.cnt - 1;
	for (unsigned i = 0; i < CHANGED; i++) {
		uint8_t bytes[sizeof(f.recorded[0].bytes)];
		size_t len = f.recorded[with_order].len;

		memcpy(bytes, f.recorded[with_order].bytes, len);
		for (uint64_t k = 0; k <= test_random(&random) % 3; k++)
			bytes[test_random(&random) % len] ^=
				(uint8_t)(1 + test_random(&random) % 255);
		if (test_random(&random) % 4 == 0)
			len = test_random(&random) % len;
		if (len == f.recorded[with_order].len &&
		    memcmp(bytes, f.recorded[with_order].bytes, len) == 0)
			continue; /* a change that undid another */
		hand_over(f.recorded[with_order].subject, bytes, len);
	}
	assert_int_equal(f.orders, 0);
	hand_over("pt.v1.job.to.n1", f.recorded[with_order].bytes, f.recorded[with_order].len);
	assert_int_equal(f.orders, 0); /* it was for all hosts */
	hand_over(f.recorded[with_order].subject, f.recorded[with_order].bytes,
		  f.recorded[with_order].len);
	assert_int_equal(f.orders, 1);
}

static void windows_beyond_the_limits_of_the_host_are_missed_and_the_hub_learns_why(void **state)
{
	(void)state;
	order(1, 61 * NSEC_PER_SEC);
	pass(NSEC_PER_SEC);
	assert_int_equal(f.orders, 0);
	assert_int_equal(f.answer.outcome, OUTCOME_MISSED);
	assert_int_equal(f.answer.order_id, 1);
	assert_string_equal(f.answer.text, "its host allows windows of 60 s at most");
	for (uint64_t id = 2; id < 12; id++)
		order(id, NSEC_PER_SEC);
	pass(NSEC_PER_SEC);
	assert_int_equal(f.orders, 6);
	assert_string_equal(f.answer.text, "its host allows 6 windows an hour");
	pass(600 * NSEC_PER_SEC); /* one more has been earned */
	order(20, NSEC_PER_SEC);
	order(21, NSEC_PER_SEC);
	assert_int_equal(f.orders, 7);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_all, close_all)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_signed_order_is_carried_out_once),
		TEST(what_was_recorded_is_not_carried_out_again),
		TEST(an_earlier_leader_is_not_obeyed),
		TEST(a_leader_without_the_key_is_not_obeyed),
		TEST(of_many_orders_that_were_changed_none_is_carried_out),
		TEST(windows_beyond_the_limits_of_the_host_are_missed_and_the_hub_learns_why),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
