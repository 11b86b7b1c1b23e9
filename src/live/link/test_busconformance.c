/* SPDX-License-Identifier: Apache-2.0 */
#include "live/link/test_busconformance.h"

#include "base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define WAIT_NS (60 * NSEC_PER_SEC) /* a limit, not what anything takes */
#define NUMBERS 20000u
#define IN_FLIGHT 1000u

struct log {
	struct bus *bus;
	struct bus_sub *sub;
	char text[256];
	unsigned calls, empty_calls;
	uint64_t next; /* of a sequence */
	bool disordered;
	bool publishing, nested;
	size_t len; /* of the latest message */
};

void test_buses_close(struct test_buses *buses)
{
	if (buses->to != buses->from)
		(void)bus_close(buses->to);
	(void)bus_close(buses->from);
	buses->from = buses->to = NULL;
}

static void record(void *arg, const struct bus_message *message)
{
	struct log *log = arg;
	size_t at = strlen(log->text);

	log->calls++;
	log->len = message->len;
	log->nested |= log->publishing;
	if (message->len < 32)
		(void)snprintf(log->text + at, sizeof(log->text) - at, "%.*s;", (int)message->len,
			       (const char *)message->data);
}

static void record_answer(void *arg, const struct bus_message *message)
{
	struct log *log = arg;

	if (message != NULL) {
		record(arg, message);
	} else {
		log->calls++;
		log->empty_calls++;
	}
}

static void take_number(void *arg, const struct bus_message *message)
{
	struct log *log = arg;
	uint64_t number;

	assert_int_equal(message->len, sizeof(number));
	memcpy(&number, message->data, sizeof(number));
	log->disordered |= number != log->next;
	log->next = number + 1;
	log->calls++;
}

static void answer_pong(void *arg, const struct bus_message *message)
{
	assert_int_equal(bus_reply(arg, message, "pong", 4), 0);
}

static void leave_at_once(void *arg, const struct bus_message *message)
{
	struct log *log = arg;

	record(arg, message);
	log->sub = bus_unsub(log->bus, log->sub);
}

static void publish_again(void *arg, const struct bus_message *message)
{
	struct log *log = arg;

	record(arg, message);
	log->publishing = true;
	if (log->calls < 5)
		assert_int_equal(bus_pub(log->bus, "a.b", "again", 5), 0);
	log->publishing = false;
}

/* --- time --- */

static size_t run_once(const struct test_buses *buses)
{
	size_t cnt = bus_run(buses->to, clock_mono_ns());

	return buses->to != buses->from ? cnt + bus_run(buses->from, clock_mono_ns()) : cnt;
}

static void run_until(const struct test_buses *buses, const unsigned *calls, unsigned expected)
{
	for (int64_t until_ns = clock_mono_ns() + WAIT_NS;
	     *calls < expected && clock_mono_ns() < until_ns;) {
		if (run_once(buses) == 0)
			(void)usleep(500);
	}
	assert_int_equal(*calls, expected);
}

static void subscribe(const struct test_buses *buses, const char *pattern, bus_handler *handler,
		      void *arg)
{
	assert_int_equal(bus_sub(buses->to, pattern, handler, arg, NULL), 0);
}

static void pub(const struct test_buses *buses, const char *subject, const char *text)
{
	assert_int_equal(bus_pub(buses->from, subject, text, strlen(text)), 0);
}

/*
 * Until what `to` subscribed before is known where `from` publishes, and what was published before
 * has come: a later message does.
 */
static void settle(const struct test_buses *buses)
{
	struct log log = { .calls = 0 };
	struct bus_sub *sub;

	assert_int_equal(bus_sub(buses->to, "settle", record, &log, &sub), 0);
	for (int64_t until_ns = clock_mono_ns() + WAIT_NS;
	     log.calls == 0 && clock_mono_ns() < until_ns;) {
		(void)bus_pub(buses->from, "settle", "", 0);
		(void)run_once(buses);
		(void)usleep(500);
	}
	assert_true(log.calls > 0);
	(void)bus_unsub(buses->to, sub);
}

static uint64_t dropped(const struct test_buses *buses)
{
	return bus_stats(buses->to).dropped +
	       (buses->to != buses->from ? bus_stats(buses->from).dropped : 0);
}

/* --- the contract --- */

