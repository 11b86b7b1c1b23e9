/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What flightlog.c (memory of a worker) and flightlog_file.c (files) share: both
 * check the same things of tables and records. Not for other files.
 */
#pragma once

#include "format/flightlog/flightlog.h"

enum flight_ring { FLIGHT_RING_MARKS, FLIGHT_RING_SAMPLES, FLIGHT_RING_LANE };

/* Whether a record of this ring makes sense: kind, times, indices of log's tables. */
bool flightlog_record_ok(const struct flightlog *log, enum flight_ring ring,
			 const struct ring_record *record);

static inline bool flightlog_time_ok(int64_t ns)
{
	return ns >= 0 && ns <= FLIGHT_TIME_MAX_NS;
}

/*
 * Copies text[len] and ends it with NUL: bytes that are no UTF-8 and NULs become
 * U+FFFD, what does not fit ret[size] is cut off at a character. Returns the length.
 */
size_t flightlog_text(char *ret, size_t size, const char *text, size_t len);

/* Adds text[len], mended. Returns 0 or -ENOMEM. */
_must_check_ int flightlog_add_string(struct flightlog *log, const char *text, size_t len);
