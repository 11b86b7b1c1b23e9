/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/core/orders.h"

#include <setjmp.h>
#include <stdarg.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

#define MS NSEC_PER_MSEC

static void set_order(struct order *order, uint64_t id, uint64_t start_step, int64_t window_ns)
{
	order->start_step = start_step;
	order->window_ns = (uint64_t)window_ns;
	order->min_steps = 1;
	order->max_steps = 0;
	order->stride = 0;
	order->canceled = 0;
	order->id = id;
}

/* 10 ms a step. Returns the step at which `action` came first, 0 if it never came. */
static uint64_t step_of(struct orders *orders, struct order *order, int action, uint64_t from,
			uint64_t to)
{
	for (uint64_t step = from; step <= to; step++) {
		if (orders_mark(orders, order, step, (int64_t)step * 10 * MS) == action)
			return step;
	}
	return 0;
}

static void orders_begins_at_its_step_and_ends_after_its_length(void **state)
{
	struct orders orders = { 0 };
	struct order order = { 0 };

	(void)state;
	assert_int_equal(step_of(&orders, &order, AGENT_BEGIN, 1, 50), 0);
	set_order(&order, 1, 100, 95 * MS);
	assert_int_equal(step_of(&orders, &order, AGENT_BEGIN, 51, 200), 100);
	assert_int_equal(orders_mark(&orders, &order, 101, 1010 * MS), AGENT_BOUND);
	assert_int_equal(step_of(&orders, &order, AGENT_END, 102, 200), 110);
	assert_int_equal(orders.end_ns - orders.begin_ns, 100 * MS);
	assert_int_equal(step_of(&orders, &order, AGENT_BEGIN, 111, 200), 0); /* once an order */
}

static void orders_waits_for_the_least_steps_and_stops_at_the_most(void **state)
{
	struct orders orders = { 0 };
	struct order order = { 0 };

	(void)state;
	set_order(&order, 1, 10, 20 * MS);
	order.min_steps = 30;
	(void)step_of(&orders, &order, AGENT_BEGIN, 1, 10);
	assert_int_equal(step_of(&orders, &order, AGENT_END, 11, 200), 40);
	orders_finish(&orders);
	set_order(&order, 2, 300, 100000 * MS);
	order.max_steps = 5;
	(void)step_of(&orders, &order, AGENT_BEGIN, 201, 300);
	assert_int_equal(step_of(&orders, &order, AGENT_END, 301, 400), 305);
}

static void orders_counts_iterations_of_several_steps(void **state)
{
	struct orders orders = { 0 };
	struct order order = { 0 };

	(void)state;
	set_order(&order, 1, 10, 0);
	order.stride = 3;
	order.min_steps = 4;
	(void)step_of(&orders, &order, AGENT_BEGIN, 1, 10);
	assert_int_equal(step_of(&orders, &order, AGENT_BOUND, 11, 20), 13);
	assert_int_equal(step_of(&orders, &order, AGENT_END, 14, 100), 22);
}

static void orders_misses_a_step_that_is_past_and_takes_the_next_order(void **state)
{
	struct orders orders = { 0 };
	struct order order = { 0 };

	(void)state;
	set_order(&order, 1, 10, 20 * MS);
	assert_int_equal(step_of(&orders, &order, AGENT_BEGIN, 11, 20), 0);
	assert_int_equal(orders.missed_id, 1);
	orders.missed_id = 0;
	(void)step_of(&orders, &order, AGENT_BEGIN, 21, 30);
	assert_int_equal(orders.missed_id, 0); /* reported once */
	set_order(&order, 2, 0, 20 * MS);      /* at the next mark */
	assert_int_equal(step_of(&orders, &order, AGENT_BEGIN, 31, 40), 31);
}

static void orders_forgets_a_canceled_order_and_closes_an_open_one(void **state)
{
	struct orders orders = { 0 };
	struct order order = { 0 };

	(void)state;
	set_order(&order, 1, 100, 1000 * MS);
	(void)step_of(&orders, &order, AGENT_BEGIN, 1, 50);
	order.canceled = 1;
	assert_int_equal(step_of(&orders, &order, AGENT_BEGIN, 51, 200), 0);
	assert_int_equal(orders.missed_id, 0);
	set_order(&order, 2, 300, 1000 * MS);
	assert_int_equal(step_of(&orders, &order, AGENT_BEGIN, 201, 300), 300);
	order.canceled = 1;
	assert_int_equal(step_of(&orders, &order, AGENT_END, 301, 310), 301);
}

