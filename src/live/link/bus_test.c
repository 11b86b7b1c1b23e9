/* SPDX-License-Identifier: Apache-2.0 */
/* The contract of bus.h in one process (test_busconformance.h), and what only that bus has. */
#include "live/link/test_busconformance.h"

#include <errno.h>
#include <stdlib.h>

static int open_pair(void **state)
{
	struct test_buses *buses = calloc(1, sizeof(*buses));

	if (buses == NULL || bus_open("inproc:", NULL, NULL, &buses->from) < 0)
		return -1;
	buses->to = buses->from;
	*state = buses;
	return 0;
}

static int close_pair(void **state)
{
	test_buses_close(*state);
	free(*state);
	return 0;
}

static void count(void *arg, const struct bus_message *message)
{
	(void)message;
	++*(unsigned *)arg;
}

static void count_wake(void *arg)
{
	++*(unsigned *)arg;
}

static void other_schemes_are_refused(void **state)
{
	struct bus *none;

	(void)state;
	assert_int_equal(bus_open("carrier-pigeon:", NULL, NULL, &none), -EPROTONOSUPPORT);
}

/* One run takes what was published before it, and the loop is woken once for all of that. */
static void a_run_takes_all_that_was_published_before_it(void **state)
{
	unsigned calls = 0, wakes = 0;
	struct bus *bus;

	(void)state;
	assert_int_equal(bus_open("inproc:", count_wake, &wakes, &bus), 0);
	assert_int_equal(bus_sub(bus, "a.b", count, &calls, NULL), 0);
	assert_int_equal(bus_pub(bus, "a.b", "1", 1), 0);
	assert_int_equal(bus_pub(bus, "a.b", "2", 1), 0);
	assert_int_equal(calls, 0);
	assert_int_equal(wakes, 1);
	assert_int_equal(bus_run(bus, 0), 2);
	assert_int_equal(calls, 2);
	assert_null(bus_close(bus));
}

static void messages_without_a_subscriber_are_counted(void **state)
{
	const struct test_buses *buses = *state;
	unsigned calls = 0;

	assert_int_equal(bus_sub(buses->to, "a.>", count, &calls, NULL), 0);
	assert_int_equal(bus_pub(buses->from, "ab.c", "x", 1), 0);
	assert_int_equal(bus_pub(buses->from, "a", "x", 1), 0);
	(void)bus_run(buses->to, 0);
	assert_int_equal(bus_stats(buses->to).unheard, 2);
}

static void a_full_queue_refuses_by_messages_and_by_bytes(void **state)
{
	static char large[BUS_MESSAGE_MAX];
	struct bus *bus = ((const struct test_buses *)*state)->from;

	for (unsigned i = 0; i < BUS_PENDING_CNT; i++)
		assert_int_equal(bus_pub(bus, "a.b", "x", 1), 0);
	assert_int_equal(bus_pub(bus, "a.b", "x", 1), -ENOBUFS);
	assert_int_equal(bus_stats(bus).dropped, 1);
	assert_int_equal(bus_run(bus, 0), BUS_PENDING_CNT);
	assert_int_equal(bus_stats(bus).pending_bytes, 0);
	for (unsigned i = 0; i < BUS_PENDING_BYTES / BUS_MESSAGE_MAX; i++)
		assert_int_equal(bus_pub(bus, "a.b", large, BUS_MESSAGE_MAX), 0);
	assert_int_equal(bus_pub(bus, "a.b", "x", 1), -ENOBUFS);
}

static void a_run_of_some_leaves_the_rest(void **state)
{
	struct bus *bus = ((const struct test_buses *)*state)->from;
	unsigned calls = 0;

	assert_int_equal(bus_sub(bus, "a.>", count, &calls, NULL), 0);
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(bus_pub(bus, "a.b", "x", 1), 0);
	assert_int_equal(bus_run_some(bus, 0, 4), 4);
	assert_int_equal(calls, 4);
	assert_int_equal(bus_run_some(bus, 0, 100), 6);
	assert_int_equal(calls, 10);
	assert_int_equal(bus_run_some(bus, 0, 100), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_pair, close_pair)

int main(void)
{
	const struct CMUnitTest contract[] = BUS_CONFORMANCE(open_pair, close_pair);
	const struct CMUnitTest own[] = {
		TEST(other_schemes_are_refused),
		TEST(a_run_takes_all_that_was_published_before_it),
		TEST(messages_without_a_subscriber_are_counted),
		TEST(a_full_queue_refuses_by_messages_and_by_bytes),
		TEST(a_run_of_some_leaves_the_rest),
	};

	return cmocka_run_group_tests_name("contract", contract, NULL, NULL) +
	       cmocka_run_group_tests_name("in process", own, NULL, NULL);
}
