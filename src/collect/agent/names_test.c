/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/agent/names.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

enum { THREADS = 4, FUNCTIONS = 3000 };

static int set_up(void **ret)
{
	struct flight *flight = mmap(NULL, sizeof(*flight), PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (flight == MAP_FAILED || names_open(flight) < 0)
		return -1;
	*ret = flight;
	return 0;
}

static int tear_down(void **state)
{
	return munmap(*state, sizeof(struct flight));
}

struct adder {
	pthread_t thread;
	uint32_t ids[FUNCTIONS];
};

static pthread_barrier_t together;

/* All add the same functions at the same time; 0 means that another was at it at this moment. */
static void *add_functions(void *arg)
{
	struct adder *adder = arg;

	for (uint32_t i = 0; i < FUNCTIONS; i++) {
		char name[32];

		(void)pthread_barrier_wait(&together);
		(void)snprintf(name, sizeof(name), "function%u", i / 2);
		do
			adder->ids[i] = names_frame("train.py", name, i);
		while (adder->ids[i] == 0);
	}
	return NULL;
}

static void names_frame_gives_one_id_to_several_threads(void **state)
{
	const struct flight *flight = *state;
	static struct adder adders[THREADS];
	static bool seen[FLIGHT_FRAME_CNT];

	assert_int_equal(pthread_barrier_init(&together, NULL, THREADS), 0);
	for (size_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&adders[i].thread, NULL, add_functions, &adders[i]),
				 0);
	for (size_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(adders[i].thread, NULL), 0);
	/* A string that two threads add at once is none for one of them: a frame more. */
	assert_true(flight->frame_cnt > FUNCTIONS);
	for (uint32_t i = 0; i < FUNCTIONS; i++) {
		for (size_t t = 0; t < THREADS; t++) {
			uint32_t id = adders[t].ids[i];

			assert_true(id < flight->frame_cnt);
			assert_int_equal(flight->frames[id].first_line, i);
			seen[id] = true;
		}
	}
	for (uint32_t id = 1; id < flight->frame_cnt; id++)
		assert_true(seen[id]);
}

static void names_frame_counts_what_finds_no_room(void **state)
{
	const struct flight *flight = *state;

	for (uint32_t i = 1; i < FLIGHT_FRAME_CNT; i++)
		assert_int_equal(names_frame("a.py", "f", i), i);
	assert_int_equal(names_frame("a.py", "f", FLIGHT_FRAME_CNT), 0);
	assert_int_equal(flight->drops.frames, 1);
	assert_int_equal(names_frame("a.py", "f", 7), 7);
}

/* The memory is shared: whoever else writes there must not make us write elsewhere. */
static void counts_that_another_changed_are_not_believed(void **state)
{
	static const uint32_t wrong[] = { 0, 5, FLIGHT_FRAME_CNT, FLIGHT_NODE_CNT, UINT32_MAX };
	struct flight *flight = *state;

	for (uint32_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		atomic_store(&flight->frame_cnt, wrong[i]);
		atomic_store(&flight->node_cnt, wrong[i]);
		assert_int_equal(names_frame("train.py", "run", i), i + 1);
		assert_int_equal(names_node(0, i + 1), i + 1);
		assert_int_equal(flight->frame_cnt, i + 2);
		assert_int_equal(flight->node_cnt, i + 2);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(names_frame_gives_one_id_to_several_threads, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(counts_that_another_changed_are_not_believed,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(names_frame_counts_what_finds_no_room, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
