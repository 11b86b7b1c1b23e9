/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pauses another tool that holds a GPU's counters (host/counters/gpucounters.h), by the tool's
 * program. A paused tool must be resumed even if the pausing process dies: that process writes a
 * note first and keeps it locked; a note without a lock is a dead process's, and the next process
 * resumes the tool. The kernel drops a lock with its process, across containers and reboots, where
 * pids would be meaningless. Reading the note or running the tool's program is done under a second
 * lock (a file "NOTE.lock", which is never removed).
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
	int held_fd; /* the own note, locked, while a tool is paused; initially -1 */
};

/* NULL: no tool of that name. */
const struct gpupause_tool *gpupause_find(const struct gpupause *pause, const char *name);

/*
 * Pauses a tool. Returns 0; -EBUSY: another live process has paused one, or is about to; -ENODEV:
 * the program is missing or fails; -ETIME: unknown whether the tool is paused: call gpupause_end()
 * until it succeeds; or -errno of the note or the lock. Blocks up to twice answer_ms, and as long
 * for other processes; other failures leave no state. A process that forks afterwards shares its
 * lock.
 */
_must_check_ int gpupause_begin(struct gpupause *pause, const struct gpupause_tool *tool);

/*
 * Resumes the paused tool, if there is a note of this or a dead process. Returns 1; 0: nothing to
 * do, or another process holds the pause now; or negative: -EIO, resuming failed and the note stays
 * for the next process; -EBUSY, other processes held the lock all the time; -errno of the lock.
 * Blocks up to answer_ms, and up to twice that for other processes.
 */
int gpupause_end(struct gpupause *pause);

/* As gpupause_end(), for the note of a dead process only. */
int gpupause_recover(struct gpupause *pause);
