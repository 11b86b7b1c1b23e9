/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the iterations of a trace or window are known: from the surest to a guess.
 * Source: PerfTracker, section 4.1; ARCHITECTURE.md, "Words".
 */
#pragma once

/* How the iterations of a trace or window are known. Append-only: fingerprints hold it. */
enum iterations_by {
	ITERATIONS_UNKNOWN,    /* the window counts as one iteration */
	ITERATIONS_ANNOTATION, /* the job's "ProfilerStep#N" */
	ITERATIONS_MARKS,      /* the worker's marks, recorded live */
	ITERATIONS_OPTIMIZER,  /* ends of optimizer steps */
	ITERATIONS_REPEATS,    /* kernels or collectives that repeat: a guess */
	ITERATIONS_BY_CNT
};
