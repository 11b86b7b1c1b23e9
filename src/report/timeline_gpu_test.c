/* SPDX-License-Identifier: Apache-2.0 */
/* What the timeline draws of a GPU: its queues in a window, and what was timed without one. */
#include "report/timeline.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>

#include "report/timeline_testlogs.h"
/* clang-format on */

static void a_gpus_queues_have_tracks_of_their_own(void **state)
{
	const json_t *events, *kernel;
	struct timeline_rank rank;
	struct flightlog log;
	record_vec *to;
	json_t *root;
	char *text;

	(void)state;
	log_init(&log, 0);
	assert_int_equal(vec_push(&log.gpu_lanes, (struct flight_gpu_lane){ 0, 7 }), 0);
	assert_int_equal(
		vec_push(&log.gpu_lanes, (struct flight_gpu_lane){ FLIGHT_GPU_THREAD, 100 }), 0);
	to = &log.lanes.data[0].window;
	add(to, 2000 * MS, FLIGHT_GPU_API, MS,
	    flight_gpu_extra(3, 0, add_string(&log, "cudaLaunchKernel")), 1);
	add(to, 2002 * MS, FLIGHT_GPU_KERNEL, 5 * MS,
	    flight_gpu_extra(3, 0, add_string(&log, "_ZN5model5layerILi4EEEvPf")), FLIGHT_GPU_NODE);
	add(to, 2002 * MS, FLIGHT_GPU_SYNC, 5 * MS,
	    flight_gpu_extra(4, 0, add_string(&log, "Stream Sync")), 0);
	text = print(&log, 1, 0, &rank);
	root = parse(text);
	events = json_object_get(root, "traceEvents");
	assert_int_equal(rank.slice_cnt, 2);
	kernel = find(events, "model::layer", 0);
	assert_string_equal(text_of(kernel, "cat"), "gpu");
	assert_string_equal(text_of(find(events, "cudaLaunchKernel", 0), "cat"), "gpu");
	assert_non_null(strstr(text, "GPU 0, stream 7"));
	assert_non_null(strstr(text, "GPU calls, thread 100"));
	json_decref(root);
	free(text);
	flightlog_done(&log);
}

static void what_was_timed_on_the_gpu_has_a_track(void **state)
{
	const json_t *events, *args;
	struct timeline_rank rank;
	struct flightlog log;
	json_t *root;
	char *text;

	(void)state;
	log_init(&log, 0);
	add_timed(&log, 2000 * MS);
	text = print(&log, 1, 0, &rank);
	root = parse(text);
	events = json_object_get(root, "traceEvents");
	assert_int_equal(rank.slice_cnt, 4);
	assert_non_null(strstr(text, "\"GPU (sampled)\""));
	assert_string_equal(text_of(find(events, "cublasGemmEx", 0), "cat"), "gpu");
	args = json_object_get(find(events, "cublasGemmEx", 0), "args");
	assert_int_equal(number_of(args, "m"), 1000);
	assert_int_equal(number_of(args, "n"), 2000);
	assert_int_equal(number_of(args, "k"), 500);
	assert_int_equal(number_of(args, "matrices"), 3);
	assert_string_equal(text_of(args, "datatype"), "bfloat16");
	assert_int_equal(number_of(args, "mflop"), 6000);
	assert_int_equal(number_of(args, "gflop_per_s"), 60000);
	args = json_object_get(find(events, "cublasSgemmGroupedBatched", 0), "args");
	assert_int_equal(number_of(args, "groups"), 4);
	assert_int_equal(number_of(args, "mflop"), 8);
	assert_null(json_object_get(args, "m"));
	assert_null(json_object_get(args, "gflop_per_s")); /* it took no time */
	assert_null(json_object_get(find(events, "model::layer", 0), "args"));
	args = json_object_get(find(events, "ncclReduceScatter", 0), "args");
	assert_string_equal(text_of(args, "group"), "dp 0123");
	assert_int_equal(number_of(args, "group_size"), 8);
	assert_int_equal(number_of(args, "seq"), 41);
	assert_int_equal(number_of(args, "bytes"), 9000);
	assert_int_equal(number_of(args, "ran_as_one"), 3);
	assert_string_equal(text_of(args, "algorithm"), "RING");
	json_decref(root);
	free(text);
	flightlog_done(&log);
}

/* Records may be missing, and numbers anything. */
static void what_is_left_of_what_was_timed_is_drawn(void **state)
{
	const json_t *events;
	struct timeline_rank rank;
	struct flightlog log;
	record_vec *to;
	json_t *root;
	char *text;

	(void)state;
	log_init(&log, 0);
	to = &log.lanes.data[0].records;
	add(to, 2000 * MS, FLIGHT_TIMED, MS, add_string(&log, "cublasLtMatmul"), 0);
	add(to, 2000 * MS, FLIGHT_TIMED_SHAPE, -1, UINT64_MAX, UINT16_MAX);
	add(to, 2002 * MS, FLIGHT_COLLECTIVE_DONE, MS, add_string(&log, "ncclSendRecv"), 1);
	add(to, 2002 * MS, FLIGHT_COLLECTIVE_ARGS, 1, 1, 0);
	add(to, 2004 * MS, FLIGHT_TIMED, MS, add_string(&log, "cublasSgemm_v2"), 0);
	text = print(&log, 1, 0, &rank);
	root = parse(text);
	events = json_object_get(root, "traceEvents");
	assert_int_equal(rank.slice_cnt, 3);
	assert_null(json_object_get(json_object_get(find(events, "cublasLtMatmul", 0), "args"),
				    "mflop"));
	assert_null(json_object_get(find(events, "ncclSendRecv", 0), "args"));
	assert_null(json_object_get(find(events, "cublasSgemm_v2", 0), "args"));
	json_decref(root);
	free(text);
	flightlog_done(&log);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_gpus_queues_have_tracks_of_their_own),
		cmocka_unit_test(what_was_timed_on_the_gpu_has_a_track),
		cmocka_unit_test(what_is_left_of_what_was_timed_is_drawn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
