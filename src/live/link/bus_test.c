/* SPDX-License-Identifier: Apache-2.0 */
/* The contract of bus.h as a conformance suite: each backend's url runs all of it. */
#include "live/link/bus.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

static const char *const urls[] = { "inproc:" };

/* A handler's log: the texts it received, joined. */
struct log {
	struct bus *bus;
	struct bus_sub *sub;
	char text[256];
	int calls, empty_calls, wakes;
};

static void append(struct log *log, const void *data, size_t len)
{
	size_t at = strlen(log->text);

	(void)snprintf(log->text + at, sizeof(log->text) - at, "%.*s;", (int)len,
		       (const char *)data);
}

static void record(void *arg, const struct bus_message *message)
{
	struct log *log = arg;

	log->calls++;
	append(log, message->data, message->len);
}

static void record_answer(void *arg, const struct bus_message *message)
{
	struct log *log = arg;

	log->calls++;
	if (message == NULL)
		log->empty_calls++;
	else
		append(log, message->data, message->len);
}

static void answer_pong(void *arg, const struct bus_message *message)
{
	struct log *log = arg;

	assert_int_equal(bus_reply(log->bus, message, "pong", 4), 0);
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
	assert_int_equal(bus_pub(log->bus, "a.b", "again", 5), 0);
}

static void count_wake(void *arg)
{
	((struct log *)arg)->wakes++;
}

static struct bus *open_bus(struct log *log)
{
	*log = (struct log){ 0 };
	assert_int_equal(bus_open(urls[0], count_wake, log, &log->bus), 0);
	return log->bus;
}

static void pub(struct bus *bus, const char *subject, const char *text)
{
	assert_int_equal(bus_pub(bus, subject, text, strlen(text)), 0);
}

static void messages_arrive_in_order_and_only_from_run(void **state)
{
	struct log log;
	struct bus *bus = open_bus(&log);

	(void)state;
	assert_int_equal(bus_sub(bus, "a.b", record, &log, NULL), 0);
	pub(bus, "a.b", "1");
	pub(bus, "a.b", "2");
	assert_int_equal(log.calls, 0);
	assert_int_equal(log.wakes, 1);
	assert_int_equal(bus_run(bus, 0), 2);
	assert_string_equal(log.text, "1;2;");
	assert_null(bus_close(bus));
}

static void a_pattern_is_exact_or_ends_in_a_tail(void **state)
{
	struct log exact = { 0 }, tail = { 0 }, log;
	struct bus *bus = open_bus(&log);

	(void)state;
	assert_int_equal(bus_sub(bus, "a.b", record, &exact, NULL), 0);
	assert_int_equal(bus_sub(bus, "a.>", record, &tail, NULL), 0);
	pub(bus, "a.b", "1");
	pub(bus, "a.b.c", "2");
	pub(bus, "ab.c", "3");
	pub(bus, "a", "4");
	(void)bus_run(bus, 0);
	assert_string_equal(exact.text, "1;");
	assert_string_equal(tail.text, "1;2;");
	assert_int_equal(bus_stats(bus).unheard, 2);
	assert_null(bus_close(bus));
}

