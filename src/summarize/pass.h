/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of one summary, shared by the files that make it: summarize.c (the
 * order of work, functions, identity), tally.c (what each function did), spread.c (how
 * that varied), launchers.c (who launched it) and hoststats.c (what the host says). Not for other folders.
 */
#pragma once

#include "summarize/collectives.h"
#include "summarize/critpath.h"
#include "summarize/summarize.h"
#include "summarize/utilize.h"

/* What is gathered about one (node, class) before it becomes a function. */
struct tally {
	uint32_t node;
	uint8_t class, resource;
	int64_t critical_ns, share_ns, total_ns, thread_ns;
	uint64_t executions;
	double elements, bytes; /* sums */
	uint64_t elements_cnt, bytes_cnt;
	struct utilize_sum sum;
	uint32_t links; /* of a collective: place in pass.links, plus 1; 0: none */
};

/* Links that a collective may have used, in order of preference. */
#define LINK_CNT 4

struct link_sums {
	int64_t critical_ns; /* of all executions */
	struct utilize_sum of[LINK_CNT];
	double moving_ns;	     /* executions in which any link carried something */
	double carried_ns[LINK_CNT]; /* of these, those in which it did from begin to end */
};

/* Of a function whose groups differ, each kind by itself. */
struct reach_sums {
	struct link_sums of[REACH_CNT];
};

/* State of one pass; everything in it is freed at its end. */
struct pass {
	const struct trace *trace;
	const struct summarize_options *options;
	struct window window;
	struct cct cct;
	enum classify_mode mode;
	uint32_t *node_of;    /* by event */
	const uint8_t *facts; /* of names, by string id */
	crit_execs execs;
	struct critpath path;
	VEC(struct tally) tallies;
	VEC(struct reach_sums) links; /* of collectives, until one link is chosen */
	struct idmap reaches;	      /* (string of ranks, size) -> enum reach */
	struct nodemap tally_of;      /* index in tallies */
	struct idmap exec_classes;    /* (kind, name) -> class of device work, CLASS_IDLE: none */
	struct utilize_scratch scratch;
	struct function_index index;
	struct collectives collectives;
	int64_t rest_ns;
};

static inline bool is_device_exec(const struct event *event)
{
	return event->kind == KIND_KERNEL || event->kind == KIND_GPU_MEMOP;
}

/* Durations outside the window can be anything. */
static inline int64_t add_saturated(int64_t a, int64_t b)
{
	int64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

/* What the training thread did, the autograd thread in its place while it waits. */
struct host_line {
	struct hostpath path;
	struct hostwalk *training, *backward;
	struct stand_in stand_in;
	struct host_source source;
};

/* Walks the events again, as often as wished. Returns 0 or -ENOMEM; done is fine after either. */
_must_check_ int host_line_init(struct pass *p, struct host_line *ret);
void host_line_done(struct host_line *line);

/* The function's tally, made when new; NULL: out of memory. */
_must_check_ struct tally *tally_get(struct pass *p, uint32_t node, uint8_t class);

/*
 * From the critical path and the threads' timelines to one tally per (node,
 * class): times, executions, utilization (PerfTracker eq. 2, 4, 5); small ones are
 * folded into their callers. Returns 0 or -ENOMEM.
 */
_must_check_ int tally_all(struct pass *p);

/* Times of functions (columns) in iterations (rows): a row is done before the next begins. */
struct spread {
	double *cells;			       /* NULL: not wanted */
	const struct fp_iteration *iterations; /* in order of time */
	size_t iteration_cnt, function_cnt;
	size_t next; /* first iteration that ends behind the segments so far */
};

/*
 * Fills spread_ns of fp's functions: how unlike the iterations are. Where functions of
 * one class ran at once, the spread is that of the one that held the path, scaled. Windows
 * of one iteration, and products of functions and iterations beyond 4 million, have none.
 * The critical path's segments are given one by one, in time order, between init and end.
 * Returns 0 or -ENOMEM; spread_done() is fine after either.
 */
_must_check_ int spread_init(struct spread *spread, const struct pass *p,
			     const struct fingerprint *fp);
void spread_segment(struct spread *spread, const struct pass *p, const struct crit_segment *seg);
void spread_end(const struct spread *spread, struct fingerprint *fp);
void spread_done(struct spread *spread);

/* Fills launched_by of fp's kernels. Returns 0 or -ENOMEM. */
_must_check_ int launchers_add(struct pass *p, struct fingerprint *fp);

/* Fills fp->host_stats and fp->resources. Returns 0 or -ENOMEM. */
_must_check_ int hoststats_add(struct pass *p, struct fingerprint *fp);
