/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The collectives of one worker, in order, with what the worker did before each:
 * the material from which localize finds who came late and why.
 * Source: docs/method.md, "Who came late, and why".
 */
#pragma once

#include "summarize/critpath.h"

#define COLLECTIVES_MAX 8192u /* per window; the latest are kept, the others counted */
#define LEAD_SHARES_MAX 24u   /* functions listed per collective; the others are summed */

/* "send" and "recv" by their arguments (may be NULL). */
bool collective_is_message(const struct trace *trace, const struct event_args *args);

/* Index of a function (node, class) in the fingerprint, FRAME_NONE when not listed. */
struct function_index {
	struct nodemap map;
};

uint32_t function_index_get(const struct function_index *index, uint32_t node, uint8_t class);

struct collectives {
	VEC(struct fp_collective) list;
	VEC(struct fp_share) shares;
	uint64_t dropped;
};

/* One stretch of a timeline in which one function (FRAME_NONE: one not listed) ran. */
struct stretch {
	int64_t start_ns, end_ns;
	uint32_t function;
};

/* A timeline. Neighbors of one function are one stretch, so there are few. */
typedef VEC(struct stretch) stretches;

/* Appends [start, end), which begins where the line ended. Returns 0 or -ENOMEM. */
_must_check_ int stretches_add(stretches *line, uint32_t function, int64_t start_ns,
			       int64_t end_ns);

/*
 * execs[exec_cnt] sorted by start, those of CLASS_COMM are taken; path is the critical
 * path, host what the training thread did. Point-to-point transfers and groups of one are
 * left out: nobody waits there together. Returns 0 or -ENOMEM; on success ret must be
 * freed by collectives_done().
 */
_must_check_ int collectives_find(const struct trace *trace, const struct window *window,
				  const struct crit_exec *execs, size_t exec_cnt,
				  const stretches *path, const stretches *host,
				  struct collectives *ret);
void collectives_done(struct collectives *collectives);
