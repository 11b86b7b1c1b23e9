/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The activity of a thread at every moment: its innermost function, or idle in its innermost
 * context. Events may overlap without nesting: an event that begins shortly before another ends, and
 * outlives it by more, follows it; other children are clipped to their parents. Python
 * frames whose caller is on another thread are placed below the caller. Stretches are produced one
 * at a time and not stored: there are two for each event.
 * Source: PerfTracker section 4.2 (critical path); ARCHITECTURE.md, "Decisions worth knowing" (idle
 * time).
 */
#pragma once

#include "summarize/cct.h"
#include "summarize/classify.h"
#include "summarize/window.h"

/* One stretch of a thread with one activity. */
struct host_segment {
	int64_t start_ns, end_ns;
	uint32_t node;	/* in the calling-context tree; idle stretches have their own nodes */
	uint32_t event; /* the innermost execution; EVENT_NONE when idle */
	uint8_t class;	/* enum event_class; CLASS_IDLE when nothing ran */
	bool waiting;	/* the thread waits for the autograd thread */
};

typedef VEC(struct host_segment) host_segments;

/*
 * Touching stretches in time order: next() returns 1 with a stretch, 0 at the end, or -errno.
 */
struct host_source {
	int (*next)(void *from, struct host_segment *ret);
	void *from;
};

struct hostpath {
	const struct trace *trace;
	const struct window *window;
	const uint16_t *facts; /* by string id: names_facts() */
	struct cct *cct;
	enum classify_mode mode;
	uint32_t *node_of; /* by event: its node; FRAME_NONE if not set */
};

/* A walk over the events of one lane. */
struct hostwalk;

/*
 * Starts a walk whose stretches cover [start, end) of the window; LANE_NONE gives one idle stretch.
 * path must outlive the walk, which sets path->node_of for the lane's events as it passes them. A
 * second walk finds the same nodes. NULL: out of memory.
 */
_must_check_ struct hostwalk *hostwalk_new(struct hostpath *path, uint32_t lane);
struct hostwalk *hostwalk_free(struct hostwalk *walk);

/*
 * Functions of walk's lane may have callers on the lane of callers. That walk then stays ahead and
 * keeps its stretches until they are requested. callers must outlive walk's last step.
 */
void hostwalk_called_from(struct hostwalk *walk, struct hostwalk *callers);

/* The next stretch: as next() of a host_source. O(n) for all of them. */
_must_check_ int hostwalk_next(struct hostwalk *walk, struct host_segment *ret);

/* The walk as a source; the walk remains the caller's. */
struct host_source hostwalk_source(struct hostwalk *walk);
