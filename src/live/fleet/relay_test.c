/* SPDX-License-Identifier: Apache-2.0 */
#include "live/fleet/relay.h"

#include "base/test_alloc.h"
#include "live/fleet/relayframe.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

/* hostd on the left, the daemon of a job on the right. */
static struct {
	uv_loop_t loop;
	struct bus *left, *right;
	struct relay *relays[2];
	int fds[2];
	unsigned ups, downs;
	size_t bytes;
} f;

static void count(void *arg, const struct bus_message *message)
{
	++*(unsigned *)arg;
	f.bytes += message->len;
}

static void turn(int times)
{
	for (int i = 0; i < times; i++) {
		(void)uv_run(&f.loop, UV_RUN_NOWAIT);
		(void)(bus_run(f.left, 0) + bus_run(f.right, 0));
	}
}

static int open_all(void **state)
{
	struct relay_setup left = { .loop = &f.loop,
				    .takes = { "job.up.h1" },
				    .passes = { "job.down", "job.to.h1" } };
	struct relay_setup right = { .loop = &f.loop,
				     .takes = { "job.down", "job.to.h1" },
				     .passes = { "job.up.>" } };

	(void)state;
	f.ups = f.downs = 0;
	f.bytes = 0;
	assert_int_equal(uv_loop_init(&f.loop), 0);
	assert_int_equal(bus_open("inproc:", NULL, NULL, &f.left), 0);
	assert_int_equal(bus_open("inproc:", NULL, NULL, &f.right), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, f.fds), 0);
	left.bus = f.left;
	left.fd = f.fds[0];
	right.bus = f.right;
	right.fd = f.fds[1];
	assert_int_equal(relay_open(&left, &f.relays[0]), 0);
	assert_int_equal(relay_open(&right, &f.relays[1]), 0);
	assert_int_equal(bus_sub(f.left, "job.up.>", count, &f.ups, NULL), 0);
	assert_int_equal(bus_sub(f.right, "job.>", count, &f.downs, NULL), 0);
	return 0;
}

static int close_all(void **state)
{
	(void)state;
	f.relays[0] = relay_close(f.relays[0]);
	f.relays[1] = relay_close(f.relays[1]);
	(void)uv_run(&f.loop, UV_RUN_NOWAIT);
	assert_int_equal(uv_loop_close(&f.loop), 0);
	f.left = bus_close(f.left);
	f.right = bus_close(f.right);
	return 0;
}

static void a_job_says_and_hears_its_own_subjects_only(void **state)
{
	(void)state;
	assert_int_equal(bus_pub(f.right, "job.up.h1", "abc", 3), 0);
	assert_int_equal(bus_pub(f.right, "job.up.h2", "abc", 3), 0); /* as another host */
	assert_int_equal(bus_pub(f.left, "job.down", "d", 1), 0);
	assert_int_equal(bus_pub(f.left, "job.to.h1", "", 0), 0);
	assert_int_equal(bus_pub(f.left, "job.to.h2", "", 0), 0);
	assert_int_equal(bus_pub(f.left, "other.down", "", 0), 0);
	turn(20);
	assert_int_equal(f.ups, 1);
	assert_int_equal(relay_stats(f.relays[0]).refused, 1);
	assert_int_equal(f.downs, 4); /* the two that were published there, too */
	assert_int_equal(relay_stats(f.relays[0]).passed, 2);
	assert_int_equal(relay_stats(f.relays[1]).taken, 2);
}

static void large_messages_come_whole(void **state)
{
	static char data[BUS_MESSAGE_MAX];

	(void)state;
	for (int i = 0; i < 5; i++)
		assert_int_equal(bus_pub(f.right, "job.up.h1", data, sizeof(data)), 0);
	turn(500);
	assert_int_equal(f.ups, 5);
	assert_int_equal(relay_stats(f.relays[1]).dropped, 0);
}

static void what_the_other_end_does_not_read_is_bounded_and_counted(void **state)
{
	static char data[BUS_MESSAGE_MAX];

	(void)state;
	for (int i = 0; i < 40; i++) {
		(void)bus_pub(f.right, "job.up.h1", data, sizeof(data));
		(void)bus_run(f.right, 0); /* the loop does not turn */
	}
	assert_true(relay_stats(f.relays[1]).dropped >= 20);
	turn(500);
	assert_int_equal(f.ups, relay_stats(f.relays[1]).passed);
	assert_int_equal(bus_pub(f.right, "job.up.h1", "abc", 3), 0);
	turn(20);
	assert_int_equal(f.ups, relay_stats(f.relays[1]).passed);
}

static void what_is_no_message_ends_the_relay(void **state)
{
	static const char junk[] = "GET / HTTP/1.1\r\n\r\n";

	(void)state;
	assert_int_equal(send(f.fds[1], junk, sizeof(junk), 0), (int)sizeof(junk));
	turn(5);
	assert_int_equal(relay_stats(f.relays[0]).refused, 1);
	assert_int_equal(bus_pub(f.left, "job.down", "d", 1), 0);
	turn(5);
	assert_int_equal(relay_stats(f.relays[0]).dropped, 1);
}

static void the_end_of_the_other_process_is_no_error(void **state)
{
	(void)state;
	f.relays[1] = relay_close(f.relays[1]);
	turn(5);
	assert_int_equal(bus_pub(f.left, "job.down", "d", 1), 0);
	turn(5);
	assert_int_equal(relay_stats(f.relays[0]).dropped, 1);
}

static void without_memory_nothing_is_opened(void **state)
{
	int error = -ENOMEM;

	(void)state;
	for (int n = 0; error == -ENOMEM; n++) {
		struct relay_setup setup = { .loop = &f.loop,
					     .bus = f.left,
					     .passes = { "a", "b" } };
		struct relay *relay = NULL;
		int fds[2];

		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
		setup.fd = fds[0];
		allocations_left = n;
		error = relay_open(&setup, &relay);
		allocations_left = -1;
		(void)relay_close(relay);
		(void)close(fds[1]);
		turn(1);
	}
	assert_int_equal(error, 0);
}

static void frames_are_checked(void **state)
{
	struct relayframe frame;
	struct relayframe_head head = { RELAYFRAME_MAGIC, 3, 2 };
	char bytes[32];

	(void)state;
	memcpy(bytes, &head, sizeof(head));
	memcpy(bytes + sizeof(head), "a.bxy", 5);
	for (size_t len = 0; len < sizeof(head) + 5; len++)
		assert_int_equal(relayframe_parse(bytes, len, &frame), 0);
	assert_int_equal(relayframe_parse(bytes, sizeof(bytes), &frame), 17);
	assert_string_equal(frame.subject, "a.b");
	assert_int_equal(frame.len, 2);
	bytes[sizeof(head)] = '\0';
	assert_int_equal(relayframe_parse(bytes, sizeof(bytes), &frame), -EPROTO);
	head.data_len = BUS_MESSAGE_MAX + 1;
	assert_int_equal(relayframe_parse(&head, sizeof(head), &frame), -EPROTO);
	head = (struct relayframe_head){ RELAYFRAME_MAGIC, BUS_SUBJECT_MAX, 0 };
	assert_int_equal(relayframe_parse(&head, sizeof(head), &frame), -EPROTO);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_all, close_all)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_job_says_and_hears_its_own_subjects_only),
		TEST(large_messages_come_whole),
		TEST(what_the_other_end_does_not_read_is_bounded_and_counted),
		TEST(what_is_no_message_ends_the_relay),
		TEST(the_end_of_the_other_process_is_no_error),
		TEST(without_memory_nothing_is_opened),
		cmocka_unit_test(frames_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
