/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVIDIA's DCGM beside PM sampling. Up to Ada its profiling metrics own the device's
 * counters, and it lets go of them while it is paused; from Hopper on it takes GPM's.
 * What is paused must be resumed, also when whoever paused it dies: it writes a note before, and
 * keeps the note locked; a note without a lock is a dead one's, and the next to come resumes what
 * that left. The kernel ends a lock with its process, whatever container that was in, and with
 * the boot: numbers of processes would mean nothing there. Who looks at the note or asks DCGM for
 * something holds another lock meanwhile (a file "NOTE.lock", which stays).
 *
 * Source: DCGM user guide, "Feature Overview", Profiling Metrics, on `dcgmi profile --pause`
 * and `--resume`.
 */
#pragma once

#include "base/base.h"

#define DCGM_PROGRAM "dcgmi"
#define DCGM_ANSWER_MS 5000

/* Strings are borrowed as long as it is used. */
struct dcgm {
	const char *program; /* looked for in PATH */
	const char *note;    /* path, in a folder that others cannot write; one for all jobs */
	int answer_ms;	     /* then the program is killed */
	int held_fd;	     /* our note, locked, while we have paused it; from the start -1 */
};

/* Whether on such a chip ("GA100") the counters are DCGM's. */
bool dcgm_owns_counters(const char *chip);

/*
 * Pauses it. Returns 0; -EBUSY: another process has, and lives, or is about to; -ENODEV: there is
 * no DCGM that answers; -ETIME: nobody knows whether it is paused, dcgm_resume() is to be called
 * until it works; or -errno of the note or the lock. Blocks up to twice answer_ms, and as long for
 * others; of other failures nothing is left. A process that forks afterwards shares its lock.
 */
_must_check_ int dcgm_pause(struct dcgm *dcgm);

/*
 * Resumes it, if there is a note, ours or a dead one's. Returns 1, or 0: nothing was to do
 * or another has it now; or negative: -EIO, it did not work and the note stays for the next;
 * -EBUSY, others were at it all the time; -errno of the lock. Blocks up to answer_ms, and up to
 * twice that for others.
 */
int dcgm_resume(struct dcgm *dcgm);

/* The same, but only what a dead one left. */
int dcgm_recover(struct dcgm *dcgm);
