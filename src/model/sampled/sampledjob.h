/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was seen from outside of the ranks of a job that runs without PerfTracker in it: stacks of
 * their training threads at moments of a window, and the kernel's account of these threads. Written
 * by the stage `stacks`, judged by the stage `sampled`.
 *
 * A round is one moment at which all ranks are read, some milliseconds apart.
 */
#pragma once

#include "model/stackdump.h"

#define SAMPLED_NONE UINT32_MAX

enum { SAMPLED_RANKS_MAX = 64 };

struct sampled_moment {
	uint32_t round;
	uint32_t stack;	      /* index in stacks; SAMPLED_NONE: it could not be read */
	uint32_t child_stack; /* of a worker of the loader that the thread waits for; or NONE */
	char state;	      /* R, S, D, T, t, Z, X */
	int64_t time_ns;      /* CLOCK_MONOTONIC */
	/* Since the thread began: on a CPU, and runnable without one. */
	int64_t ran_ns, queued_ns;
};

struct sampled_stack {
	const struct stacks_frame *frames; /* innermost first */
	size_t frame_cnt;
};

/* What another thread of the process used in the window. */
struct sampled_thread {
	uint32_t tid;
	char name[16];
	int64_t ran_ns;
};

struct sampled_rank {
	int rank;
	uint32_t pid;
	const char *command;
	const char *error; /* why it could not be read, or not to the end; "" */
	bool ended;	   /* the process ended in the window */
	const struct sampled_moment *moments;
	size_t moment_cnt;
	const struct sampled_stack *stacks;
	size_t stack_cnt;
	const struct sampled_thread
		*threads; /* those that ran most first, without the training thread */
	size_t thread_cnt;
	/* Of its child processes that lived all the window, per child: on a CPU, runnable without one. */
	double children_ran_frac, children_queued_frac;
	size_t late_cnt;   /* rounds for which the reader came too late */
	int64_t reader_ns; /* CPU time of the reader while it sampled */
	int64_t setup_ns;  /* and before and after */
};

struct sampled_job {
	const struct sampled_rank *ranks; /* by rank */
	size_t cnt;
	int world_size; /* as the job says; 0: unknown */
	uint32_t round_cnt;
	int64_t period_ns;
};
