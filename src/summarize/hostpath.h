/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a thread did at every moment: its innermost function, or idle in its
 * innermost context. Traces need not nest, so children are clipped to their
 * parents; Python frames whose caller is on another thread hang below it.
 * Source: design.md section 5 (critical path, host functions as leaves).
 */
#pragma once

#include "summarize/classify.h"
#include "summarize/funckey.h"
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

struct hostpath {
	const struct trace *trace;
	const struct window *window;
	struct cct *cct;
	enum classify_mode mode;
	uint32_t *node_of; /* by event: its node; FRAME_NONE where none was made */
};

/*
 * Appends the stretches of a lane over the whole window to out: they touch, and
 * cover [start, end) of the window. Sets path->node_of for the lane's events.
 * Returns 0 or -ENOMEM. O(n).
 */
_must_check_ int hostpath_walk(struct hostpath *path, uint32_t lane, host_segments *out);
