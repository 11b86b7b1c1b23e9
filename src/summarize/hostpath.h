/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a thread did at every moment: its innermost function, or idle in its
 * innermost context. Traces need not nest, so children are clipped to their
 * parents; Python frames whose caller is on another thread hang below it.
 * The stretches are given out one by one and kept nowhere: there are two of them for
 * each event.
 * Source: PerfTracker section 4.2 (critical path); ARCHITECTURE.md, "Decisions worth
 * knowing" (idle time).
 */
#pragma once

#include "summarize/classify.h"
#include "summarize/funcid.h"
#include "summarize/window.h"

/* One stretch in which the thread did one thing. */
struct host_segment {
	int64_t start_ns, end_ns;
	uint32_t node;	/* in the calling-context tree; idle: a node of its own */
	uint32_t event; /* the innermost execution; EVENT_NONE when idle */
	uint8_t class;	/* enum event_class; CLASS_IDLE when nothing ran */
	bool waiting;	/* the thread waits for the autograd thread */
};

typedef VEC(struct host_segment) host_segments;

/* Stretches that touch, in time order: next() gives one (1), says that all were given (0)
 * or fails (-errno). */
struct host_source {
	int (*next)(void *from, struct host_segment *ret);
	void *from;
};

struct hostpath {
	const struct trace *trace;
	const struct window *window;
	const uint8_t *facts; /* by string id: names_facts() */
	struct cct *cct;
	enum classify_mode mode;
	uint32_t *node_of; /* by event: its node; FRAME_NONE where none was made */
};

/* A walk over the events of one lane. */
struct hostwalk;

/*
 * Starts a walk whose stretches cover [start, end) of the window; LANE_NONE gives one
 * idle stretch. path must outlive the walk, which sets path->node_of for the lane's events
 * as it goes over them. A second walk meets the same nodes. NULL: out of memory.
 */
_must_check_ struct hostwalk *hostwalk_new(struct hostpath *path, uint32_t lane);
struct hostwalk *hostwalk_free(struct hostwalk *walk);

/*
 * Functions of walk's lane may have been called from the lane of callers, which is then
 * never behind: it keeps its stretches until it is asked for them. callers outlives walk's
 * last step.
 */
void hostwalk_called_from(struct hostwalk *walk, struct hostwalk *callers);

/* The next stretch: as next() of a host_source. O(n) for all of them. */
_must_check_ int hostwalk_next(struct hostwalk *walk, struct host_segment *ret);

/* The same as a source; the walk stays the caller's. */
struct host_source hostwalk_source(struct hostwalk *walk);
