/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The golden file is tests/golden/report/timeline.trace.json; PERFTRACKER_UPDATE_GOLDEN=1
 * writes it anew. "timeline_test --write FOLDER" writes the logs behind it as rank0.flight
 * and rank1.flight, for the tests of the program.
 */
#include "report/timeline/timeline.h"

#include "base/test_alloc.h"
#include "report/timeline/timeline_parts.h"

#include <errno.h>
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>

#include "report/timeline/test_logs.h"
/* clang-format on */

#define LOADER 101u

/* --- logs by hand --- */

/* A function below a stack; returns the node. */
static uint32_t add_node(struct flightlog *log, uint32_t parent, const char *file, const char *name)
{
	uint32_t file_idx = add_string(log, file), name_idx = add_string(log, name);
	struct flight_frame frame = { file_idx, name_idx, 10, 0 };

	assert_int_equal(vec_push(&log->frames, frame), 0);
	assert_int_equal(vec_push(&log->nodes,
				  (struct flight_node){ parent, (uint32_t)log->frames.cnt - 1 }),
			 0);
	return (uint32_t)log->nodes.cnt - 1;
}

static void add_sample(struct flightlog *log, int64_t time_ns, uint32_t tid, uint32_t node,
		       uint16_t detail)
{
	add(&log->samples, time_ns, FLIGHT_SAMPLE, 5 * MS, (uint64_t)tid << 32 | node, detail);
}

static void add_comm(struct flightlog *log, int64_t start_ns, int64_t end_ns, int64_t seq,
		     const char *group)
{
	record_vec *to = &log->lanes.data[0].records;

	add(to, start_ns, FLIGHT_COLLECTIVE, end_ns - start_ns, add_string(log, "nccl:all_reduce"),
	    0);
	add(to, start_ns, FLIGHT_COLLECTIVE_ARGS, 4096, (uint64_t)seq, 0);
	add(to, start_ns, FLIGHT_COLLECTIVE_GROUP, INT64_C(2) << 32 | add_string(log, group),
	    add_string(log, "allreduce"), 0);
}

/* Iteration i: 100 ms; a batch, forward, a collective that ends at 80 ms, a step. */
static void add_iteration(struct flightlog *log, int64_t at_ns, int i, int64_t arrives_ns,
			  const uint32_t nodes[3])
{
	record_vec *window = &log->lanes.data[0].window;

	add(&log->marks, at_ns, MARK_DATALOADER, 0, 0, 1);
	add(&log->marks, at_ns + 10 * MS, MARK_DATALOADER_END, 10 * MS, 0, 1);
	add(&log->marks, at_ns + 85 * MS, MARK_OPTIMIZER_BEGIN, 0, 0, 1);
	add(&log->marks, at_ns + 95 * MS, MARK_OPTIMIZER, 0, 0, 1);
	add_sample(log, at_ns + 5 * MS, TRAINING, nodes[1],
		   FLIGHT_SAMPLE_SYSCALL | SYS_nanosleep << 4);
	add_sample(log, at_ns + 5 * MS, LOADER, nodes[2], FLIGHT_SAMPLE_GIL_WAIT);
	add_sample(log, at_ns + 55 * MS, TRAINING, nodes[2], 0);
	add(&log->samples, at_ns + 55 * MS, FLIGHT_CPU, i * 50 * MS, (uint64_t)i * MS, 0);
	add(&log->samples, at_ns + 55 * MS, FLIGHT_SWITCHES, 7 * i, (uint64_t)i, 0);
	add(window, at_ns + 20 * MS, FLIGHT_OPERATOR, 5 * MS, add_string(log, "aten::mm"), 0);
	add(window, at_ns + 15 * MS, FLIGHT_ANNOTATION, 30 * MS, add_string(log, "forward"), 0);
	add_comm(log, at_ns + arrives_ns, at_ns + 80 * MS, i, "default_pg");
}

