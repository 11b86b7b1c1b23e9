/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets of one process as the kernel would show them, look by look. */
#include "host/network/flows.h"

#include "base/test_alloc.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

/* clang-format off */
#include <cmocka.h>
/* clang-format on */

static struct sockdiag_socket socket_to(const char *remote)
{
	struct sockdiag_socket ret = { .family = AF_INET, .rtt_us = 700 };

	assert_int_equal(inet_pton(AF_INET, "127.0.0.1", ret.id.idiag_src), 1);
	assert_int_equal(inet_pton(AF_INET, remote, ret.id.idiag_dst), 1);
	return ret;
}

static void two_sockets_to_one_address_are_one_flow(void **state)
{
	struct sockdiag_socket before[2] = { socket_to("10.0.0.2"), socket_to("10.0.0.2") };
	struct flows flows = { .dropped_bytes = 0 };
	bool counted[2] = { false, false };

	(void)state;
	for (int look = 1; look <= 3; look++) {
		for (int i = 0; i < 2; i++) {
			struct sockdiag_socket now = before[i];

			now.tx_bytes += 1000;
			now.busy_us += 50;
			now.limited_us += 20;
			now.retransmitted_bytes += 3;
			flows_add(&flows, &before[i], &now, &counted[i]);
			before[i] = now;
		}
	}
	assert_int_equal(flows.list.cnt, 1);
	assert_int_equal(flows.list.data[0].tx_bytes, 6000);
	assert_int_equal(flows.list.data[0].busy_ns, 300000);
	assert_int_equal(flows.list.data[0].limited_ns, 120000);
	assert_int_equal(flows.list.data[0].retransmitted_bytes, 18);
	assert_int_equal(flows.list.data[0].rtt_us, 700);
	assert_int_equal(flows.list.data[0].socket_cnt, 2);
	flows_done(&flows);
}

static void a_socket_that_sends_nothing_is_no_flow(void **state)
{
	const struct sockdiag_socket idle = socket_to("10.0.0.2");
	struct flows flows = { .dropped_bytes = 0 };
	bool counted = false;

	(void)state;
	flows_add(&flows, &idle, &idle, &counted);
	flows_add(&flows, NULL, &idle, &counted);
	assert_int_equal(flows.list.cnt, 0);
	assert_false(counted);
	flows_done(&flows);
}

/* A counter that went back, as a kernel's may at a wrap, is no growth. */
static void a_counter_that_goes_back_adds_nothing(void **state)
{
	struct sockdiag_socket before = socket_to("10.0.0.2"), now = before;
	struct flows flows = { .dropped_bytes = 0 };
	bool counted = false;

	(void)state;
	before.busy_us = 90;
	now.busy_us = 10;
	now.tx_bytes = 8;
	flows_add(&flows, &before, &now, &counted);
	assert_int_equal(flows.list.data[0].busy_ns, 0);
	assert_int_equal(flows.list.data[0].tx_bytes, 8);
	flows_done(&flows);
}

static void what_is_beyond_the_limit_is_counted(void **state)
{
	struct flows flows = { .dropped_bytes = 0 };

	(void)state;
	for (uint32_t i = 0; i < FLOWS_MAX + 3; i++) {
		struct sockdiag_socket now = socket_to("10.0.0.2");
		bool counted = false;

		now.id.idiag_dst[0] += htonl(i);
		now.tx_bytes = 7;
		flows_add(&flows, NULL, &now, &counted);
	}
	assert_int_equal(flows.list.cnt, FLOWS_MAX);
	assert_int_equal(flows.dropped_bytes, 21);
	flows_done(&flows);
}

static void without_memory_bytes_are_counted(void **state)
{
	struct sockdiag_socket now = socket_to("10.0.0.2");
	struct flows flows = { .dropped_bytes = 0 };
	bool counted = false;

	(void)state;
	now.tx_bytes = 7;
	allocations_left = 0;
	flows_add(&flows, NULL, &now, &counted);
	allocations_left = -1;
	assert_int_equal(flows.list.cnt, 0);
	assert_int_equal(flows.dropped_bytes, 7);
}

static void the_card_of_the_local_address_is_named(void **state)
{
	struct sockdiag_socket now = socket_to("10.0.0.2"), v6 = { .family = AF_INET6 };
	const unsigned char mapped[16] = { [10] = 0xff, 0xff, 127, 0, 0, 1 };
	struct flows flows = { .dropped_bytes = 0 };
	bool counted = false, counted_v6 = false;

	(void)state;
	now.tx_bytes = v6.tx_bytes = 1;
	memset(v6.id.idiag_src, 0x20, sizeof(v6.id.idiag_src));
	flows_add(&flows, NULL, &now, &counted);
	flows_add(&flows, NULL, &v6, &counted_v6);
	flows_name_cards(&flows);
	assert_memory_equal(flows.list.data[0].local, mapped, sizeof(mapped));
	assert_string_equal(flows.list.data[0].card, "lo");
	assert_string_equal(flows.list.data[1].card, ""); /* of another network namespace */
	flows_done(&flows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_sockets_to_one_address_are_one_flow),
		cmocka_unit_test(a_socket_that_sends_nothing_is_no_flow),
		cmocka_unit_test(a_counter_that_goes_back_adds_nothing),
		cmocka_unit_test(what_is_beyond_the_limit_is_counted),
		cmocka_unit_test(without_memory_bytes_are_counted),
		cmocka_unit_test(the_card_of_the_local_address_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
