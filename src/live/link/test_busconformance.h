/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The contract of bus.h as one suite that each back end passes: order, patterns, sizes, slow
 * receivers, requests, the end. A back end gives a setup that connects a publisher and a receiver,
 * which are one bus where all is in one process; bus_test.c and natsbus_test.c have what only one
 * of them does.
 */
#pragma once

#include "live/link/bus.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

/* What a setup puts into *state. The suite closes neither bus but in the test of the end. */
struct test_buses {
	struct bus *from, *to; /* NULL: closed by the test */
};

/* Closes what the test has left open. */
void test_buses_close(struct test_buses *buses);

void bus_keeps_the_order_of_a_publisher(void **state);
void bus_keeps_the_order_over_several_subjects(void **state);
void bus_patterns_are_exact_or_end_in_a_tail_and_may_overlap(void **state);
void bus_refuses_invalid_subjects_and_patterns(void **state);
void bus_takes_messages_of_any_size_up_to_the_limit(void **state);
void bus_counts_what_a_slow_receiver_loses(void **state);
void bus_handler_may_leave_during_its_own_call(void **state);
void bus_calls_no_handler_from_within_publishing(void **state);
void bus_request_gets_its_answer_once(void **state);
void bus_request_without_an_answer_ends_at_its_deadline(void **state);
void bus_refuses_too_many_requests(void **state);
void bus_message_that_expects_no_answer_cannot_be_answered(void **state);
void bus_calls_nothing_after_its_end(void **state);

/* The list of a group of tests. setup(state) sets *state to a struct test_buses. */
#define BUS_CONFORMANCE(setup, teardown)                                                           \
	{                                                                                          \
		BUS_CONFORMS(bus_keeps_the_order_of_a_publisher, setup, teardown),                 \
			BUS_CONFORMS(bus_keeps_the_order_over_several_subjects, setup, teardown),  \
			BUS_CONFORMS(bus_patterns_are_exact_or_end_in_a_tail_and_may_overlap,      \
				     setup, teardown),                                             \
			BUS_CONFORMS(bus_refuses_invalid_subjects_and_patterns, setup, teardown),  \
			BUS_CONFORMS(bus_takes_messages_of_any_size_up_to_the_limit, setup,        \
				     teardown),                                                    \
			BUS_CONFORMS(bus_counts_what_a_slow_receiver_loses, setup, teardown),      \
			BUS_CONFORMS(bus_handler_may_leave_during_its_own_call, setup, teardown),  \
			BUS_CONFORMS(bus_calls_no_handler_from_within_publishing, setup,           \
				     teardown),                                                    \
			BUS_CONFORMS(bus_request_gets_its_answer_once, setup, teardown),           \
			BUS_CONFORMS(bus_request_without_an_answer_ends_at_its_deadline, setup,    \
				     teardown),                                                    \
			BUS_CONFORMS(bus_refuses_too_many_requests, setup, teardown),              \
			BUS_CONFORMS(bus_message_that_expects_no_answer_cannot_be_answered, setup, \
				     teardown),                                                    \
			BUS_CONFORMS(bus_calls_nothing_after_its_end, setup, teardown)             \
	}
#define BUS_CONFORMS(test, setup, teardown) cmocka_unit_test_setup_teardown(test, setup, teardown)