/* Two ranks; the clock of rank 1 is 5 s ahead, and it comes late to every collective. */
static void make_pair(struct flightlog logs[2])
{
	for (int r = 0; r < 2; r++) {
		int64_t begin_ns = 2000 * MS + r * 5 * NSEC_PER_SEC;
		uint32_t nodes[3];

		log_init(&logs[r], r);
		nodes[0] = add_node(&logs[r], 0, "train.py", "main");
		nodes[1] = add_node(&logs[r], nodes[0], "loader.py", "Loader.\"fetch\"\n");
		nodes[2] = add_node(&logs[r], nodes[0], "model.py", "forward");
		for (int i = 0; i < 4; i++)
			add_iteration(&logs[r], begin_ns + i * 100 * MS, i, (40 + 30 * r) * MS,
				      nodes);
		add(&logs[r].marks, begin_ns + 400 * MS, MARK_DATALOADER, 0, 0, 1);
		add(&logs[r].marks, begin_ns + 420 * MS, MARK_GC, 8 * MS, 0, 2);
	}
	logs[1].drops.late = 3;
	logs[1].sources[FLIGHT_SOURCE_GIL].state = FLIGHT_ABSENT;
	memcpy(logs[1].sources[FLIGHT_SOURCE_GIL].why, "no \"GIL\"", 9);
}

static void logs_done(struct flightlog *logs, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++)
		flightlog_done(&logs[i]);
}

/* --- rules of the format, on whatever was printed --- */

static int64_t ns_of(const json_t *event, const char *key)
{
	return (int64_t)(json_number_value(json_object_get(event, key)) * 1000 + 0.5);
}

/* Quadratic on purpose: of two slices of a thread one is in the other, or they don't touch. */
static void assert_nested(const json_t *events)
{
	for (size_t i = 0; i < json_array_size(events); i++) {
		const json_t *a = json_array_get(events, i);

		for (size_t k = 0; text_of(a, "ph")[0] == 'X' && k < i; k++) {
			const json_t *b = json_array_get(events, k);
			int64_t a0 = ns_of(a, "ts"), a1 = a0 + ns_of(a, "dur");
			int64_t b0 = ns_of(b, "ts"), b1 = b0 + ns_of(b, "dur");

			if (text_of(b, "ph")[0] != 'X' ||
			    number_of(a, "tid") != number_of(b, "tid"))
				continue;
			assert_true(b0 <= a0);
			assert_true(a0 >= b1 || a1 <= b1);
		}
	}
}

/* Each id: one s, then t, then one f, not going back in time. */
static void assert_flows(const json_t *events, size_t expected)
{
	size_t begun = 0, ended = 0;

	for (size_t i = 0; i < json_array_size(events); i++) {
		char phase = text_of(json_array_get(events, i), "ph")[0];

		begun += phase == 's';
		ended += phase == 'f';
	}
	assert_int_equal(begun, expected);
	assert_int_equal(ended, expected);
}

/* --- tests --- */

static char *read_golden(const char *path)
{
	FILE *file = fopen(path, "re");
	char *text = calloc(1, 1 << 20);

	assert_non_null(file);
	assert_non_null(text);
	(void)fread(text, 1, (1 << 20) - 1, file);
	(void)fclose(file);
	return text;
}

static void two_ranks_are_as_in_the_golden_file(void **state)
{
	static const char path[] = GOLDEN_DIR "/timeline.trace.json";
	struct timeline_rank ranks[2];
	struct flightlog logs[2];
	char *text, *expected;

	(void)state;
	make_pair(logs);
	text = print(logs, 2, 0, ranks);
	if (getenv("PERFTRACKER_UPDATE_GOLDEN") != NULL) {
		FILE *file = fopen(path, "we");

		assert_non_null(file);
		(void)fputs(text, file);
		(void)fclose(file);
	}
	expected = read_golden(path);
	assert_string_equal(text, expected);
	free(expected);
	free(text);
	logs_done(logs, 2);
}

static void clocks_are_one_after_alignment(void **state)
{
	struct timeline_rank ranks[2];
	struct flightlog logs[2];
	const json_t *events, *a, *b;
	json_t *root;
	char *text;

	(void)state;
	make_pair(logs);
	text = print(logs, 2, 0, ranks);
	root = parse(text);
	events = json_object_get(root, "traceEvents");
	assert_int_equal(ranks[1].clock.source, ALIGN_COLLECTIVES);
	assert_int_equal(ranks[1].clock.offset_ns, -5 * NSEC_PER_SEC);
	a = find(events, "nccl:all_reduce", 0);
	b = find(events, "nccl:all_reduce", 4);
	assert_int_equal(ns_of(a, "ts") + ns_of(a, "dur"), 80 * MS);
	assert_int_equal(ns_of(b, "ts") + ns_of(b, "dur"), 80 * MS);
	assert_int_equal(number_of(json_object_get(a, "args"), "came"), 1);
	assert_int_equal(number_of(json_object_get(b, "args"), "came"), 2);
	assert_nested(events);
	assert_flows(events, 4);
	json_decref(root);
	free(text);
	logs_done(logs, 2);
}

