/* SPDX-License-Identifier: Apache-2.0 */
/* Gaps and repairs of a trace, counted while it is read; shown in the report. */
#pragma once

#include <stdint.h>

/* X(field, singular, plural) */
#define TRACE_DROP_FIRST_LIST(X)                                                                  \
	X(unknown_phase, "event of an unknown phase", "events of an unknown phase")               \
	X(unknown_category, "event of an unknown category", "events of an unknown category")      \
	X(missing_dur, "complete event without a duration", "complete events without a duration") \
	X(negative_dur, "negative duration set to 0", "negative durations set to 0")              \
	X(unmatched_begin, "begin event without an end", "begin events without an end")           \
	X(unmatched_end, "end event without a begin", "end events without a begin")               \
	X(bad_event, "event without a usable time or name",                                       \
	  "events without a usable time or name")                                                 \
	X(bad_value, "value out of range or of a wrong type",                                     \
	  "values out of range or of a wrong type")                                               \
	X(bad_utf8, "name with invalid UTF-8, replaced", "names with invalid UTF-8, replaced")    \
	X(unsupported_overlap, "event dropped for a stated limit",                                \
	  "events dropped for a stated limit")                                                    \
	X(no_interval, "instant, flow or object: an event without an interval, never kept",       \
	  "instants, flows and objects: events without an interval, never kept")                  \
	X(flight_lost, "record lost: a buffer of the worker was full",                            \
	  "records lost: a buffer of the worker was full")                                        \
	X(flight_invalid, "invalid record of a worker", "invalid records of a worker")            \
	X(flight_late, "stack sample was late", "stack samples were late")                        \
	X(flight_unreadable, "stack sample could not be read", "stack samples could not be read") \
	X(flight_tables, "sample or call of functions and stacks beyond the recorder's tables",   \
	  "samples or calls of functions and stacks beyond the recorder's tables")

/*
 * In fingerprint files since version 6. Earlier versions counted all but the last of these in
 * flight_tables.
 */
#define TRACE_DROP_LIMIT_LIST(X)                                                         \
	X(flight_names, "use of names beyond the recorder's table of names",             \
	  "uses of names beyond the recorder's table of names")                          \
	X(flight_lanes, "record of threads beyond those that the recorder has room for", \
	  "records of threads beyond those that the recorder has room for")              \
	X(flight_nested, "operator nested deeper than the recorder remembers",           \
	  "operators nested deeper than the recorder remembers")                         \
	X(flight_threads, "moment at which a thread was not sampled: too many threads",  \
	  "moments at which a thread was not sampled: too many threads")

#define TRACE_DROP_LIST(X) TRACE_DROP_FIRST_LIST(X) TRACE_DROP_LIMIT_LIST(X)

struct trace_drops {
#define X(field, one, many) uint64_t field;
	TRACE_DROP_LIST(X)
#undef X
};
