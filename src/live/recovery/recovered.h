/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Windows that an earlier hub of this job ordered and did not commit. Hosts keep their results and
 * send them to this hub with what the window was for; a window is due when all of its ranks have come,
 * or no more come. What hosts say is enough: nothing of the earlier hub is read.
 */
#pragma once

#include "base/vec.h"
#include "live/link/wire.h"

#define RECOVERED_WINDOWS_MAX 64u
#define RECOVERED_RESULTS_MAX 262144u
#define RECOVERED_GRACE_NS (2 * NSEC_PER_SEC) /* for ranks that the order did not count */
#define RECOVERED_WAIT_NS (60 * NSEC_PER_SEC) /* for the next result of a window */

struct recovered_result {
	int rank;
	bool ready;
	char text[WIRE_WHY]; /* the fingerprint's path, or why it is missing */
};

struct recovered_window {
	uint64_t epoch, order_id;
	struct wire_window window; /* as the first result says */
	int64_t heard_ns;
	VEC(struct recovered_result) results;
};

struct recovered {
	VEC(struct recovered_window) windows;
	uint64_t refused; /* results beyond the limits, or of windows of an unknown kind */
};

/* Of each rank the first fingerprint counts. Returns 0 or -errno; then it is counted, too. */
int recovered_add(struct recovered *recovered, const struct wire_result *result, int64_t now_ns);

/* Borrowed until the next call; NULL: none is due. all: also one of which more may come. */
struct recovered_window *recovered_due(struct recovered *recovered, bool all, int64_t now_ns);
void recovered_drop(struct recovered *recovered, struct recovered_window *window);
void recovered_done(struct recovered *recovered);

/* The constant of struct report_trigger for a window's kind; NULL: no hub orders such a window. */
const char *recovered_kind(const struct wire_window *window);