static void the_last_tenth_of_a_second_is_cut_out(void **state)
{
	struct timeline_rank ranks[2];
	struct flightlog logs[2];
	const json_t *events;
	json_t *root;
	char *text;

	(void)state;
	make_pair(logs);
	text = print(logs, 2, 100 * MS, ranks);
	root = parse(text);
	events = json_object_get(root, "traceEvents");
	assert_null(find(events, "iteration 3", 0));
	assert_non_null(find(events, "iteration 4", 1));
	assert_int_equal(ns_of(find(events, "iteration 4", 0), "ts"), 0);
	assert_string_equal(
		text_of(json_object_get(find(events, "iteration 4", 0), "args"), "start"),
		"before this picture");
	assert_nested(events);
	assert_flows(events, 1);
	json_decref(root);
	free(text);
	logs_done(logs, 2);
}

static void an_unfinished_slice_is_marked(void **state)
{
	struct timeline_rank ranks[2];
	struct flightlog logs[2];
	const json_t *events, *loader;
	json_t *root;
	char *text;

	(void)state;
	make_pair(logs);
	text = print(logs, 2, 0, ranks);
	root = parse(text);
	events = json_object_get(root, "traceEvents");
	loader = find(events, "dataloader.next", 4);
	assert_int_equal(ns_of(loader, "ts"), 400 * MS);
	assert_string_equal(text_of(json_object_get(loader, "args"), "end"), "not seen");
	json_decref(root);
	free(text);
	logs_done(logs, 2);
}

static void samples_in_a_row_are_one_slice(void **state)
{
	struct rank_view view = { .last_ns = 1000 * MS };
	struct flightlog log;
	slice_vec slices = { 0 };
	uint32_t outer, inner;

	(void)state;
	log_init(&log, 0);
	outer = add_node(&log, 0, "a.py", "outer");
	inner = add_node(&log, outer, "a.py", "inner");
	for (int i = 0; i < 10; i++)
		add_sample(&log, i * 10 * MS, TRAINING, i >= 3 && i < 6 ? inner : outer, 0);
	add_sample(&log, 900 * MS, TRAINING, outer, 0);
	view.log = &log;
	assert_int_equal(timeline_samples(&view, TRAINING, &slices), 0);
	assert_int_equal(slices.cnt, 3);
	assert_int_equal(slices.data[0].start_ns, 30 * MS); /* inner */
	assert_int_equal(slices.data[0].end_ns, 60 * MS);
	assert_int_equal(slices.data[0].sample_cnt, 3);
	assert_int_equal(slices.data[0].cpu_ns, 15 * MS);
	assert_int_equal(slices.data[1].start_ns, 0); /* outer, until the last sample */
	assert_int_equal(slices.data[1].end_ns, 150 * MS);
	assert_int_equal(slices.data[2].start_ns, 900 * MS);
	vec_done(&slices);
	flightlog_done(&log);
}

/* Random intervals: nothing is lost but what is counted, and all rows nest. */
static void intervals_that_overlap_lie_in_rows(void **state)
{
	struct timeline_rank rank;
	struct flightlog log;
	uint64_t random = 1;
	size_t cnt = 0;
	json_t *root;
	char *text;

	(void)state;
	log_init(&log, 0);
	add_string(&log, "op");
	for (int i = 0; i < 400; i++) {
		int64_t start_ns, dur_ns;

		random = random * 6364136223846793005u + 1442695040888963407u;
		start_ns = (int64_t)(random >> 40) % 1000;
		dur_ns = (int64_t)(random >> 20) % 100;
		add(&log.lanes.data[0].records, start_ns, FLIGHT_OPERATOR, dur_ns, 1, 0);
	}
	text = print(&log, 1, 0, &rank);
	root = parse(text);
	for (size_t i = 0; i < json_array_size(json_object_get(root, "traceEvents")); i++)
		cnt += text_of(json_array_get(json_object_get(root, "traceEvents"), i), "ph")[0] ==
		       'X';
	assert_int_equal(cnt, rank.slice_cnt);
	assert_int_equal(cnt + rank.omitted_cnt, 400);
	assert_true(rank.slice_cnt > 100);
	assert_nested(json_object_get(root, "traceEvents"));
	json_decref(root);
	free(text);
	flightlog_done(&log);
}

