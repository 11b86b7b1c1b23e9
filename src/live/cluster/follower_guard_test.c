/* SPDX-License-Identifier: Apache-2.0 */
/* A leader whose messages a recorder hands to a follower: late, again, changed, or from another leader. */
#include "base/clock.h"
#include "base/test_random.h"
#include "host/process/test_tree.h"
#include "live/cluster/cluster.h"
#include "live/cluster/convert.h"
#include "live/hub/test_states.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RECORDED 4096u

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

/* Orders of each kind that are to be refused; `make chaos` has 100,000 of all four. */
static unsigned tries(void)
{
	const char *points = getenv("PERFTRACKER_CHAOS_POINTS");

	return points != NULL && strtoul(points, NULL, 10) >= 200 ? 25000 : 4000;
}

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

/* The order 9 as the recorder has it, which the follower has not got. Returns its index. */
static size_t record_order(void)
{
	const struct wire_order wire = {
		.id = 9, .start_step = 700, .window_ns = NSEC_PER_SEC, .steps = 20, .stride = 1
	};

	f.leader = leader_close(f.leader); /* its orders come from the recorder alone */
	open_leader(f.seal);
	leader_tick(f.leader, f.now_ns);
	assert_int_equal(bus_pub(f.leader_local, SUBJECT_ORDER, &wire, sizeof(wire)), 0);
	run();
	leader_tick(f.leader, f.now_ns);
	run();
	return f.cnt - 1;
}

/* The recorded order, said again at sent_wall_ns and signed for a subject. Returns its length. */
static size_t say_again(size_t recorded, int64_t sent_wall_ns, const struct seal *seal,
			const char *subject, uint8_t bytes[static 1024])
{
	static uint64_t again = 0;
	Cluster__Down *down = cluster__down__unpack(NULL, f.recorded[recorded].len - SEAL_BYTES,
						    f.recorded[recorded].bytes);
	size_t len;

	assert_non_null(down);
	down->sequence += ++again;
	down->sent_wall_ns = sent_wall_ns;
	assert_true(cluster__down__get_packed_size(down) + SEAL_BYTES <= 1024);
	len = cluster__down__pack(down, bytes);
	assert_int_equal(seal_add(seal, subject, bytes, len), 0);
	cluster__down__free_unpacked(down, NULL);
	return len + SEAL_BYTES;
}

/* The same order, as it must be, is carried out: the guard alone kept the others away. */
static void assert_taken_as_it_must_be(size_t recorded)
{
	const char *subject = f.recorded[recorded].subject;
	uint8_t bytes[1024];
	size_t len = say_again(recorded, clock_wall_ns(), f.seal, subject, bytes);

	assert_int_equal(f.orders, 0);
	hand_over(subject, bytes, len);
	assert_int_equal(f.orders, 1);
}

static void of_many_orders_that_were_changed_none_is_carried_out(void **state)
{
	size_t with_order = record_order();
	uint64_t random = 3;

	(void)state;
	for (unsigned i = 0; i < tries(); i++) {
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
	hand_over("pt.v1.job.to.n1", f.recorded[with_order].bytes, f.recorded[with_order].len);
	assert_taken_as_it_must_be(with_order); /* that one was for all hosts */
}

/* Signed by the hub, never seen before, and more than an hour old, or of the future. */
static void of_many_orders_that_have_expired_none_is_carried_out(void **state)
{
	static const int64_t last_ns = 10 * 365 * 24 * 3600 * (int64_t)NSEC_PER_SEC;
	size_t with_order = record_order();
	const char *subject = f.recorded[with_order].subject;
	uint64_t random = 5, forged = follower_stats(f.follower).forged;

	(void)state;
	for (unsigned i = 0; i < tries(); i++) {
		int64_t off_ns = 3610 * (int64_t)NSEC_PER_SEC +
				 (int64_t)(test_random(&random) % (uint64_t)last_ns);
		uint8_t bytes[1024];
		size_t len = say_again(with_order, clock_wall_ns() + (i % 2 ? off_ns : -off_ns),
				       f.seal, subject, bytes);

		hand_over(subject, bytes, len);
	}
	assert_int_equal(follower_stats(f.follower).forged, forged + tries());
	assert_taken_as_it_must_be(with_order);
}

/* Signed by the key of another job, and by this one's for another job or host. */
static void of_many_orders_of_others_none_is_carried_out(void **state)
{
	static const char *const elsewhere[] = { "pt.v1.other.down", "pt.v1.job.to.n1",
						 "pt.v1.job.to.n2", "pt.v1.job.down.x" };
	struct seal *other = of_secret("another secret");
	size_t with_order = record_order();
	const char *subject = f.recorded[with_order].subject;
	uint64_t forged = follower_stats(f.follower).forged;

	(void)state;
	for (unsigned i = 0; i < tries(); i++) {
		bool foreign_key = i % 2 == 0;
		uint8_t bytes[1024];
		size_t len = say_again(
			with_order, clock_wall_ns(), foreign_key ? other : f.seal,
			foreign_key ? subject : elsewhere[i / 2 % ARRAY_SIZE(elsewhere)], bytes);

		hand_over(subject, bytes, len);
	}
	assert_int_equal(follower_stats(f.follower).forged, forged + tries());
	assert_taken_as_it_must_be(with_order);
	(void)seal_close(other);
}

static void of_many_orders_that_were_recorded_none_is_carried_out_again(void **state)
{
	uint64_t forged;

	(void)state;
	order(1, NSEC_PER_SEC);
	order(2, NSEC_PER_SEC);
	assert_int_equal(f.orders, 2);
	forged = follower_stats(f.follower).forged;
	for (unsigned i = 0; i < tries(); i++)
		hand_over(f.recorded[i % f.cnt].subject, f.recorded[i % f.cnt].bytes,
			  f.recorded[i % f.cnt].len);
	assert_int_equal(f.orders, 2);
	assert_int_equal(follower_stats(f.follower).forged, forged + tries());
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
		TEST(of_many_orders_that_have_expired_none_is_carried_out),
		TEST(of_many_orders_of_others_none_is_carried_out),
		TEST(of_many_orders_that_were_recorded_none_is_carried_out_again),
		TEST(windows_beyond_the_limits_of_the_host_are_missed_and_the_hub_learns_why),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
