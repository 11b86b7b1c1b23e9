/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The call stacks to which the time of a trace belongs: of a kernel, the Python functions and
 * operators that were open on the launching thread at its launch; of host time, the innermost
 * function that was open. A frame whose thread has nothing open hangs below the Python frame that
 * its id names, as frames of the autograd thread do.
 */
#pragma once

#include "model/event.h"
#include "model/flame/flametree.h"

enum launch_weight {
	LAUNCH_DEVICE, /* duration of kernels and copies, by the stack that launched them */
	LAUNCH_HOST,   /* time of threads, by the innermost function */
	LAUNCH_WAIT,   /* the part of it in calls that only wait */
};

struct launchstacks {
	double total_ns;
	size_t without_launch; /* kernels whose launch the trace lacks */
	size_t without_python; /* kernels whose stack has no Python frame */
	size_t cnt;	       /* kernels, or host functions with time of their own */
};

/*
 * Adds the stacks of one trace to tree, as member; weights are ns. Returns 0 or -ENOMEM, then
 * *ret is untouched and tree is only good for flametree_done().
 */
_must_check_ int launchstacks_add(const struct trace *trace, enum launch_weight weight,
				  uint32_t member, struct flametree *tree,
				  struct launchstacks *ret);

/* Whether a function, by its kind and display name, does nothing but wait. */
bool launchstacks_waits(enum event_kind kind, const char *name);
