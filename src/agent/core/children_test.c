/* SPDX-License-Identifier: Apache-2.0 */
/* The reading of stacks is played: each look at a child gets the answer of `answer`. */
#include "agent/core/children.h"

#include "agent/core/account.h"
#include "agent/core/stacknodes.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

#define TICK_NS (NSEC_PER_SEC / 500) /* of a window */
#define PLACE 0x1000u		     /* of the child's interpreter, once found */

static struct played {
	int answer;
	uint32_t look_cnt, last_pid, found_cnt; /* found: where the place was not known before */
} played;

int pystack_child(struct pystack_process *child, struct pystack_thread *ret)
{
	played.look_cnt++;
	played.last_pid = child->pid;
	if (played.answer < 0)
		return played.answer;
	played.found_cnt += child->interp == 0;
	child->interp = PLACE;
	*ret = (struct pystack_thread){ .tid = child->pid, .process = *child, .tstate = 1 };
	return 0;
}

size_t pystack_walk(const struct pystack_thread *thread, uintptr_t *codes, size_t cap,
		    bool *truncated, uint32_t *leaf_instr)
{
	assert_int_equal(thread->process.interp, PLACE);
	assert_true(cap > 0 && leaf_instr == NULL);
	*truncated = false;
	codes[0] = 1;
	return 1;
}

int stacknodes_find(const struct pystack_process *process, const uintptr_t *codes, size_t depth,
		    uint32_t *ret)
{
	assert_int_equal(process->interp, PLACE);
	assert_int_equal(codes[0], depth);
	*ret = 7;
	return 0;
}

int account_open_process(_unused_ uint32_t pid, _unused_ const char *name)
{
	return -ENOENT;
}

bool account_call(_unused_ int fd, _unused_ struct account_call *ret)
{
	return false;
}

/* The training thread is in its loader. */
static int open_flight(void **state)
{
	struct flight *flight = aligned_alloc(_Alignof(struct flight), sizeof(*flight));

	assert_non_null(flight);
	memset(flight, 0, sizeof(*flight));
	flight->block.ring[0].kind = MARK_DATALOADER;
	atomic_store(&flight->block.head, 1);
	children_forked();
	played = (struct played){ 0 };
	*state = flight;
	return 0;
}

static int close_flight(void **state)
{
	free(*state);
	return 0;
}

static void look_for(struct flight *flight, int64_t *now_ns, int64_t duration_ns)
{
	for (int64_t end_ns = *now_ns + duration_ns; *now_ns < end_ns; *now_ns += TICK_NS)
		children_look(flight, false, *now_ns);
}

static void a_child_is_looked_at_so_often_and_found_once(void **state)
{
	struct flight *flight = *state;
	int64_t now_ns = NSEC_PER_SEC;

	children_add(11, true);
	look_for(flight, &now_ns, NSEC_PER_SEC);
	assert_int_equal(played.look_cnt, CHILDREN_HZ);
	assert_int_equal(played.found_cnt, 1);
	assert_int_equal(atomic_load(&flight->sample_head), CHILDREN_HZ);
	assert_int_equal(flight->samples[0].extra, UINT64_C(11) << 32 | 7);
}

static void children_are_left_alone_outside_the_loader(void **state)
{
	struct flight *flight = *state;
	int64_t now_ns = NSEC_PER_SEC;

	flight->block.ring[0].kind = MARK_OPTIMIZER;
	children_add(11, true);
	look_for(flight, &now_ns, NSEC_PER_SEC);
	assert_int_equal(played.look_cnt, 0);
}

static void another_child_is_looked_at_in_a_system_call_and_not_in_the_loader(void **state)
{
	struct flight *flight = *state;
	int64_t now_ns = NSEC_PER_SEC;

	children_add(11, true);
	children_add(12, false);
	children_add(11, false); /* it stays the loader's */
	children_look(flight, true, now_ns);
	assert_int_equal(played.last_pid, 11);
	now_ns += NSEC_PER_SEC;
	flight->block.ring[0].kind = MARK_OPTIMIZER;
	children_look(flight, false, now_ns);
	assert_int_equal(played.look_cnt, 1);
	for (int i = 0; i < 5; i++)
		children_look(flight, true, now_ns + i * NSEC_PER_SEC);
	assert_int_equal(played.last_pid, 12);
	assert_int_equal(played.look_cnt, 6);
}

/* The start of an interpreter may take seconds, and its looks are dear. */
static void a_child_that_starts_slowly_is_awaited_by_few_looks(void **state)
{
	struct flight *flight = *state;
	int64_t now_ns = NSEC_PER_SEC;

	children_add(11, true);
	played.answer = -EFAULT;
	look_for(flight, &now_ns, 10 * NSEC_PER_SEC);
	assert_in_range(played.look_cnt, 10, 20);
	played = (struct played){ 0 };
	look_for(flight, &now_ns, 2 * NSEC_PER_SEC);
	assert_in_range(played.look_cnt, CHILDREN_HZ / 2, 2 * CHILDREN_HZ);
	assert_int_equal(played.found_cnt, 1);
}

static void a_child_that_cannot_be_read_is_forgotten(void **state)
{
	static const int ERRORS[] = { -EFAULT, -ENOTSUP, -ESRCH };
	static const uint32_t LOOKS[] = { 32, 1, 1 };
	struct flight *flight = *state;
	int64_t now_ns = NSEC_PER_SEC;

	for (size_t i = 0; i < ARRAY_SIZE(ERRORS); i++) {
		played = (struct played){ .answer = ERRORS[i] };
		children_add(20 + (uint32_t)i, true);
		look_for(flight, &now_ns, 60 * NSEC_PER_SEC);
		assert_int_equal(played.look_cnt, LOOKS[i]);
		assert_int_equal(played.last_pid, 20 + i);
	}
}

/* Another process at the same place of the table: what was found of the one before is not its. */
static void a_new_child_is_found_anew(void **state)
{
	struct flight *flight = *state;
	int64_t now_ns = NSEC_PER_SEC;

	for (uint32_t i = 0; i < CHILDREN_MAX + 1; i++)
		children_add(100 + i, true);
	look_for(flight, &now_ns, NSEC_PER_SEC);
	assert_int_equal(played.found_cnt, CHILDREN_MAX);
	children_add(1000, true);
	look_for(flight, &now_ns, NSEC_PER_SEC);
	assert_int_equal(played.found_cnt, CHILDREN_MAX + 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_flight, close_flight)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_child_is_looked_at_so_often_and_found_once),
		TEST(children_are_left_alone_outside_the_loader),
		TEST(another_child_is_looked_at_in_a_system_call_and_not_in_the_loader),
		TEST(a_child_that_starts_slowly_is_awaited_by_few_looks),
		TEST(a_child_that_cannot_be_read_is_forgotten),
		TEST(a_new_child_is_found_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
