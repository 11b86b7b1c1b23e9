/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An observer's copy of a worker's flight recorder (format/shared/recorder.h), validated: every
 * index points into its table, every text is valid UTF-8, every ring is in the order of writing. A
 * log can be saved as a file. The readers of the recorder, trace of a window and timeline, work on
 * it.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "base/vec.h"
#include "format/shared/recorder.h"

#define FLIGHT_SUFFIX ".flight"

/*
 * Latest time and longest duration accepted: with both below, no sum of two times and a duration
 * overflows. The wall clock reaches it in 2043.
 */
#define FLIGHT_TIME_MAX_NS (INT64_C(1) << 61)

typedef VEC(struct ring_record) record_vec;

struct flightlog_lane {
	uint32_t tid;
	char name[16];
	record_vec records; /* recorded always */
	record_vec window;  /* recorded in windows */
	struct ring_tail tail, window_tail;
};

/* Lost records: on the way to the observer, or in the worker. X(field, what). */
#define FLIGHTLOG_DROP_LIST(X)                                   \
	X(overrun, "records overwritten before they were taken") \
	X(torn, "records caught while being written")            \
	X(invalid, "invalid records")                            \
	X(limit, "records beyond the limit of memory")           \
	FLIGHT_DROP_LIST(X)

struct flightlog_drops {
#define X(field, what) uint64_t field;
	FLIGHTLOG_DROP_LIST(X)
#undef X
};

struct flightlog {
	int32_t rank, world_size;
	uint32_t pid, training_tid;
	int64_t mono_ns, wall_ns; /* the same moment on both clocks */
	char host[64];
	struct {
		uint32_t state; /* enum flight_source_state */
		char why[124];
	} sources[FLIGHT_SOURCE_CNT];
	struct flightlog_drops drops;  /* since the worker began, or since the first take */
	struct flightlog_drops before; /* their values after the first take */
	bool begun;		       /* at least one take succeeded */
	size_t record_max;	       /* maximum number of records kept; 0: no limit */
	struct arena arena;	       /* owns the strings */
	VEC(const char *) strings;     /* NUL-terminated; [0] is "" */
	VEC(struct flight_frame) frames;
	VEC(struct flight_node) nodes; /* [0] is the root */
	VEC(struct flightlog_lane) lanes;
	VEC(struct flight_gpu_lane) gpu_lanes;
	uint32_t gpu_name; /* string */
	record_vec marks, samples;
	struct ring_tail marks_tail, samples_tail;
};

void flightlog_init(struct flightlog *log);
void flightlog_done(struct flightlog *log);

/*
 * Maps the recorder behind fd for reading. fd stays open and is the caller's. Checks the size and
 * the seals, so that the worker cannot shrink the memory. Returns 0, -EINVAL or -errno with a line
 * in err. Release it with flight_unmap().
 */
_must_check_ int flight_map(int fd, const struct flight **ret, struct err *err);
void flight_unmap(const struct flight *flight);

/*
 * Reads what is new since the last call: identity, tables, rings. Records out of range are dropped
 * and counted. Work is bounded by the rings' sizes. The first call reads all records still in the
 * rings; records overwritten before it are not counted as lost. with_window: also reads the rings
 * of a window. Returns 0 or -ENOMEM; the log is valid then, but may lack records.
 */
_must_check_ int flightlog_take(struct flightlog *log, const struct flight *flight,
				bool with_window);

/*
 * Saves the log (temporary file, then rename; mode 0600), and reads it back. Every length and index
 * of a file is checked; -EINVAL names file, offset, expected and found. *ret is initialized on
 * success only. Returns 0 or -errno.
 */
_must_check_ int flightlog_write(const struct flightlog *log, const char *path, struct err *err);
_must_check_ int flightlog_read(const char *path, struct flightlog *ret, struct err *err);

/* The same from data[len]; path is for error messages. */
_must_check_ int flightlog_parse(const char *path, const void *data, size_t len,
				 struct flightlog *ret, struct err *err);

/* Whether records[cnt] begin with a collective recorded by the NCCL plugin, not by PyTorch. */
static inline bool flight_is_nccl(const struct ring_record *records, size_t cnt)
{
	return cnt > 3 && records[0].kind == FLIGHT_COLLECTIVE &&
	       records[1].kind == FLIGHT_COLLECTIVE_ARGS &&
	       records[2].kind == FLIGHT_COLLECTIVE_GROUP &&
	       records[3].kind == FLIGHT_COLLECTIVE_HOW;
}

/* The number of records in the log. */
size_t flightlog_record_cnt(const struct flightlog *log);