static void send_numbers(const struct test_buses *buses, const char *const *subjects, size_t cnt,
			 struct log *log)
{
	for (uint64_t i = 0; i < NUMBERS; i++) {
		assert_int_equal(bus_pub(buses->from, subjects[i % cnt], &i, sizeof(i)), 0);
		for (int64_t until_ns = clock_mono_ns() + WAIT_NS;
		     i >= log->next + IN_FLIGHT && clock_mono_ns() < until_ns;)
			(void)run_once(buses);
	}
	run_until(buses, &log->calls, NUMBERS);
	assert_false(log->disordered); /* none twice, none missing */
	assert_int_equal(dropped(buses), 0);
}

void bus_keeps_the_order_of_a_publisher(void **state)
{
	static const char *const subjects[] = { "a.b" };
	struct log log = { .calls = 0 };

	subscribe(*state, "a.b", take_number, &log);
	settle(*state);
	send_numbers(*state, subjects, ARRAY_SIZE(subjects), &log);
}

/* Subjects of one publisher are one sequence, though each subscription is one of its own. */
void bus_keeps_the_order_over_several_subjects(void **state)
{
	static const char *const subjects[] = { "a.b", "c", "d.e.f" };
	struct log log = { .calls = 0 };

	for (size_t i = 0; i < ARRAY_SIZE(subjects); i++)
		subscribe(*state, subjects[i], take_number, &log);
	settle(*state);
	send_numbers(*state, subjects, ARRAY_SIZE(subjects), &log);
}

void bus_patterns_are_exact_or_end_in_a_tail_and_may_overlap(void **state)
{
	struct log exact = { .calls = 0 }, tail = { .calls = 0 };

	subscribe(*state, "a.b", record, &exact);
	subscribe(*state, "a.>", record, &tail);
	settle(*state);
	pub(*state, "a.b", "1");
	pub(*state, "a.b.c", "2");
	pub(*state, "ab.c", "3");
	pub(*state, "a", "4");
	settle(*state);
	assert_string_equal(exact.text, "1;");
	assert_string_equal(tail.text, "1;2;");
}

