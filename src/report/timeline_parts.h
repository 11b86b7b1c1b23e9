/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the timeline share: slices, the tracks they lie on, and the
 * writer of trace events. Not for other files.
 */
#pragma once

#include "report/timeline.h"

/* Ids of threads are numbers of rows, other ones in each process. */
#define PID_TIDS 10000u
/* Rows of a track: slices that overlap and don't nest lie one below the other. */
#define ROW_MAX 16u

/* --- slices --- */

enum slice_kind {
	SLICE_ITERATION, /* number: which one; what: 1 when counted from the oldest mark left */
	SLICE_LOADER,
	SLICE_OPTIMIZER, /* number: which of them */
	SLICE_GC,	 /* number: generation */
	SLICE_FRAME,	 /* what: frame */
	SLICE_SYSCALL,	 /* number: of the system call */
	SLICE_GIL_WAIT,	 /* number: the thread that had it, 0 unknown */
	SLICE_TRUNCATED, /* stands for the frames outside of those that were looked at */
	SLICE_OPERATOR,	 /* what: string; so for the three below */
	SLICE_ANNOTATION,
	SLICE_C_CALL,
	SLICE_COLLECTIVE, /* number: index of the rank's collective */
};

struct slice {
	int64_t start_ns, end_ns; /* the rank's clock */
	int64_t number;
	int64_t cpu_ns; /* used, as the samples say; -1 unknown */
	uint32_t what;
	uint32_t sample_cnt;
	uint32_t order; /* of slices with one interval the higher one is inside */
	uint8_t kind;	/* enum slice_kind */
	bool open;	/* had not ended when the recorder was read */
};

typedef VEC(struct slice) slice_vec;

/* --- one rank --- */

/* A collective: three records in one. */
struct comm {
	int64_t start_ns, dur_ns, bytes, seq; /* -1: unknown */
	uint32_t group_size;		      /* 0: unknown */
	uint32_t name, group, what;	      /* strings */
	uint32_t turn, member_cnt;	      /* it was the turn-th to come of so many; 0: alone */
};

typedef VEC(struct comm) comm_vec;
typedef VEC(uint32_t) tid_vec;

struct rank_view {
	const struct flightlog *log;
	comm_vec comms;
	struct align_event *events;   /* of comms, in their order */
	int64_t first_ns, last_ns;    /* of its records, on its clock */
	int64_t from_ns;	      /* what ended before is left out */
	struct timeline_rank *result; /* the clock; counts */
};

/* Each appends the slices of one track. Returns 0 or -ENOMEM. */
_must_check_ int timeline_marks(const struct rank_view *view, slice_vec *ret);
_must_check_ int timeline_samples(const struct rank_view *view, uint32_t tid, slice_vec *ret);
_must_check_ int timeline_lane(const struct flightlog_lane *lane, slice_vec *ret);
_must_check_ int timeline_comms(const struct rank_view *view, slice_vec *ret);

/* The threads that were sampled, 64 at most: the one that trains first, others by id. */
_must_check_ int timeline_threads(const struct flightlog *log, tid_vec *ret);

/* Collects the collectives of view->log by start, and what align.h needs of them. */
_must_check_ int timeline_collect_comms(struct rank_view *view);

/*
 * Sets the turn of each collective among its members, by their starts. Collectives
 * that ended before from_ns have none. instance_cnt: as align_match() says.
 */
_must_check_ int timeline_take_turns(struct rank_view *views, size_t cnt, uint32_t instance_cnt);

/* --- the writer --- */

/* Trace events, one a line. out remembers its failures. */
struct writer {
	FILE *out;
	bool comma;	 /* an event was written */
	int64_t zero_ns; /* moment 0 of the trace, on the reference's clock */
};

/* A track of a process: rows first_tid, first_tid + 1, ... */
struct place {
	struct writer *writer;
	struct rank_view *view;
	uint32_t pid, first_tid;
	char name[64];
};

/* Text as a JSON string. What is no UTF-8 becomes U+FFFD. */
void writer_text(struct writer *w, const char *text);

/* Metadata of a process (tid 0) or a thread: ph "M" with args {key: text} or {key: number}. */
void writer_name(struct writer *w, const char *event, uint32_t pid, uint32_t tid, const char *key,
		 const char *text);
void writer_index(struct writer *w, const char *event, uint32_t pid, uint32_t tid, int64_t index);

/* The beginning of an event at time_ns of the rank's clock; the caller goes on after ts. */
void writer_begin(struct place *to, char phase, uint32_t tid, int64_t time_ns);

/* Sorts slices and writes them, each row properly nested, outer ones first. */
_must_check_ int timeline_put(struct place *to, slice_vec *slices);

/* The curves: what the kernel counted of the training thread, as rates. */
void timeline_counters(struct place *to);