static void orders_ends_its_order_before_it_looks_at_the_next(void **state)
{
	struct orders orders = { 0 };
	struct order order = { 0 };

	(void)state;
	set_order(&order, 1, 10, 100 * MS);
	(void)step_of(&orders, &order, AGENT_BEGIN, 1, 10);
	set_order(&order, 2, 15, 100 * MS);
	order.canceled = 1; /* the flag belongs to the second order */
	assert_int_equal(step_of(&orders, &order, AGENT_END, 11, 100), 20);
	assert_int_equal(orders.seen_id, 1);
	orders_finish(&orders);
	order.canceled = 0;
	(void)step_of(&orders, &order, AGENT_BEGIN, 21, 22);
	assert_int_equal(orders.missed_id, 2);
}

/* Memory that was cleared is not an order to begin at the next mark. */
static void orders_takes_no_order_of_number_0(void **state)
{
	struct orders orders = { 0 };
	struct order order = { 0 };

	(void)state;
	set_order(&order, 1, 10, 20 * MS);
	assert_int_equal(step_of(&orders, &order, AGENT_BEGIN, 1, 20), 10);
	assert_int_equal(step_of(&orders, &order, AGENT_END, 11, 50), 12);
	orders_finish(&orders);
	set_order(&order, 0, 0, 20 * MS);
	assert_int_equal(step_of(&orders, &order, AGENT_BEGIN, 51, 90), 0);
	set_order(&order, 1, 0, 20 * MS); /* carried out already */
	assert_int_equal(step_of(&orders, &order, AGENT_BEGIN, 91, 120), 0);
	set_order(&order, 2, 0, 20 * MS);
	assert_int_equal(step_of(&orders, &order, AGENT_BEGIN, 121, 150), 121);
}

/* 10 ms an iteration before, then 2 s. Returns how many it has. */
static uint64_t slow_iterations(bool costly, uint64_t max_steps)
{
	struct orders orders = { 0 };
	struct order order = { 0 };
	uint64_t cnt = 0;

	set_order(&order, 1, 10, 20000 * MS);
	order.min_steps = order.max_steps = max_steps;
	assert_int_equal(step_of(&orders, &order, AGENT_BEGIN, 1, 10), 10);
	assert_int_equal(orders.pace_ns, 10 * MS);
	orders.costly = costly;
	do {
		cnt++;
	} while (orders_mark(&orders, &order, 10 + cnt, (100 + 2000 * (int64_t)cnt) * MS) !=
		 AGENT_END);
	return cnt;
}

static void a_window_that_slows_the_job_down_ends_early(void **state)
{
	(void)state;
	assert_int_equal(slow_iterations(false, 16), 16);
	assert_int_equal(slow_iterations(true, 16), ORDERS_COSTLY_STEPS);
	assert_int_equal(slow_iterations(true, 400), ORDERS_COSTLY_STEPS); /* 10 s: 2.5 * 4 s */
	assert_int_equal(slow_iterations(true, 800), 10);		   /* 2.5 * 8 s */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_window_that_slows_the_job_down_ends_early),
		cmocka_unit_test(orders_begins_at_its_step_and_ends_after_its_length),
		cmocka_unit_test(orders_waits_for_the_least_steps_and_stops_at_the_most),
		cmocka_unit_test(orders_counts_iterations_of_several_steps),
		cmocka_unit_test(orders_misses_a_step_that_is_past_and_takes_the_next_order),
		cmocka_unit_test(orders_forgets_a_canceled_order_and_closes_an_open_one),
		cmocka_unit_test(orders_takes_no_order_of_number_0),
		cmocka_unit_test(orders_ends_its_order_before_it_looks_at_the_next),
	};

	return cmocka_run_group_tests_name("orders", tests, NULL, NULL);
}
