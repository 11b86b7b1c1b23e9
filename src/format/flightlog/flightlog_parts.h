/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks of tables and records shared by flightlog.c (memory of a worker) and flightlog_file.c
 * (files). Private to this folder.
 */
#pragma once

#include "format/flightlog/flightlog.h"

enum flight_ring { FLIGHT_RING_MARKS, FLIGHT_RING_SAMPLES, FLIGHT_RING_LANE };

/* Whether a record of this ring is valid: kind, times, indices into log's tables. */
bool flightlog_record_ok(const struct flightlog *log, enum flight_ring ring,
			 const struct ring_record *record);

static inline bool flightlog_time_ok(int64_t ns)
{
	return ns >= 0 && ns <= FLIGHT_TIME_MAX_NS;
}

/*
 * Copies text[len] and adds a NUL. Invalid UTF-8 bytes and NULs become U+FFFD; text longer than
 * ret[size] is cut at a character. Returns the length.
 */
size_t flightlog_text(char *ret, size_t size, const char *text, size_t len);

/* Adds text[len], with invalid UTF-8 replaced. Returns 0 or -ENOMEM. */
_must_check_ int flightlog_add_string(struct flightlog *log, const char *text, size_t len);
