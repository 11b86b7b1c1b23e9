/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVIDIA's DCGM beside PM sampling. Up to Ada its profiling metrics own the device's
 * counters, and it lets go of them while it is paused; from Hopper on it takes GPM's.
 * What is paused must be resumed, also when whoever paused it dies: a note, written
 * before, says who that was, and the next to come resumes what the dead left.
 *
 * Source: DCGM user guide, "Feature Overview", Profiling Metrics, on `dcgmi profile --pause`
 * and `--resume`.
 */
#pragma once

#include "base/base.h"

#include <sys/types.h>

#define DCGM_PROGRAM "dcgmi"
#define DCGM_ANSWER_MS 5000

/* Borrowed as long as it is used. */
struct dcgm {
	const char *program; /* looked for in PATH */
	const char *note;    /* path, in a folder that others cannot write; one for all jobs */
	int answer_ms;	     /* then the program is killed */
	pid_t owner;	     /* the process whose end means that it is to be resumed */
};

/* Whether on such a chip ("GA100") the counters are DCGM's. */
bool dcgm_owns_counters(const char *chip);

/*
 * Pauses it. Returns 0; -EBUSY: another process has, and lives; -ENODEV: there is no DCGM
 * that answers; -ETIME: nobody knows whether it is paused, dcgm_resume() is to be called until it
 * works; or -errno of the note. Blocks up to twice answer_ms; of other failures nothing is left.
 */
_must_check_ int dcgm_pause(const struct dcgm *dcgm);

/*
 * Resumes it, if there is a note, whoever wrote it. Returns 1, or 0: nothing was to do, or
 * -EIO: it did not work and the note stays for the next. Blocks up to answer_ms.
 */
int dcgm_resume(const struct dcgm *dcgm);

/* The same, if the process that the note names is no more. */
int dcgm_recover(const struct dcgm *dcgm);
