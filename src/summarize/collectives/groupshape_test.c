/* SPDX-License-Identifier: Apache-2.0 */
#include "summarize/collectives/groupshape.h"

#include "base/test_alloc.h"
#include "summarize/test_window.h"

#include <errno.h>

static void add(const char *kernel, const char *ranks, int size)
{
	uint16_t stream = trace_lane(&trace, LANE_STREAM, 0, 20);
	uint32_t event = trace_event(&trace, KIND_KERNEL, stream, kernel, 0, 10);

	trace_collective(&trace, event, "allreduce", "1", size, -1);
	trace.args[trace.events[event].args - 1].group_ranks = trace_name(&trace, ranks);
}

/* "": the name of the kernel itself. */
static void assert_name(size_t event, const char *expected)
{
	struct groupshapes shapes = { 0 };
	struct str name = { 0 };
	int made;

	assert_int_equal(groupshapes_find(&trace, &shapes), 0);
	made = groupshapes_name(&shapes, &trace, &trace.events[event], &name);
	assert_int_equal(made, expected[0] != '\0');
	assert_string_equal(made ? str_borrow(&name) : "", expected);
	str_done(&name);
	groupshapes_done(&shapes);
}

static void assert_shape(const char *ranks, int size, int ranks_cnt, int stride)
{
	struct groupshape shape;

	assert_true(groupshape_parse(ranks, size, &shape));
	assert_int_equal(shape.size, ranks_cnt);
	assert_int_equal(shape.stride, stride);
}

static void the_shape_of_a_group_is_its_size_and_the_distance_of_its_ranks(void **state)
{
	struct groupshape shape;

	(void)state;
	assert_shape("[0, 1, 2, 3]", 4, 4, 1);
	assert_shape("[5, 13]", 2, 2, 8);
	assert_shape("[0, 2, 3]", 3, 3, 0);
	assert_shape("[0, 8, ..., 56]", 8, 8, 0);
	assert_false(groupshape_parse("", 4, &shape));
	assert_false(groupshape_parse("[3]", 1, &shape));
}

static void a_kernel_of_groups_of_two_shapes_is_two_functions(void **state)
{
	(void)state;
	add("ncclDevKernel_AllReduce(ncclDevComm*)", "[0, 1]", 2);
	add("ncclDevKernel_AllReduce(ncclDevComm*)", "[0, 4, 8]", 3);
	add("ncclDevKernel_AllGather(ncclDevComm*)", "[0, 4, 8]", 3);
	assert_name(0, "ncclDevKernel_AllReduce of 2 ranks");
	assert_name(1, "ncclDevKernel_AllReduce of 3 ranks, 4 apart");
	assert_name(2, "");
}

static void groups_of_one_shape_are_one_function(void **state)
{
	(void)state;
	add("ncclDevKernel_AllReduce", "[0, 4]", 2);
	add("ncclDevKernel_AllReduce", "[8, 12]", 2);
	add("ncclDevKernel_AllReduce", "", 2);
	assert_name(0, "");
	assert_name(2, "");
}

static void without_memory_it_fails(void **state)
{
	struct groupshapes shapes = { 0 };

	(void)state;
	add("ncclDevKernel_AllReduce", "[0, 4]", 2);
	allocations_left = 0;
	assert_int_equal(groupshapes_find(&trace, &shapes), -ENOMEM);
	allocations_left = -1;
	groupshapes_done(&shapes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_shape_of_a_group_is_its_size_and_the_distance_of_its_ranks),
		TEST(a_kernel_of_groups_of_two_shapes_is_two_functions),
		TEST(groups_of_one_shape_are_one_function),
		TEST(without_memory_it_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
