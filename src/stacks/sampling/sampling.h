/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The training thread of a process, sampled from outside for some seconds: its stack, its state and
 * the kernel's account of it at each round. Nothing is injected, nothing is stopped, no signal is
 * sent: of a thread that is blocked, native and Python frames are read; of one that runs, the Python
 * frames, until two readings agree. While it waits for its loader, so are the loader's workers.
 *
 * A child of the caller reads each process, into memory that both share (region.h), so that a
 * damaged process cannot harm the caller. The children of all ranks keep the same times.
 *
 * Times of rounds are spread at random within the period, so that a loop of nearly that period is
 * seen in all its parts.
 */
#pragma once

#include "model/sampled/sampledjob.h"
#include "stacks/region.h"

struct sampling_plan {
	int64_t begin_ns; /* CLOCK_MONOTONIC */
	int64_t period_ns;
	uint32_t round_cnt;
};

enum sampling_progress { SAMPLING_BEGUN, SAMPLING_READS, SAMPLING_NAMES, SAMPLING_DONE };

/* At the start of memory that reader and caller share. */
struct sampling_shared {
	struct sampling_plan plan;
	struct sampled_rank rank;
	struct region *region;
	_Atomic bool stop;    /* set by the caller: no more rounds */
	_Atomic int progress; /* enum sampling_progress */
	_Atomic uint32_t moment_cnt;
	char error[400], command[256];
};

struct sampling {
	struct sampling_shared *shared;
	int child; /* 0: it was waited for */
	int end;   /* readable when the child ends */
};

/* When a round is read, from begin_ns on. The same for all readers of a plan. */
int64_t sampling_round_ns(const struct sampling_plan *plan, uint32_t round);

/* Starts to read a process. Returns 0, -ENOMEM, or -errno of the child's start. */
_must_check_ int sampling_begin(struct sampling *ret, const struct sampling_plan *plan,
				uint32_t pid, int rank);

/* Ends the window early. */
void sampling_stop(struct sampling *sampling);

/*
 * Waits for the reader until limit_ns (CLOCK_MONOTONIC) at most, and kills it then. The result is
 * borrowed from the sampling; its `error` says what went wrong.
 */
const struct sampled_rank *sampling_finish(struct sampling *sampling, int64_t limit_ns);

void sampling_done(struct sampling *sampling);
