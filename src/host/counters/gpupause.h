/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Another tool that has a GPU's counters (collect/host/gpucounters.h) and lets go of them while it is
 * paused, by a program. What is paused must be resumed, also when whoever paused it dies: it writes a
 * note before, and keeps the note locked; a note without a lock is a dead one's, and the next to come
 * resumes what that left. The kernel ends a lock with its process, whatever container that was in, and
 * with the boot: numbers of processes would mean nothing there. Who looks at the note or asks the tool
 * for something holds another lock meanwhile (a file "NOTE.lock", which stays).
 */
#pragma once

#include "base/base.h"

#define GPUPAUSE_NAME 16 /* bytes of a tool's name */
#define GPUPAUSE_ANSWER_MS 5000

/* Of static storage. */
struct gpupause_tool {
	const char *name;	    /* one word, for notes and messages */
	const char *pause, *resume; /* a program, looked for in PATH, and its arguments: words */
};

/* Strings and lists are borrowed as long as it is used. */
struct gpupause {
	const struct gpupause_tool *const *tools; /* all that are known; ends with NULL */
	const char *note; /* path, in a folder that others cannot write; one for all jobs */
	int answer_ms;	  /* then the program is killed */
	const struct gpupause_tool *tool; /* the latest that was paused or found paused; or NULL */
	int held_fd; /* our note, locked, while we have paused one; from the start -1 */
};

/* NULL: there is none of that name. */
const struct gpupause_tool *gpupause_find(const struct gpupause *pause, const char *name);

/*
 * Pauses a tool. Returns 0; -EBUSY: another process has paused one, and lives, or is about to;
 * -ENODEV: there is none that answers; -ETIME: nobody knows whether it is paused, gpupause_end() is to
 * be called until it works; or -errno of the note or the lock. Blocks up to twice answer_ms, and as
 * long for others; of other failures nothing is left. A process that forks afterwards shares its lock.
 */
_must_check_ int gpupause_begin(struct gpupause *pause, const struct gpupause_tool *tool);

/*
 * Resumes what is paused, if there is a note, ours or a dead one's. Returns 1, or 0: nothing was to do
 * or another has it now; or negative: -EIO, it did not work and the note stays for the next;
 * -EBUSY, others were at it all the time; -errno of the lock. Blocks up to answer_ms, and up to
 * twice that for others.
 */
int gpupause_end(struct gpupause *pause);

/* The same, but only what a dead one left. */
int gpupause_recover(struct gpupause *pause);
