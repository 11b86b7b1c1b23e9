/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes parse as a flight log that keeps the invariants of flightlog.h, or return an error. */
#include "format/flightlog/flightlog.h"

#include "format/flightlog/flightlog_parts.h"

#include <stdio.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void check(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "flightlog_fuzz: %s\n", what);
	abort();
}

static void check_tables(const struct flightlog *log)
{
	char valid[3 * FLIGHT_STRING_MAX + 1];

	check(log->strings.cnt > 0 && log->frames.cnt > 0 && log->nodes.cnt > 0, "no entry 0");
	vec_foreach(text, &log->strings) {
		(void)flightlog_text(valid, sizeof(valid), *text, strlen(*text));
		check(strcmp(valid, *text) == 0, "a text with invalid UTF-8");
	}
	vec_foreach(frame, &log->frames)
		check(frame->file < log->strings.cnt && frame->name < log->strings.cnt,
		      "a frame without a name");
	for (uint32_t i = 1; i < log->nodes.cnt; i++)
		check(log->nodes.data[i].parent < i && log->nodes.data[i].frame < log->frames.cnt,
		      "a stack that is its own caller");
	vec_foreach(lane, &log->gpu_lanes)
		check(lane->device >= FLIGHT_GPU_THREAD, "a queue of no device");
	check(log->gpu_name < log->strings.cnt, "a GPU without a name");
}

static void check_records(const struct flightlog *log, const record_vec *records,
			  enum flight_ring ring)
{
	vec_foreach(record, records)
		check(flightlog_record_ok(log, ring, record), "a record that makes no sense");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct flightlog log;
	struct err err;

	if (flightlog_parse("fuzz", data, len, &log, &err) < 0) {
		check(strncmp(err.text, "fuzz", 4) == 0, "an error without a place");
		return 0;
	}
	check_tables(&log);
	check_records(&log, &log.marks, FLIGHT_RING_MARKS);
	check_records(&log, &log.samples, FLIGHT_RING_SAMPLES);
	vec_foreach(lane, &log.lanes) {
		check_records(&log, &lane->records, FLIGHT_RING_LANE);
		check_records(&log, &lane->window, FLIGHT_RING_LANE);
	}
	flightlog_done(&log);
	return 0;
}