static void add_nccl(struct flightlog *log, int64_t start_ns, int64_t end_ns)
{
	record_vec *to = &log->lanes.data[0].records;
	uint32_t ring = add_string(log, "RING"), float32 = add_string(log, "ncclFloat32");
	uint32_t group = add_string(log, "dp 0123");

	add(to, start_ns, FLIGHT_COLLECTIVE, end_ns - start_ns, add_string(log, "ncclAllReduce"),
	    0);
	add(to, start_ns, FLIGHT_COLLECTIVE_ARGS, 4096, 7, 0);
	add(to, start_ns, FLIGHT_COLLECTIVE_GROUP, INT64_C(2) << 32 | group,
	    add_string(log, "all_reduce"), 0);
	add(to, start_ns, FLIGHT_COLLECTIVE_HOW, (int64_t)float32 << 32 | ring, 0, 16 << 8);
	add(to, start_ns, FLIGHT_NETWORK, 9 * MS, add_string(log, "ncclAllReduce"), 4);
	add(to, start_ns, FLIGHT_COLLECTIVE_ARGS, 8192, 7, 0);
	add(to, start_ns, FLIGHT_COLLECTIVE_GROUP, INT64_C(2) << 32 | group, 0, 0);
	add(to, start_ns, FLIGHT_NETWORK_SEND, flight_us_pair(11, 22),
	    (uint64_t)flight_us_pair(33, 0), 0);
	add(to, start_ns, FLIGHT_NETWORK_RECV, flight_us_pair(44, 55),
	    (uint64_t)flight_us_pair(66, 0), 0);
}

/* No arrow joins them, and no clock is set by them. */
static void events_of_nccl_are_beside_the_collectives(void **state)
{
	const json_t *events, *queued, *args;
	struct timeline_rank ranks[2];
	struct flightlog logs[2];
	json_t *root;
	char *text;

	(void)state;
	for (int r = 0; r < 2; r++) {
		log_init(&logs[r], r);
		add_nccl(&logs[r], 2000 * MS, (2001 + r) * MS);
	}
	text = print(logs, 2, 0, ranks);
	root = parse(text);
	events = json_object_get(root, "traceEvents");
	assert_int_equal(ranks[0].slice_cnt, 2);
	assert_flows(events, 0);
	assert_true(ranks[1].clock.source != ALIGN_COLLECTIVES);
	queued = find(events, "ncclAllReduce", 0);
	args = json_object_get(queued, "args");
	assert_string_equal(text_of(queued, "cat"), "nccl");
	assert_int_equal(number_of(args, "bytes"), 4096);
	assert_string_equal(text_of(args, "algorithm"), "RING");
	assert_int_equal(number_of(args, "channels"), 16);
	args = json_object_get(find(events, "ncclAllReduce", 1), "args");
	assert_int_equal(number_of(args, "network_operations"), 4);
	assert_int_equal(number_of(args, "bytes"), 8192);
	assert_int_equal(number_of(args, "send_waits_for_peer_us"), 22);
	assert_int_equal(number_of(args, "recv_waits_for_gpu_us"), 66);
	json_decref(root);
	free(text);
	logs_done(logs, 2);
}

static void absurd_times_are_valid_json(void **state)
{
	struct timeline_rank ranks[2];
	struct flightlog logs[2];
	char *text;

	(void)state;
	make_pair(logs);
	logs[1].wall_ns = 0;
	logs[1].mono_ns = FLIGHT_TIME_MAX_NS;
	add(&logs[1].lanes.data[0].records, FLIGHT_TIME_MAX_NS, FLIGHT_OPERATOR, FLIGHT_TIME_MAX_NS,
	    1, 0);
	add(&logs[1].marks, 0, MARK_GC, FLIGHT_TIME_MAX_NS, 0, 2);
	add(&logs[0].samples, 0, FLIGHT_SWITCHES, INT64_MAX, UINT64_MAX, 0);
	add(&logs[0].samples, 1, FLIGHT_SWITCHES, 0, 1, 0);
	text = print(logs, 2, 0, ranks);
	json_decref(parse(text));
	free(text);
	logs_done(logs, 2);
}

