/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All workers side by side: the fingerprints of one window joined by function
 * identity, so that every later step can ask "what did worker w spend in f".
 */
#pragma once

#include "base/idmap.h"
#include "base/vec.h"
#include "format/fingerprint/fingerprint.h"

/* A frame that at least one worker has. Callers come before callees. */
struct job_frame {
	struct funckey key;
	uint32_t parent; /* FRAME_NONE at a root */
	uint8_t kind;
	const char *name; /* borrowed from a fingerprint */
	bool trains;	  /* around a backward pass or an optimizer: part of the training loop */
};

/* A function (frame, class) that at least one worker has. */
struct job_function {
	uint32_t frame; /* index in frames; FRAME_NONE: outside of all */
	uint8_t class;
	const struct fp_function **of; /* by worker; NULL where the worker does not list it */
};

struct job_worker {
	const struct fingerprint *fp;
	uint32_t group;	       /* peer group */
	uint32_t host;	       /* equal on workers of one host: the index of the first of them */
	double iterations;     /* analyzed, at least 1 */
	uint32_t *frame_of;    /* by the fingerprint's frame: the job's frame */
	uint32_t *function_of; /* by the fingerprint's function: the job's function */
};

struct job {
	struct arena arena;
	struct job_worker *workers; /* by rank, ascending */
	size_t worker_cnt;
	VEC(struct job_frame) frames;
	VEC(struct job_function) functions;
	struct idmap frame_by_key;
	struct idmap function_by_frame;
	/* Functions in the subtree of a frame, ascending: subtree[subtree_first[frame] .. of the next). */
	uint32_t *subtree_first, *subtree; /* NULL: not listed */
	uint32_t group_cnt;
	double iteration_ns; /* median over workers of window / iterations */
	bool apart;	     /* none waits for another, and each has its own pace */
};

/*
 * Joins fps[cnt] (ranks distinct and known, ascending). The fingerprints must
 * outlive the job. Returns 0 or -ENOMEM; job_done() is fine after either.
 */
_must_check_ int job_init(struct job *job, const struct fingerprint *const *fps, size_t cnt);
void job_done(struct job *job);

/* Index of the function (frame, class), FRAME_NONE when no worker has it. */
uint32_t job_function_find(const struct job *job, uint32_t frame, uint8_t class);

/* What a gain of these workers is a share of: their own iteration where workers are apart. */
double job_iteration_of_ns(const struct job *job, const uint32_t *workers, size_t cnt);

/* Time per iteration, in ns, of f on worker w; 0 where it is not listed. */
double job_time_ns(const struct job *job, const struct job_function *f, size_t w);

/* Whether frame is anc or below it: in frames[], or in those of a job. */
bool frames_below(const struct job_frame *frames, uint32_t frame, uint32_t anc);
bool job_frame_below(const struct job *job, uint32_t frame, uint32_t anc);

/* sums: by frame of the job; adds those of its subtree to each. */
void job_sum_subtrees(const struct job *job, double *sums);

/* Index of the iteration of a worker in which a moment of its window lies; -1: before all. */
int64_t job_iteration_at(const struct job_worker *worker, int64_t time_ns);

/* Whether the frame is a garbage collection. */
bool job_frame_collects(const struct job *job, uint32_t frame);

#define JOB_SAMPLE_HZ 500 /* of stacks in a window, unless ordered otherwise */

/*
 * The share of what the worker's recorder was to hold that it lost, 0 to 1: of samples of stacks
 * or of all records, whichever is more. 0 of a trace that has no recorder.
 */
double job_lost_frac(const struct fingerprint *fp);

/* Whether a function is a call that returns when the device has done its work. function: an index, or FRAME_NONE. */
bool job_waits_for_device(const struct job *job, uint32_t function);

/*
 * Time per iteration in which the training thread of the median worker was runnable without a CPU;
 * 0: of no worker known. Returns 0 or -ENOMEM.
 */
_must_check_ int job_find_starved_ns(const struct job *job, double *ret);

/* Ranks of the largest group that it met: the job has as many at least. 0: unknown. */
int job_largest_group(const struct fingerprint *fp);

/*
 * Time per iteration, in ns, that worker w spent on its critical path in the
 * subtree of a frame (shares: adds up over disjoint subtrees). Classes whose bit
 * is not in class_mask are left out.
 */
double job_subtree_ns(const struct job *job, uint32_t frame, size_t w, uint32_t class_mask);

/* Time per iteration, in ns, that worker w's training thread spent in the subtree of a frame. */
double job_thread_ns(const struct job *job, uint32_t frame, size_t w);
