/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/core/nametable.h"

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

	if (flight == MAP_FAILED || nametable_open(flight) < 0)
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

/* All threads add the same functions; 0 means that another thread was adding one. */
static void *add_functions(void *arg)
{
	struct adder *adder = arg;

	for (uint32_t i = 0; i < FUNCTIONS; i++) {
		char name[32];

		(void)pthread_barrier_wait(&together);
		(void)snprintf(name, sizeof(name), "function%u", i / 2);
		do
			adder->ids[i] = nametable_frame("train.py", name, i);
		while (adder->ids[i] == 0);
	}
	return NULL;
}

static void nametable_frame_gives_one_id_to_several_threads(void **state)
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
	/* A string that two threads add at once is 0 for one of them: one more frame. */
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

static void nametable_frame_counts_what_finds_no_room(void **state)
{
	const struct flight *flight = *state;

	for (uint32_t i = 1; i < FLIGHT_FRAME_CNT; i++)
		assert_int_equal(nametable_frame("a.py", "f", i), i);
	assert_int_equal(nametable_frame("a.py", "f", FLIGHT_FRAME_CNT), 0);
	assert_int_equal(flight->drops.frames, 1);
	assert_int_equal(nametable_frame("a.py", "f", 7), 7);
}

static uint32_t label(uint32_t i)
{
	char text[32];

	return nametable_label(text, (size_t)snprintf(text, sizeof(text), "sample %u", i));
}

static void nametable_label_leaves_room_for_functions(void **state)
{
	const struct flight *flight = *state;
	uint32_t frame;

	for (uint32_t i = 1; i < FLIGHT_STRING_CNT / 2; i++)
		assert_int_equal(label(i), i);
	for (uint32_t i = 0; i < 2 * FLIGHT_STRING_CNT; i++)
		assert_int_equal(label(FLIGHT_STRING_CNT + i), 0);
	assert_int_equal(flight->drops.strings, 2 * FLIGHT_STRING_CNT);
	assert_int_equal(label(7), 7);
	frame = nametable_frame("slow.py", "slow_thing", 51);
	assert_int_equal(frame, 1);
	assert_int_equal(flight->frames[frame].file, FLIGHT_STRING_CNT / 2);
	assert_int_equal(flight->frames[frame].name, FLIGHT_STRING_CNT / 2 + 1);
	assert_int_equal(flight->drops.frames, 0);
}

static void nametable_label_leaves_text_for_functions(void **state)
{
	char text[FLIGHT_STRING_MAX];
	uint32_t id = 1;

	(void)state;
	memset(text, 'x', sizeof(text));
	for (uint32_t i = 0; id != 0; i++) {
		memcpy(text, &i, sizeof(i));
		id = nametable_label(text, sizeof(text));
		assert_true(i <= FLIGHT_TEXT_BYTES / 2 / sizeof(text));
	}
	assert_int_not_equal(nametable_frame("slow.py", "slow_thing", 51), 0);
}

static const char *text_of(const struct flight *flight, uint32_t id)
{
	static char text[FLIGHT_STRING_MAX + 1];
	const struct flight_string *string = &flight->strings[id];

	assert_true(id != 0 && string->len <= FLIGHT_STRING_MAX);
	memcpy(text, &flight->text[string->off], string->len);
	text[string->len] = '\0';
	return text;
}

/* As kernels that differ in the last template argument. */
static void nametable_string_distinguishes_long_names_with_one_beginning(void **state)
{
	const struct flight *flight = *state;
	char text[900];
	uint32_t half, bfloat, longest;

	memset(text, 'x', sizeof(text));
	longest = nametable_string(text, FLIGHT_STRING_MAX);
	assert_int_equal(strspn(text_of(flight, longest), "x"), FLIGHT_STRING_MAX);
	half = nametable_string(text, sizeof(text));
	text[sizeof(text) - 1] = 'y';
	bfloat = nametable_string(text, sizeof(text));
	assert_int_not_equal(half, bfloat);
	assert_int_equal(nametable_string(text, sizeof(text)), bfloat);
	assert_int_equal(strlen(text_of(flight, half)), FLIGHT_STRING_MAX);
	assert_int_equal(strcspn(text_of(flight, half), "~"), FLIGHT_STRING_MAX - 17);
	assert_memory_equal(text_of(flight, half), text, FLIGHT_STRING_MAX - 17);

	for (size_t i = 0; i < sizeof(text) / 3 * 3; i++) /* a character of three bytes */
		text[i] = "\xe2\x82\xac"[i % 3];
	assert_int_equal(strcspn(text_of(flight, nametable_string(text, sizeof(text))), "~") % 3,
			 0);
}

