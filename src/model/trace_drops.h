/* SPDX-License-Identifier: Apache-2.0 */
/* What a trace lacks or had to be mended in, counted while it was read; shown in the report. */
#pragma once

#include <stdint.h>

/* X(field, what) */
#define TRACE_DROP_FIRST_LIST(X)                                                              \
	X(unknown_phase, "events of an unknown phase")                                        \
	X(unknown_category, "events of an unknown category")                                  \
	X(missing_dur, "complete events without a duration")                                  \
	X(negative_dur, "negative durations set to 0")                                        \
	X(unmatched_begin, "begin events without an end")                                     \
	X(unmatched_end, "end events without a begin")                                        \
	X(bad_event, "events without a usable time or name")                                  \
	X(bad_value, "values out of range or of a wrong type")                                \
	X(bad_utf8, "names with invalid UTF-8, mended")                                       \
	X(unsupported_overlap, "events dropped for a stated limit")                           \
	X(no_interval, "instants, flows and objects: events without an interval, never kept") \
	X(flight_lost, "records lost on the way out of the worker's rings")                   \
	X(flight_invalid, "records of a worker that made no sense")                           \
	X(flight_late, "samples of stacks that came late")                                    \
	X(flight_unreadable, "samples of stacks that could not be read")                      \
	X(flight_tables, "samples or calls of functions and stacks beyond the recorder's tables")

/* In files of fingerprints since version 6; before, flight_tables counted them all but the last. */
#define TRACE_DROP_LIMIT_LIST(X)                                                          \
	X(flight_names, "uses of names beyond the recorder's table of names")             \
	X(flight_lanes, "records of threads beyond those that the recorder has room for") \
	X(flight_nested, "operators nested deeper than the recorder remembers")           \
	X(flight_threads, "times that a thread was not sampled: there were too many")

#define TRACE_DROP_LIST(X) TRACE_DROP_FIRST_LIST(X) TRACE_DROP_LIMIT_LIST(X)

struct trace_drops {
#define X(field, what) uint64_t field;
	TRACE_DROP_LIST(X)
#undef X
};
