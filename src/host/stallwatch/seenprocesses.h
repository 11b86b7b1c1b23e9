/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes that a stall window sees on the CPUs or as wakers. Name and command line are read
 * when a process is first seen: a culprit is often gone at the end.
 */
#pragma once

#include "base/idmap.h"
#include "model/stalls/stallrecording.h"

struct seenprocesses {
	const char *root; /* prefix before /proc; borrowed */
	struct idmap by_pid;
	VEC(uint64_t)
	used_ticks; /* CPU of each in the recording's order, of seenprocesses_used() */
	size_t dropped;
};

void seenprocesses_done(struct seenprocesses *seen);

/* Adds a process to the recording once. Returns 0 or -ENOMEM. */
_must_check_ int seenprocesses_see(struct seenprocesses *seen, uint32_t pid,
				   struct stall_recording *recording);

/* It runs another program now, with this name. Returns 0 or -ENOMEM. */
_must_check_ int seenprocesses_rename(struct seenprocesses *seen, uint32_t pid, const char *name,
				      struct stall_recording *recording);

/*
 * Adds events STALL_USED for all processes of the host that used CPU since the last call: who had
 * the CPUs, where events of whole CPUs are not permitted. 20 us a process. Returns 0 or -ENOMEM.
 */
_must_check_ int seenprocesses_used(struct seenprocesses *seen, int64_t now_ns,
				    struct stall_recording *recording);