/* Two functions on the same line of two files whose names find no room are not merged. */
static void nametable_frame_is_none_without_its_names(void **state)
{
	const struct flight *flight = *state;
	char text[32];

	assert_int_equal(nametable_frame("known.py", "known", 51), 1);
	for (uint32_t i = 3; i < FLIGHT_STRING_CNT; i++)
		(void)nametable_string(text, (size_t)snprintf(text, sizeof(text), "name %u", i));
	assert_int_equal(flight->string_cnt, FLIGHT_STRING_CNT);
	assert_int_equal(nametable_frame("slow.py", "known", 51), 0);
	assert_int_equal(nametable_frame("known.py", "slow_thing", 51), 0);
	assert_int_equal(nametable_frame("fine.py", "fine_thing", 51), 0);
	assert_int_equal(flight->drops.frames, 3);
	assert_int_equal(nametable_frame("known.py", "known", 51), 1);
}

enum { DEEP = 41 };

/* A stack, the innermost frame first, that goes one of two ways at each depth. */
static uint32_t deep_stack(uint64_t ways)
{
	uint32_t frames[DEEP];

	for (size_t i = 0; i < DEEP; i++)
		frames[DEEP - 1 - i] = i == 0 ? 1 : 2 + (uint32_t)(ways >> i & 1);
	return nametable_stack(frames, DEEP);
}

static void nametable_stack_is_the_path_of_its_frames(void **state)
{
	const struct flight *flight = *state;
	uint32_t node = deep_stack(0x5555), next;

	assert_int_equal(node, DEEP);
	assert_int_equal(deep_stack(0x5555), node);
	next = nametable_stack((const uint32_t[]){ 9, 1 }, 2);
	assert_int_equal(next, DEEP + 1);
	assert_int_equal(flight->nodes[next].frame, 9);
	assert_int_equal(flight->nodes[next].parent, 1);
	assert_int_equal(nametable_stack(NULL, 0), 0);
}

/* No stack gets the id of its caller's, and a new function still finds room. */
static void nametable_stack_of_a_wild_recursion_leaves_room(void **state)
{
	const struct flight *flight = *state;
	uint32_t lost = 0, node, frames[2] = { 4, 1 };
	uint64_t ways = 1;

	for (uint32_t i = 0; i < 100000; i++) {
		ways = ways * 6364136223846793005u + 1442695040888963407u;
		if (deep_stack(ways >> 20) == 0)
			lost++;
		else
			assert_int_equal(flight->nodes[deep_stack(ways >> 20)].frame,
					 2 + (ways >> 60 & 1));
	}
	assert_true(lost > 1000);
	assert_int_equal(flight->drops.nodes, lost);
	assert_true(flight->node_cnt < FLIGHT_NODE_CNT);
	node = nametable_stack(frames, 2);
	assert_int_not_equal(node, 0);
	assert_int_equal(flight->nodes[node].frame, 4);
}

static void nametable_stack_of_a_full_table_is_none(void **state)
{
	const struct flight *flight = *state;

	for (uint32_t i = 1; i < FLIGHT_NODE_CNT; i++)
		assert_int_equal(nametable_stack(&i, 1), i);
	assert_int_equal(nametable_stack((const uint32_t[]){ 7, 7 }, 2), 0);
	assert_int_equal(flight->drops.nodes, 1);
	assert_int_equal(nametable_stack(&(uint32_t){ 7 }, 1), 7);
}

/* The memory is shared: values written by another process must not redirect the agent's writes. */
static void counts_that_another_changed_are_not_believed(void **state)
{
	static const uint32_t wrong[] = { 0, 5, FLIGHT_FRAME_CNT, FLIGHT_NODE_CNT, UINT32_MAX };
	struct flight *flight = *state;

	for (uint32_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		atomic_store(&flight->frame_cnt, wrong[i]);
		atomic_store(&flight->node_cnt, wrong[i]);
		assert_int_equal(nametable_frame("train.py", "run", i), i + 1);
		assert_int_equal(nametable_stack(&(uint32_t){ i + 1 }, 1), i + 1);
		assert_int_equal(flight->frame_cnt, i + 2);
		assert_int_equal(flight->node_cnt, i + 2);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(nametable_frame_gives_one_id_to_several_threads,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(counts_that_another_changed_are_not_believed,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(nametable_frame_counts_what_finds_no_room, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(nametable_label_leaves_room_for_functions, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(nametable_label_leaves_text_for_functions, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(
			nametable_string_distinguishes_long_names_with_one_beginning, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(nametable_frame_is_none_without_its_names, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(nametable_stack_is_the_path_of_its_frames, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(nametable_stack_of_a_wild_recursion_leaves_room,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(nametable_stack_of_a_full_table_is_none, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
