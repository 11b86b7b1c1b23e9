/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The collectives of one worker, in order, with the functions that ran before each. From them
 * localize finds the workers that came late and the reason.
 * Source: docs/method.md, "Late workers and their reasons".
 */
#pragma once

#include "model/collective.h"
#include "summarize/critpath.h"

#define COLLECTIVES_MAX 8192u /* per window; the latest are kept, the others counted */
#define LEAD_SHARES_MAX 24u   /* functions listed per collective; the others are summed */

/* Whether an event of communication with args (may be NULL) is a message: a "send" or "recv". */
bool collective_is_message(const struct trace *trace, const struct event *event,
			   const struct event_args *args);

/* Index of a function (node, class) in the fingerprint, FRAME_NONE when not listed. */
struct function_index {
	struct nodemap map;
};

uint32_t function_index_get(const struct function_index *index, uint32_t node, uint8_t class);

/* The name of an operation, "all_reduce". */
struct collective_operation {
	char text[COLLECTIVE_WORD_MAX];
};

struct collectives {
	VEC(struct fp_collective) list;
	VEC(struct fp_share) shares;
	VEC(struct collective_operation) operations; /* list[].operation is an index + 1 */
	uint64_t dropped;
};

/* One stretch of a timeline in which one function ran (FRAME_NONE: one that is not listed). */
struct stretch {
	int64_t start_ns, end_ns;
	uint32_t function;
};

/* A timeline. Adjacent stretches of one function are merged, so there are few. */
typedef VEC(struct stretch) stretches;

/* Appends [start, end), which begins where the line ended. Returns 0 or -ENOMEM. */
_must_check_ int stretches_add(stretches *line, uint32_t function, int64_t start_ns,
			       int64_t end_ns);

/*
 * execs[exec_cnt] sorted by start; those of CLASS_COMM are used. path: the critical path. host: the
 * training thread's timeline. Point-to-point transfers and groups of one rank are skipped: their
 * ranks do not wait for each other. Returns 0 or -ENOMEM; on success ret must be freed by
 * collectives_done().
 */
_must_check_ int collectives_find(const struct trace *trace, const struct window *window,
				  const struct crit_exec *execs, size_t exec_cnt,
				  const stretches *path, const stretches *host,
				  struct collectives *ret);
void collectives_done(struct collectives *collectives);