static void invalid_subjects_patterns_and_urls_are_refused(void **state)
{
	static const char *const bad[] = { "", ".", "a.", ".a", "a..b", "a b", "a.*", "a.>", ">" };
	static const char *const bad_patterns[] = { "", "a>", ">.a", "a.>.b", "*", "a." };
	char longest[BUS_SUBJECT_MAX + 1];
	struct log log;
	struct bus *bus = open_bus(&log), *none;

	(void)state;
	memset(longest, 'a', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(bus_pub(bus, bad[i], "", 0), -EINVAL);
	assert_int_equal(bus_pub(bus, longest, "", 0), -EINVAL);
	for (size_t i = 0; i < ARRAY_SIZE(bad_patterns); i++)
		assert_int_equal(bus_sub(bus, bad_patterns[i], record, &log, NULL), -EINVAL);
	assert_int_equal(bus_open("carrier-pigeon:", NULL, NULL, &none), -EPROTONOSUPPORT);
	assert_null(bus_close(bus));
}

static void a_full_queue_drops_and_counts(void **state)
{
	struct log log;
	struct bus *bus = open_bus(&log);
	static char large[BUS_MESSAGE_MAX + 1];

	(void)state;
	for (unsigned i = 0; i < BUS_PENDING_CNT; i++)
		pub(bus, "a.b", "x");
	assert_int_equal(bus_pub(bus, "a.b", "x", 1), -ENOBUFS);
	assert_int_equal(bus_stats(bus).dropped, 1);
	assert_int_equal(bus_run(bus, 0), BUS_PENDING_CNT);
	assert_int_equal(bus_stats(bus).pending_bytes, 0);
	for (unsigned i = 0; i < BUS_PENDING_BYTES / BUS_MESSAGE_MAX; i++)
		assert_int_equal(bus_pub(bus, "a.b", large, BUS_MESSAGE_MAX), 0);
	assert_int_equal(bus_pub(bus, "a.b", "x", 1), -ENOBUFS);
	assert_int_equal(bus_pub(bus, "a.b", large, sizeof(large)), -EMSGSIZE);
	assert_null(bus_close(bus));
}

static void a_handler_may_leave_during_its_own_call(void **state)
{
	struct log log;
	struct bus *bus = open_bus(&log);

	(void)state;
	assert_int_equal(bus_sub(bus, "a.b", leave_at_once, &log, &log.sub), 0);
	pub(bus, "a.b", "1");
	pub(bus, "a.b", "2");
	(void)bus_run(bus, 0);
	assert_string_equal(log.text, "1;");
	assert_null(bus_close(bus));
}

static void what_a_handler_publishes_waits_for_the_next_run(void **state)
{
	struct log log;
	struct bus *bus = open_bus(&log);

	(void)state;
	assert_int_equal(bus_sub(bus, "a.b", publish_again, &log, NULL), 0);
	pub(bus, "a.b", "1");
	assert_int_equal(bus_run(bus, 0), 1);
	assert_string_equal(log.text, "1;");
	assert_true(log.wakes >= 2);
	assert_int_equal(bus_run(bus, 0), 1);
	assert_string_equal(log.text, "1;again;");
	assert_null(bus_close(bus));
}

static void a_request_gets_its_answer_once(void **state)
{
	struct log log, asked = { 0 };
	struct bus *bus = open_bus(&log);

	(void)state;
	assert_int_equal(bus_sub(bus, "ask", answer_pong, &log, NULL), 0);
	assert_int_equal(bus_req(bus, "ask", "ping", 4, 100, record_answer, &asked), 0);
	(void)bus_run(bus, 0);
	(void)bus_run(bus, 0);
	(void)bus_run(bus, 1000);
	assert_string_equal(asked.text, "pong;");
	assert_int_equal(asked.calls, 1);
	assert_null(bus_close(bus));
}

static void a_request_without_an_answer_ends_at_its_deadline(void **state)
{
	struct log log, asked = { 0 };
	struct bus *bus = open_bus(&log);

	(void)state;
	assert_int_equal(bus_req(bus, "ask", "ping", 4, 100, record_answer, &asked), 0);
	(void)bus_run(bus, 99);
	assert_int_equal(asked.calls, 0);
	(void)bus_run(bus, 100);
	assert_int_equal(asked.empty_calls, 1);
	assert_int_equal(bus_stats(bus).timeouts, 1);
	assert_null(bus_close(bus));
}

static void too_many_requests_are_refused(void **state)
{
	struct log log, asked = { 0 };
	struct bus *bus = open_bus(&log);

	(void)state;
	for (unsigned i = 0; i < BUS_REQUEST_CNT; i++)
		assert_int_equal(bus_req(bus, "ask", "", 0, 100, record_answer, &asked), 0);
	assert_int_equal(bus_req(bus, "ask", "", 0, 100, record_answer, &asked), -ENOBUFS);
	(void)bus_run(bus, 200);
	assert_int_equal(asked.empty_calls, BUS_REQUEST_CNT);
	assert_null(bus_close(bus));
}

static void a_message_that_expects_no_answer_cannot_be_answered(void **state)
{
	struct bus_message message = { .subject = "a" };
	struct log log;
	struct bus *bus = open_bus(&log);

	(void)state;
	assert_int_equal(bus_reply(bus, &message, "x", 1), -EDESTADDRREQ);
	assert_null(bus_close(bus));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_arrive_in_order_and_only_from_run),
		cmocka_unit_test(a_pattern_is_exact_or_ends_in_a_tail),
		cmocka_unit_test(invalid_subjects_patterns_and_urls_are_refused),
		cmocka_unit_test(a_full_queue_drops_and_counts),
		cmocka_unit_test(a_handler_may_leave_during_its_own_call),
		cmocka_unit_test(what_a_handler_publishes_waits_for_the_next_run),
		cmocka_unit_test(a_request_gets_its_answer_once),
		cmocka_unit_test(a_request_without_an_answer_ends_at_its_deadline),
		cmocka_unit_test(too_many_requests_are_refused),
		cmocka_unit_test(a_message_that_expects_no_answer_cannot_be_answered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
