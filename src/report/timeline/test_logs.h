/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flight logs by hand, and how tests of the timeline look at what is drawn of them. After
 * <cmocka.h>, <jansson.h> and the headers that these need.
 */
#pragma once

#include "report/timeline/timeline.h"
#include "report/timeline/timeline_parts.h"

#define MS NSEC_PER_MSEC
#define TRAINING 100u

static inline uint32_t add_string(struct flightlog *log, const char *text)
{
	assert_int_equal(vec_push(&log->strings, text), 0);
	return (uint32_t)log->strings.cnt - 1;
}

static inline void add(record_vec *to, int64_t time_ns, uint16_t kind, int64_t value,
		       uint64_t extra, uint16_t detail)
{
	struct ring_record record = { .time_ns = time_ns,
				      .value = value,
				      .seq = (uint32_t)to->cnt + 1,
				      .kind = kind,
				      .detail = detail,
				      .extra = extra };

	assert_int_equal(vec_push(to, record), 0);
}

static inline void log_init(struct flightlog *log, int rank)
{
	flightlog_init(log);
	log->rank = rank;
	log->world_size = 2;
	log->pid = 1000 + (uint32_t)rank;
	log->training_tid = TRAINING;
	log->mono_ns = 1000 * MS;
	log->wall_ns = INT64_C(1700000000) * NSEC_PER_SEC;
	(void)snprintf(log->host, sizeof(log->host), "host%d", rank);
	add_string(log, "");
	assert_int_equal(vec_push(&log->frames, (struct flight_frame){ 0 }), 0);
	assert_int_equal(vec_push(&log->nodes, (struct flight_node){ 0 }), 0);
	assert_int_equal(
		vec_push(&log->lanes, (struct flightlog_lane){ .tid = TRAINING, .name = "python" }),
		0);
}

/* A matrix multiplication, one of groups, a kernel, a collective that stands for three. */
static inline void add_timed(struct flightlog *log, int64_t start_ns)
{
	record_vec *to = &log->lanes.data[0].records;
	uint32_t ring = add_string(log, "RING"), group = add_string(log, "dp 0123");
	uint32_t gemm = add_string(log, "cublasGemmEx");

	add(to, start_ns, FLIGHT_TIMED, 100 * NSEC_PER_USEC, gemm, 0);
	add(to, start_ns, FLIGHT_TIMED_SHAPE, (int64_t)1000 << 32 | 2000, (uint64_t)500 << 32 | 3,
	    14);
	add(to, start_ns + MS, FLIGHT_TIMED, 0, add_string(log, "cublasSgemmGroupedBatched"), 0);
	add(to, start_ns + MS, FLIGHT_TIMED_GROUPS, 8000000, (uint64_t)4 << 32 | 9, 0);
	add(to, start_ns + 2 * MS, FLIGHT_TIMED, MS, add_string(log, "_ZN5model5layerILi4EEEvPf"),
	    0);
	add(to, start_ns + 2 * MS, FLIGHT_CALLS, 640, 8, FLIGHT_CALLS_LAUNCH);
	add(to, start_ns + 3 * MS, FLIGHT_COLLECTIVE_DONE, 2 * MS,
	    add_string(log, "ncclReduceScatter"), 3);
	add(to, start_ns + 3 * MS, FLIGHT_COLLECTIVE_ARGS, 9000, 41, 0);
	add(to, start_ns + 3 * MS, FLIGHT_COLLECTIVE_GROUP, INT64_C(8) << 32 | group,
	    add_string(log, "reduce_scatter"), 0);
	add(to, start_ns + 3 * MS, FLIGHT_COLLECTIVE_HOW, ring, 0, 0);
}

static inline char *print(const struct flightlog *logs, size_t cnt, int64_t last_ns,
			  struct timeline_rank *ret_ranks)
{
	struct timeline_options options = { .last_ns = last_ns };
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(out);
	assert_int_equal(timeline_write(logs, cnt, &options, out, ret_ranks), 0);
	(void)fclose(out);
	return text;
}

static inline int64_t number_of(const json_t *event, const char *key)
{
	return json_integer_value(json_object_get(event, key));
}

static inline const char *text_of(const json_t *event, const char *key)
{
	const char *text = json_string_value(json_object_get(event, key));

	return text != NULL ? text : "";
}

static inline json_t *parse(const char *text)
{
	json_error_t error;
	json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &error);

	if (root == NULL)
		fail_msg("line %d: %s", error.line, error.text);
	return root;
}

static inline const json_t *find(const json_t *events, const char *name, size_t nth)
{
	for (size_t i = 0; i < json_array_size(events); i++) {
		const json_t *event = json_array_get(events, i);

		if (text_of(event, "ph")[0] == 'X' && strcmp(text_of(event, "name"), name) == 0 &&
		    nth-- == 0)
			return event;
	}
	return NULL;
}
