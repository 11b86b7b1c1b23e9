/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers of the kernel's tracepoints and the place of their fields, from tracefs. Where it is not
 * mounted, a child mounts it for itself alone, in a mount namespace of its own, so the host
 * does not change. Source: Documentation/trace/events.rst.
 */
#pragma once

#include "base/base.h"

enum tracepoint_name { TRACEPOINT_SWITCH, TRACEPOINT_WAKING, TRACEPOINT_SIGNAL, TRACEPOINT_CNT };

struct tracepoint {
	uint32_t id; /* 0: unknown */
	/* Offsets in the record: switch: prev_pid, prev_state; waking: pid; signal: pid, sig. */
	uint32_t pid_off, value_off, value_size;
};

struct tracepoints {
	struct tracepoint of[TRACEPOINT_CNT];
};

/* Returns 0, or -errno: none can be read. */
_must_check_ int tracepoints_read(struct tracepoints *ret);

/* text: the file "format" of a tracepoint. Returns 0 or -EINVAL. */
_must_check_ int tracepoints_parse(const char *text, enum tracepoint_name name,
				   struct tracepoint *ret);
