/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The privileged sampler: `perftracker gpu-sampler`, which hostd starts for a window, or an
 * administrator once a host, for containers that may not read the counters. Two processes:
 *
 *	keeper    opens no vendor's library. Starts the sampler, kills one that is silent,
 *		  pauses who else has the counters when the sampler asks, and resumes that
 *		  whatever happened.
 *	sampler   collect/host/gpucounters.h; writes its pieces into the folder.
 *
 * The keeper ends the sampler when whoever started it is gone. If the keeper is killed, the
 * sampler resumes the other tool; if both are, the next keeper or job does (collect/host/gpupause.h). A resume
 * that fails is tried again, and until it works there is no other sampler; nor is there while one
 * that was killed does not die.
 */
#pragma once

#include "base/err.h"

#define GPUSAMPLER_PIECE_MS 50
#define GPUSAMPLER_SILENT_MS 10000		   /* the start of CUDA takes seconds */
#define GPUSAMPLER_LONGEST_NS (120 * NSEC_PER_SEC) /* standing: at once, whoever wants it */
#define GPUSAMPLER_REST_NS (30 * NSEC_PER_SEC)	   /* ... and then not for so long */
#define GPUSAMPLER_AGAIN_NS (10 * NSEC_PER_SEC)	   /* after what failed: a sampler, a resume */

/* Strings are borrowed. */
struct gpusampler_options {
	const char *dir;  /* of collect/host/gpushare.h */
	const char *note; /* of a paused tool: as gpusampler_note() has it */
	int stop_fd;	  /* for a window: until it is closed; -1: standing, until SIGTERM */
	int silent_ms;
	int64_t again_ns;
	int64_t longest_ns, rest_ns; /* standing */
};

/* How a window's sampler ended; statuses of the process. */
enum gpusampler_end {
	GPUSAMPLER_DONE = 0,
	GPUSAMPLER_NO_START = 1, /* the folder; err tells */
	GPUSAMPLER_NOTHING = 10, /* nothing can be sampled; the last piece tells why */
	GPUSAMPLER_CRASHED = 11,
	GPUSAMPLER_HUNG = 12,  /* it was silent, or did not end when it was told to */
	GPUSAMPLER_STUCK = 13, /* nor when it was killed: it is left behind, asleep in a driver */
};

/*
 * Runs the keeper, and leaves the signals of terminals blocked: the process is to end then.
 * err is filled for GPUSAMPLER_NO_START.
 */
enum gpusampler_end gpusampler_run(const struct gpusampler_options *options, struct err *err);

/* Resumes a tool that was paused by one of this user's that is dead. May block for seconds. */
void gpusampler_recover(void);

/*
 * The path of the note. dir NULL: in the user's run directory, one for all of this user's jobs;
 * else of a standing sampler, in a folder of dir, which outlives the sampler's container. Makes
 * that folder. Returns 0, or -errno with a line in err: -EPERM it is a stranger's.
 */
_must_check_ int gpusampler_note(const char *dir, char *ret, size_t size, struct err *err);