void bus_refuses_invalid_subjects_and_patterns(void **state)
{
	static const char *const bad[] = { "", ".", "a.", ".a", "a..b", "a b", "a.*", "a.>", ">" };
	static const char *const bad_patterns[] = { "", "a>", ">.a", "a.>.b", "*", "a." };
	const struct test_buses *buses = *state;
	char longest[BUS_SUBJECT_MAX + 1];
	struct log log = { .calls = 0 };

	memset(longest, 'a', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(bus_pub(buses->from, bad[i], "", 0), -EINVAL);
	assert_int_equal(bus_pub(buses->from, longest, "", 0), -EINVAL);
	for (size_t i = 0; i < ARRAY_SIZE(bad_patterns); i++)
		assert_int_equal(bus_sub(buses->to, bad_patterns[i], record, &log, NULL), -EINVAL);
}

void bus_takes_messages_of_any_size_up_to_the_limit(void **state)
{
	static const size_t sizes[] = { 0, 1, 4095, 65536, BUS_MESSAGE_MAX };
	static unsigned char large[BUS_MESSAGE_MAX + 1];
	const struct test_buses *buses = *state;
	struct log log = { .calls = 0 };

	subscribe(buses, "a", record, &log);
	settle(buses);
	for (unsigned i = 0; i < ARRAY_SIZE(sizes); i++) {
		assert_int_equal(bus_pub(buses->from, "a", large, sizes[i]), 0);
		run_until(buses, &log.calls, i + 1);
		assert_int_equal(log.len, sizes[i]);
	}
	assert_int_equal(bus_pub(buses->from, "a", large, sizeof(large)), -EMSGSIZE);
	settle(buses);
	assert_int_equal(log.calls, ARRAY_SIZE(sizes));
}

/* Each message is handed over or counted as dropped, and publishing goes on. */
void bus_counts_what_a_slow_receiver_loses(void **state)
{
	const struct test_buses *buses = *state;
	const uint64_t all = 3 * BUS_PENDING_CNT;
	uint64_t before, refused = 0;
	struct log log = { .calls = 0 };

	subscribe(buses, "a.b", record, &log);
	settle(buses);
	before = dropped(buses);
	for (uint64_t i = 0; i < all; i++) {
		int error = bus_pub(buses->from, "a.b", "x", 1);

		assert_true(error == 0 || error == -ENOBUFS);
		refused += error != 0;
	}
	for (int64_t until_ns = clock_mono_ns() + WAIT_NS;
	     bus_stats(buses->to).pending_cnt + dropped(buses) - before < all &&
	     clock_mono_ns() < until_ns;)
		(void)usleep(500);
	assert_true(bus_stats(buses->to).pending_cnt <= BUS_PENDING_CNT);
	(void)run_once(buses); /* room for what settles */
	settle(buses);
	assert_true(refused <= dropped(buses) - before);
	assert_true(log.calls > 0 && log.calls <= BUS_PENDING_CNT);
	assert_int_equal(log.calls + dropped(buses) - before, all);
}

void bus_handler_may_leave_during_its_own_call(void **state)
{
	const struct test_buses *buses = *state;
	struct log log = { .bus = buses->to };

	assert_int_equal(bus_sub(buses->to, "a.b", leave_at_once, &log, &log.sub), 0);
	settle(buses);
	pub(buses, "a.b", "1");
	pub(buses, "a.b", "2");
	settle(buses);
	assert_string_equal(log.text, "1;");
}

void bus_calls_no_handler_from_within_publishing(void **state)
{
	const struct test_buses *buses = *state;
	struct log log = { .bus = buses->to };

	subscribe(buses, "a.b", publish_again, &log);
	settle(buses);
	log.publishing = true;
	pub(buses, "a.b", "1");
	log.publishing = false;
	run_until(buses, &log.calls, 5);
	assert_false(log.nested);
	assert_string_equal(log.text, "1;again;again;again;again;");
}

void bus_request_gets_its_answer_once(void **state)
{
	const struct test_buses *buses = *state;
	struct log asked = { .calls = 0 };

	subscribe(buses, "ask", answer_pong, buses->to);
	subscribe(buses, "ask", answer_pong, buses->to); /* the second answer is too late */
	settle(buses);
	assert_int_equal(bus_req(buses->from, "ask", "ping", 4, clock_mono_ns() + WAIT_NS,
				 record_answer, &asked),
			 0);
	run_until(buses, &asked.calls, 1);
	settle(buses);
	(void)bus_run(buses->from, clock_mono_ns() + 2 * WAIT_NS);
	assert_string_equal(asked.text, "pong;");
	assert_int_equal(asked.calls, 1);
	assert_int_equal(bus_stats(buses->from).timeouts, 0);
}

void bus_request_without_an_answer_ends_at_its_deadline(void **state)
{
	const struct test_buses *buses = *state;
	const int64_t deadline_ns = clock_mono_ns() + WAIT_NS;
	struct log asked = { .calls = 0 };

	assert_int_equal(
		bus_req(buses->from, "nobody", "ping", 4, deadline_ns, record_answer, &asked), 0);
	(void)bus_run(buses->from, deadline_ns - 1);
	assert_int_equal(asked.calls, 0);
	(void)bus_run(buses->from, deadline_ns);
	assert_int_equal(asked.empty_calls, 1);
	(void)bus_run(buses->from, deadline_ns + 1);
	assert_int_equal(asked.calls, 1);
	assert_int_equal(bus_stats(buses->from).timeouts, 1);
}

void bus_refuses_too_many_requests(void **state)
{
	const struct test_buses *buses = *state;
	const int64_t deadline_ns = clock_mono_ns() + WAIT_NS;
	struct log asked = { .calls = 0 };

	for (unsigned i = 0; i < BUS_REQUEST_CNT; i++)
		assert_int_equal(
			bus_req(buses->from, "ask", "", 0, deadline_ns, record_answer, &asked), 0);
	assert_int_equal(bus_req(buses->from, "ask", "", 0, deadline_ns, record_answer, &asked),
			 -ENOBUFS);
	(void)bus_run(buses->from, deadline_ns);
	assert_int_equal(asked.empty_calls, BUS_REQUEST_CNT);
}

void bus_message_that_expects_no_answer_cannot_be_answered(void **state)
{
	const struct test_buses *buses = *state;
	const struct bus_message message = { .subject = "a" };

	assert_int_equal(bus_reply(buses->to, &message, "x", 1), -EDESTADDRREQ);
}

/* With messages that nobody took and requests without an answer; the sanitizers see what is left. */
void bus_calls_nothing_after_its_end(void **state)
{
	struct test_buses *buses = *state;
	struct log log = { .calls = 0 }, asked = { .calls = 0 };

	subscribe(buses, "a", record, &log);
	settle(buses);
	for (unsigned i = 0; i < 100; i++)
		pub(buses, "a", "x");
	assert_int_equal(bus_req(buses->from, "ask", "", 0, clock_mono_ns() + WAIT_NS,
				 record_answer, &asked),
			 0);
	test_buses_close(buses);
	(void)usleep(1000);
	assert_int_equal(log.calls + asked.calls, 0);
}
