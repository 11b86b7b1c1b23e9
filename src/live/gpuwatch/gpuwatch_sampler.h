/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The privileged sampler: `perftracker gpu-sampler`, which hostd starts for a window, or an
 * administrator once a host, for containers that may not read the counters. Two processes:
 *
 *	keeper    opens no vendor's library. Starts the sampler, kills a silent one, pauses
 *		  another tool that holds the counters when the sampler requests it, and
 *		  resumes that tool in all cases.
 *	sampler   host/counters/gpucounters.h; writes its pieces into the folder.
 *
 * The keeper ends the sampler when the process that started the keeper is gone. If the keeper
 * is killed, the sampler resumes the other tool; if both are, the next keeper or job does
 * (host/counters/gpupause.h). A resume that fails is retried. No new sampler starts before it
 * succeeds, nor while a killed sampler has not died.
 */
#pragma once

#include "base/err.h"

#define GPUSAMPLER_PIECE_MS 50
#define GPUSAMPLER_SILENT_MS 10000		   /* the start of CUDA takes seconds */
#define GPUSAMPLER_LONGEST_NS (120 * NSEC_PER_SEC) /* permanent sampler: limit of one run */
#define GPUSAMPLER_REST_NS (30 * NSEC_PER_SEC)	   /* ... and the pause after it */
#define GPUSAMPLER_AGAIN_NS (10 * NSEC_PER_SEC)	   /* until a failed sampler or resume is retried */

/* Strings are borrowed. */
struct gpusampler_options {
	const char *dir;  /* the folder of host/counters/gpushare.h */
	const char *note; /* the note of a paused tool: from gpusampler_note() */
	int stop_fd;	  /* for a window: runs until it is closed; -1: permanent, until SIGTERM */
	int silent_ms;
	int64_t again_ns;
	int64_t longest_ns, rest_ns; /* of a permanent sampler */
};

/* How a window's sampler ended; statuses of the process. */
enum gpusampler_end {
	GPUSAMPLER_DONE = 0,
	GPUSAMPLER_NO_START = 1, /* the folder cannot be used; err has the reason */
	GPUSAMPLER_NOTHING = 10, /* nothing can be sampled; the last piece has the reason */
	GPUSAMPLER_CRASHED = 11,
	GPUSAMPLER_HUNG = 12,  /* it was silent, or did not end when requested */
	GPUSAMPLER_STUCK = 13, /* nor when killed: it is abandoned, asleep in a driver */
};

/*
 * Runs the keeper. Leaves the signals of terminals blocked, so the process must end then. err
 * is filled for GPUSAMPLER_NO_START.
 */
enum gpusampler_end gpusampler_run(const struct gpusampler_options *options, struct err *err);

/* Resumes a tool that a dead keeper of this user left paused. May block for seconds. */
void gpusampler_recover(void);

/*
 * The path of the note. dir NULL: in the user's run directory, shared by all of this user's
 * jobs; else for a permanent sampler, in a folder of dir, which outlives the sampler's
 * container. Makes that folder. Returns 0, or -errno with a line in err; -EPERM: it belongs to
 * another user.
 */
_must_check_ int gpusampler_note(const char *dir, char *ret, size_t size, struct err *err);
