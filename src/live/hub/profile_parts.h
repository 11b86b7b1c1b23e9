/* SPDX-License-Identifier: Apache-2.0 */
/* A profile of the job while it is under way: what was ordered, and the workers' answers. */
#pragma once

#include "base/vec.h"
#include "live/link/wire.h"
#include "model/trigger.h"

enum answer_state { ANSWER_NONE, ANSWER_BEGUN, ANSWER_EXPORTED, ANSWER_READY, ANSWER_MISSED };

/* One worker's answer to the order. */
struct answer {
	uint32_t worker;
	int rank;
	enum answer_state state;
	int64_t stall_ns;
	char text[WIRE_TEXT]; /* the fingerprint's path, or the reason why it is missing */
};

#define PROFILE_EARLY "early"	  /* the kind of a window that is kept and makes no report */
#define PROFILE_REQUEST "request" /* of one that a person asked for */

/* A profile of all watched workers. */
struct profile_wish {
	const char *kind; /* a constant */
	int64_t window_ns;
	uint64_t steps_max;
};

struct profile {
	bool active;
	struct profile_wish wish;
	unsigned tries; /* orders for that wish */
	unsigned
		late; /* of struct plan_limits: grows with orders that came too late for a worker */
	uint64_t id;
	struct report_trigger trigger;
	VEC(struct answer) answers;
	int64_t deadline_ns;
	int64_t length_ns;    /* expected */
	bool begun, canceled; /* at least one worker; those that have not begun must not */
	bool torch;	      /* torch.profiler recorded at least one worker of the latest */
};
