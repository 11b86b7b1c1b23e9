/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/replay/opshapes.h"

#include "base/test_alloc.h"
#include "read/common/input.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

#define MM(ts, dur)                                                                     \
	"{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::mm\",\"tid\":1,\"ts\":" ts   \
	",\"dur\":" dur                                                                 \
	",\"args\":{\"Input Dims\":[[2,3],[3,4]],\"Input type\":[\"float\",\"float\"]," \
	"\"Input Strides\":[[3,1],[4,1]]}}"
#define LAUNCH(ts, id)                                                                    \
	"{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"tid\":1," \
	"\"ts\":" ts ",\"dur\":1,\"args\":{\"correlation\":" id "}}"
#define KERNEL(dur, id)                                                           \
	"{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"gemm\",\"tid\":7,\"ts\":99," \
	"\"dur\":" dur ",\"args\":{\"correlation\":" id "}}"
#define NCCL                                                                               \
	"{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"ncclDevKernel\",\"tid\":7,\"ts\":99," \
	"\"dur\":77,\"args\":{\"Collective name\":\"allreduce\",\"dtype\":\"Float\","      \
	"\"In msg nelems\":10,\"Out msg nelems\":10,\"Group size\":8}}"
#define DOCUMENT(events) \
	"{\"distributedInfo\":{\"rank\":3,\"world_size\":8},\"traceEvents\":[" events "]}"

static int read_text(const char *text, struct opshapes *ret, struct err *err)
{
	struct input *input;
	int error;

	*ret = (struct opshapes){ .rank = -1 };
	error = input_open_memory(text, strlen(text), &input);
	if (error < 0)
		return error;
	error = opshapes_read("t.json", input, ret, err);
	(void)input_free(input);
	return error;
}

static void opshapes_gathers_equal_operators_with_their_times(void **state)
{
	struct opshapes shapes;
	struct err err;

	(void)state;
	assert_int_equal(read_text(DOCUMENT(MM("10", "5") "," MM("30", "9") "," MM("50", "6")),
				   &shapes, &err),
			 0);
	assert_int_equal(shapes.rank, 3);
	assert_int_equal(shapes.world, 8);
	assert_int_equal(shapes.shapes.cnt, 1);
	assert_string_equal(shapes.shapes.data[0].op, "aten::mm");
	assert_string_equal(shapes.shapes.data[0].dims, "[[2, 3], [3, 4]]");
	assert_string_equal(shapes.shapes.data[0].strides, "[[3, 1], [4, 1]]");
	assert_int_equal(shapes.shapes.data[0].us.cnt, 3);
	assert_float_equal(opshape_median_us(&shapes.shapes.data[0]), 6, 0);
	assert_float_equal(opshape_sum_us(&shapes.shapes.data[0]), 20, 0);
	opshapes_done(&shapes);
}

static void opshapes_takes_the_time_of_kernels_where_there_are_some(void **state)
{
	struct opshapes shapes;
	struct err err;

	(void)state;
	assert_int_equal(
		read_text(
			DOCUMENT(KERNEL("40", "5") "," KERNEL("2", "6") "," KERNEL("9", "7") "," MM(
				"10",
				"5") "," LAUNCH("11",
						"5") "," LAUNCH("12",
								"6") "," LAUNCH("60",
										"7") "," NCCL),
			&shapes, &err),
		0);
	assert_true(shapes.has_device);
	assert_int_equal(shapes.shapes.cnt, 2);
	assert_string_equal(shapes.shapes.data[0].op, "allreduce");
	assert_true(shapes.shapes.data[0].collective);
	assert_int_equal(shapes.shapes.data[0].group_size, 8);
	assert_float_equal(opshape_sum_us(&shapes.shapes.data[1]), 42, 0);
	opshapes_done(&shapes);
}

static void opshapes_counts_what_has_no_shapes(void **state)
{
	static const char text[] =
		DOCUMENT("{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::mm\",\"tid\":1,"
			 "\"ts\":1,\"dur\":2,\"args\":{}}");
	struct opshapes shapes;
	struct err err;

	(void)state;
	assert_int_equal(read_text(text, &shapes, &err), 0);
	assert_int_equal(shapes.shapes.cnt, 0);
	assert_int_equal(shapes.shapeless, 1);
	opshapes_done(&shapes);
}

static void opshapes_leaves_out_an_operator_inside_another(void **state)
{
	struct opshapes shapes;
	struct err err;

	(void)state;
	assert_int_equal(read_text(DOCUMENT(MM("10", "50") "," MM("20", "9")), &shapes, &err), 0);
	assert_int_equal(shapes.shapes.data[0].us.cnt, 1);
	assert_float_equal(shapes.shapes.data[0].us.data[0], 50, 0);
	opshapes_done(&shapes);
}

static void opshapes_says_where_a_document_is_wrong(void **state)
{
	static const struct {
		const char *text, *said;
	} cases[] = {
		{ "", "t.json: offset 0: expected a trace of torch.profiler" },
		{ "hello", "t.json: offset 0: expected a JSON document, found 'h'" },
		{ "{\"traceEvents\":[{]}",
		  "t.json: offset 17: expected another bracket, found ']'" },
		{ "{\"traceEvents\":[{\"a\":1}",
		  "offset 23: expected the end of the JSON document" },
		{ "{\"a\":[{}]}", "expected a trace of torch.profiler" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct opshapes shapes;
		struct err err = { "" };

		assert_int_equal(read_text(cases[i].text, &shapes, &err), -EINVAL);
		if (strstr(err.text, cases[i].said) == NULL)
			fail_msg("expected \"%s\" in \"%s\"", cases[i].said, err.text);
		opshapes_done(&shapes);
	}
}

static void opshapes_is_not_misled_by_brackets_in_texts(void **state)
{
	static const char text[] =
		"{\"a\":\"]}\\\"[{\",\"traceEvents\":[{\"name\":\"]}\\\\\"}," MM("1", "2") "]}";
	struct opshapes shapes;
	struct err err;

	(void)state;
	assert_int_equal(read_text(text, &shapes, &err), 0);
	assert_int_equal(shapes.shapes.cnt, 1);
	opshapes_done(&shapes);
}

static void opshapes_survives_each_failed_allocation(void **state)
{
	static const char text[] = DOCUMENT(MM("10", "5") "," KERNEL("40", "5") "," NCCL);
	int error = -ENOMEM;

	(void)state;
	for (int n = 0; error != 0 && n < 2000; n++) {
		struct opshapes shapes;
		struct err err;

		allocations_left = n;
		error = read_text(text, &shapes, &err);
		allocations_left = -1;
		opshapes_done(&shapes);
	}
	assert_int_equal(error, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(opshapes_gathers_equal_operators_with_their_times),
		cmocka_unit_test(opshapes_takes_the_time_of_kernels_where_there_are_some),
		cmocka_unit_test(opshapes_counts_what_has_no_shapes),
		cmocka_unit_test(opshapes_leaves_out_an_operator_inside_another),
		cmocka_unit_test(opshapes_says_where_a_document_is_wrong),
		cmocka_unit_test(opshapes_is_not_misled_by_brackets_in_texts),
		cmocka_unit_test(opshapes_survives_each_failed_allocation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
