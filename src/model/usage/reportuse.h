/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the time of a window went, beside its findings: how GPUs were used, what took most time,
 * the collectives by operation and size, how late ranks were. Part of a report (model/report.h).
 */
#pragma once

#include "model/event.h"

/* Of one worker. Shares are of its window, unions over the streams of its GPUs. */
struct report_use {
	bool known; /* the trace has work of a device; false: everything else is 0 */
	double busy_frac, compute_frac, comm_frac, memory_frac;
	double comm_alone_frac, memory_alone_frac; /* nothing else ran on the device */
	double starved_frac;			   /* no work, and the host had launched none */
	double sync_loss_frac;	 /* idle behind synchronizations: what these cost at most */
	double launch_loss_frac; /* the same, behind launches that wait for their kernels */
	double syncs, kernels;	 /* per iteration; syncs: those that cost something */
	double short_frac,
		blocking_frac;	      /* of its kernels: short ones; of the launched: waited for */
	double launch_delay_us;	      /* from launch to begin, median; NAN: not known */
	double alloc_calls, alloc_ms; /* per iteration: calls that allocate, pin or free memory */
};

/* A kernel, copy or runtime call by name; per iteration, mean over the workers that have GPUs. */
struct report_total {
	const char *name;
	enum event_kind kind; /* KIND_KERNEL, KIND_GPU_MEMOP or KIND_RUNTIME */
	enum event_class class;
	double cnt, ms;
	double idle_ms; /* runtime calls: while the device had no work */
	double longest_ms;
	double gbytes_per_s; /* copies; NAN: unknown */
};

/* Collectives of one operation, size of group and class of payload. */
struct report_collective {
	const char *operation; /* "all_reduce" */
	int group_size;	       /* 0: unknown */
	double bytes;	       /* median payload; NAN: unknown */
	double cnt;	       /* per iteration of a member, mean */
	double ms;	       /* per iteration of a member, with waiting */
	/*
	 * Without waiting for the last member, median: where the members are known the shortest of
	 * their durations, else the shortest of all executions.
	 */
	double latency_ms;
	double bus_gbytes_per_s; /* by the formulas of nccl-tests; NAN: unknown */
	bool matched;		 /* members are known */
};
