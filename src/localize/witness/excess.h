/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the witness of expectation says of a place in the program, however the workers
 * are held: which places its rule is for, and the accusation of those workers that are
 * there for longer than expected. Frames are those of a job or of columns (center/columns).
 * Source: PerfTracker eq. 6-7.
 */
#pragma once

#include "localize/witness/witness.h"
#include "model/thresholds.h"

struct excess {
	uint32_t function; /* representative */
	uint8_t class;	   /* of that function */
	uint32_t frame;	   /* the place named */
	double *of;	   /* by worker: beta of the place */
	bool *alike;	   /* by worker: as long there, if hidden; NULL: unknown */
	double distance;   /* largest D */
	size_t cnt;	   /* workers above the expectation or alike; columns do not count them */
};

/*
 * Whether what a worker does in a frame on the host can be accused. The paper's 1 % rule
 * is for Python functions. Operators and runtime calls that launch work are in every
 * job's path; without stacks they are no accusation, but data loading is one wherever it
 * shows. frame: not FRAME_NONE.
 */
bool excess_rule_applies(const struct job_frame *frames, uint32_t frame);

/* A stretch of the training thread in which nothing was recorded, named by what is around it. */
bool excess_is_stretch(const struct job_frame *frame);

/* A function of Python that is not written in it. */
bool excess_is_builtin(const struct job_frame *frame);

/* The Python function that calls a built-in; FRAME_NONE where that is not what frame is. */
uint32_t excess_caller(const struct job_frame *frames, uint32_t frame);

/*
 * Data loading is named as a whole: the annotation above a frame, not the copy inside it.
 * FRAME_NONE: frame is a Python function, which is named itself, or loads no data.
 */
uint32_t excess_loader(const struct job_frame *frames, uint32_t frame);

/* Whether the list accuses a worker in the frame, above it or below. */
bool excess_is_accused(const struct job_frame *frames, uint32_t frame, const accusations *list);

/*
 * Accuses those of worker_cnt that are above the expectation, and those alike; it is usual when
 * the place costs much less or much more than the slowdown of a live job. The array lives in arena. Returns 0 or -ENOMEM.
 */
_must_check_ int excess_accuse(const struct excess *e, size_t worker_cnt, double iteration_ns,
			       const struct accuse_options *options, struct arena *arena,
			       accusations *out);