static void hostile_names_are_valid_json(void **state)
{
	static const char *const names[] = { "\"",	 "\\",	      "\x01\x1f\x7f",
					     "\xff\xfe", "</script>", "\xc3\xa9\xf0\x9f\x90\xa2",
					     "",	 "%s%n" };
	struct timeline_rank rank;
	struct flightlog log;
	json_t *root;
	char *text;

	(void)state;
	log_init(&log, 0);
	(void)snprintf(log.host, sizeof(log.host), "\"}]\n\xff");
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		add(&log.lanes.data[0].records, (int64_t)i * 100, FLIGHT_OPERATOR, 50,
		    add_string(&log, names[i]), 0);
	text = print(&log, 1, 0, &rank);
	root = parse(text);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (i != 3 && i != 6) /* no UTF-8; empty */
			assert_non_null(find(json_object_get(root, "traceEvents"), names[i], 0));
	}
	assert_int_equal(rank.slice_cnt, ARRAY_SIZE(names));
	json_decref(root);
	free(text);
	flightlog_done(&log);
}

static void a_file_that_takes_no_more_is_an_error(void **state)
{
	struct timeline_options options = { 0 };
	struct timeline_rank ranks[2];
	FILE *full = fopen("/dev/full", "we");
	struct flightlog logs[2];

	(void)state;
	if (full == NULL)
		skip();
	make_pair(logs);
	assert_int_equal(timeline_write(logs, 2, &options, full, ranks), -EIO);
	(void)fclose(full);
	logs_done(logs, 2);
}

static void every_allocation_failure_is_returned(void **state)
{
	struct timeline_options options = { 0 };
	struct timeline_rank ranks[2];
	FILE *out = fopen("/dev/null", "we");
	struct flightlog logs[2];
	int ret, cnt = 0;

	(void)state;
	assert_non_null(out);
	make_pair(logs);
	add_nccl(&logs[0], 2000 * MS, 2001 * MS);
	add_timed(&logs[0], 2000 * MS);
	do {
		allocations_left = cnt++;
		ret = timeline_write(logs, 2, &options, out, ranks);
		allocations_left = -1;
		assert_true(ret == 0 || ret == -ENOMEM);
	} while (ret != 0);
	assert_true(cnt > 20);
	(void)fclose(out);
	logs_done(logs, 2);
}

static void a_log_without_records_gives_an_empty_trace(void **state)
{
	struct timeline_rank rank;
	struct flightlog log;
	char *text;

	(void)state;
	log_init(&log, -1);
	text = print(&log, 1, 10 * NSEC_PER_SEC, &rank);
	json_decref(parse(text));
	free(text);
	text = print(NULL, 0, 0, NULL);
	json_decref(parse(text));
	free(text);
	flightlog_done(&log);
}

static int write_pair(const char *folder)
{
	struct flightlog logs[2];
	struct err err = { "" };
	char path[4096];
	int ret = 0;

	make_pair(logs);
	for (int r = 0; r < 2 && ret == 0; r++) {
		(void)snprintf(path, sizeof(path), "%s/rank%d.flight", folder, r);
		ret = flightlog_write(&logs[r], path, &err);
	}
	if (ret < 0)
		(void)fprintf(stderr, "%s\n", err.text);
	logs_done(logs, 2);
	return ret < 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_ranks_are_as_in_the_golden_file),
		cmocka_unit_test(clocks_are_one_after_alignment),
		cmocka_unit_test(the_last_tenth_of_a_second_is_cut_out),
		cmocka_unit_test(an_unfinished_slice_is_marked),
		cmocka_unit_test(samples_in_a_row_are_one_slice),
		cmocka_unit_test(intervals_that_overlap_lie_in_rows),
		cmocka_unit_test(events_of_nccl_are_beside_the_collectives),
		cmocka_unit_test(absurd_times_are_valid_json),
		cmocka_unit_test(hostile_names_are_valid_json),
		cmocka_unit_test(a_file_that_takes_no_more_is_an_error),
		cmocka_unit_test(every_allocation_failure_is_returned),
		cmocka_unit_test(a_log_without_records_gives_an_empty_trace),
	};

	if (argc == 3 && strcmp(argv[1], "--write") == 0)
		return write_pair(argv[2]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
