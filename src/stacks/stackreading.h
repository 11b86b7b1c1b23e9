/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all threads of a process do: native and Python frames, the state of each thread and what it
 * waits for, read from outside. Nothing is injected, no signal is sent, and most threads are not
 * stopped: those blocked in the kernel are read as they are, those that run are stopped for the time
 * of one copy (stopper.h).
 *
 * A child of the caller reads, with a time limit of its own, and writes into memory that both share
 * (region.h): whatever a damaged or hanging process does to it, the caller goes on with what was
 * read until then.
 */
#pragma once

#include "model/stackdump.h"
#include "stacks/region.h"

enum { STACKS_LIMIT_MS = 2000 };

/* How far the child came. */
enum stacks_progress { STACKS_BEGUN, STACKS_KNOWN, STACKS_LISTED, STACKS_DONE };

/* A process while it is read: at the start of memory that reader and child share. */
struct stackreading_shared {
	struct stacks_process process;
	struct region *region; /* owns all that process points to */
	_Atomic int progress;  /* enum stacks_progress */
};

struct stackreading {
	struct stackreading_shared *shared;
	int child; /* the process that reads; 0: it was waited for */
	int end;   /* readable when the child ends */
	int64_t begin_ns;
};

/* Starts to read. Returns 0, -ENOMEM, or -errno of the child's start. */
_must_check_ int stackreading_begin(struct stackreading *ret, uint32_t pid);

/*
 * Waits for the child, a second longer than its limit at most. The result's `error` says what went
 * wrong, and is borrowed from the reading.
 */
const struct stacks_process *stackreading_finish(struct stackreading *reading);

void stackreading_done(struct stackreading *reading);
