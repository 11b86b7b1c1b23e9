/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The records of a fingerprint: frames, functions, collectives, iterations and measurements of the
 * host. struct fingerprint (fingerprint.h) owns them.
 */
#pragma once

#include "model/event.h"

struct funckey {
	uint64_t hi, lo;
};

static inline bool funckey_equal(struct funckey a, struct funckey b)
{
	return a.hi == b.hi && a.lo == b.lo;
}

#define FRAME_NONE UINT32_MAX

/* One node of the calling-context tree. Parents come before their children. */
struct fp_frame {
	struct funckey key; /* hash over the canonical names from the root to here */
	uint32_t parent;    /* FRAME_NONE at a root */
	uint8_t kind;	    /* enum event_kind */
	const char *name;   /* display name; in the fingerprint's arena */
};

/* The measurements of one function on this worker in the window. */
struct fp_function {
	uint32_t frame;	  /* index in frames */
	uint8_t class;	  /* enum event_class; one frame may have two (idle in f, f itself) */
	uint8_t resource; /* enum resource of mu and sigma; RESOURCE_CNT when absent */
	double beta_frac; /* eq. 2 */
	double mu_frac, sigma_frac; /* eq. 4, 5; NAN when no source measured it */
	uint64_t executions;
	int64_t total_ns;    /* sum of durations, overlaps counted twice */
	int64_t critical_ns; /* time on the critical path: beta * window */
	int64_t share_ns;    /* as critical_ns, but time shared by functions of one class is divided
			      * among them: the shares of all functions add up to the window */
	int64_t thread_ns;   /* time on the training thread (or the autograd thread in its place),
			      * including while the device had work: the duration of this place in
			      * the code */
	double elements;  /* mean input elements (or threads launched) per execution; -1 unknown */
	double bytes;	  /* mean payload per execution; -1 unknown */
	double spread_ns; /* standard deviation of share_ns over the iterations; 0 unknown */
	const char *launched_by; /* kernels: the operators that launched most of it, outermost
				  * first, "aten::linear > aten::addmm"; NULL unknown */
	int64_t stall_ns;	 /* of critical_ns, in stalls (fingerprint_stalls.h) */
};

/* The share of a function in an interval. */
struct __attribute__((packed, aligned(4))) fp_share { /* a worker has a hundred: 12 bytes */
	uint32_t function; /* index in functions; FRAME_NONE: all functions that are not listed */
	int64_t ns;
};

/* One collective as this worker recorded it, in order of start. */
struct fp_collective {
	uint64_t group;	  /* hash of the group's identity; see group_known */
	uint64_t name;	  /* hash of the operation's name */
	int64_t seq;	  /* sequence number in its group; -1 unknown */
	int64_t start_ns; /* since window start */
	int64_t dur_ns;
	int64_t critical_ns; /* part of it on the critical path */
	int64_t bytes;	     /* -1 unknown */
	int32_t group_size;  /* 0 unknown */
	bool group_known;    /* false: group is inferred from the stream */
	uint32_t operation;  /* index in the fingerprint's operations + 1; 0: unknown */
	/*
	 * Functions on the critical path from the end (or, if that is later, the start) of the
	 * previous collective of the group to this start: shares[lead_first .. + lead_cnt).
	 */
	int64_t lead_ns;
	uint32_t lead_first, lead_cnt;
	/*
	 * The same for the thread that launched it, from launch to launch. A collective that began
	 * as soon as it was launched waited for that thread, whatever the device did.
	 */
	int64_t host_ns;
	uint32_t host_first, host_cnt;
	bool host_gated;
};

/* One iteration of the window. */
struct fp_iteration {
	int64_t number; /* the job's count; -1 unknown */
	int64_t start_ns, dur_ns;
};

/* Measurements of the host during the worker's window; absent numbers are negative or NULL. */
struct fp_host {
	double cpu_frac;	/* training thread: CPU time / window */
	double run_delay_frac;	/* training thread: runnable but waiting for a CPU / window */
	double other_cpu_frac;	/* busiest other thread of the process: CPU time / window */
	const char *other_name; /* its name or innermost Python function */
	int64_t gc_ns;		/* time in garbage collections */
	int64_t gc_cnt;
	const char *thief; /* process outside the job that took most CPU time from this worker */
	double thief_frac; /* its CPU time / window */
	/* Share of the window in which some task of the host stalled for this resource (PSI). */
	double psi_cpu_frac, psi_io_frac, psi_memory_frac;
	/*
	 * Maximum over the worker's GPUs: share of the window in which a power or thermal limit
	 * throttled it. Minimum over them: mean core clock / maximum clock.
	 */
	double gpu_throttled_frac, gpu_clock_frac;
	/*
	 * For whom its training thread waited and what they did meanwhile, as model/place/awaited.h
	 * writes it: "92 % in train.py(8): collate > <system call read>".
	 */
	const char *awaited;
};

/* A GPU of the worker with missing samples. */
struct fp_absence {
	int32_t gpu; /* the driver's index; -1: no GPU is sampled */
	const char *why;
};
