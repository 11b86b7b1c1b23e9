/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The behavior fingerprint of one worker over one window: made by summarize, compared by localize.
 * A few hundred bytes per function instead of gigabytes of events.
 *
 * Functions are nodes of a calling-context tree ("frames"): the node is the identity (whole call
 * stack, PerfTracker section 4.2). Its key is a 128-bit hash, equal on all workers that run the
 * same code. Only nodes that held the critical path for at least a given share have numbers; their
 * ancestors are kept for the stacks.
 * Source: PerfTracker eq. 1-5; docs/method.md.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "model/event.h"

struct funckey {
	uint64_t hi, lo;
};

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
};

/* The share of a function in an interval. */
struct fp_share {
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
};

/* A GPU of the worker with missing samples. */
struct fp_absence {
	int32_t gpu; /* the driver's index; -1: no GPU is sampled */
	const char *why;
};

struct fingerprint {
	struct arena arena; /* owns every string and array below */
	const char *job_id, *host, *source, *device_name;
	int rank;	/* RANK_UNKNOWN before ranks are assigned */
	int world_size; /* -1 unknown */
	int64_t pid;
	int64_t window_start_wall_ns;
	int64_t window_ns;
	bool has_device, has_stacks, iterations_known;
	int64_t class_ns[CLASS_CNT]; /* adds up to window_ns */
	struct fp_frame *frames;
	size_t frame_cnt;
	struct fp_function *functions; /* by share_ns, largest first */
	size_t function_cnt;
	int64_t rest_ns; /* share of functions below the threshold, not listed */
	struct fp_collective *collectives;
	size_t collective_cnt;
	uint64_t collective_dropped; /* collectives beyond the limit */
	struct fp_share *shares;
	size_t share_cnt;
	struct fp_iteration *iterations;
	size_t iteration_cnt;
	struct fp_host host_stats;
	struct fp_absence *absences;
	size_t absence_cnt;
	uint32_t resources; /* bit per enum resource that had samples */
	struct trace_drops drops;
	uint64_t event_cnt;
	bool steps_guessed; /* copied from the trace; not in files */
};

void fingerprint_init(struct fingerprint *fp);
void fingerprint_done(struct fingerprint *fp);

/* Writes a file (path ".tmp" first, then renamed). Returns 0 or -errno with a line in err. */
_must_check_ int fingerprint_write(const struct fingerprint *fp, const char *path, struct err *err);

/*
 * Reads a file of fingerprint_write(). Every length and index is checked: a truncated, foreign or
 * damaged file returns -EINVAL with file, offset, expected and found in err. *ret is initialized on
 * success only; the caller frees it with fingerprint_done().
 */
_must_check_ int fingerprint_read(const char *path, struct fingerprint *ret, struct err *err);
_must_check_ int fingerprint_read_memory(const void *data, size_t len, const char *source,
					 struct fingerprint *ret, struct err *err);

static inline bool funckey_equal(struct funckey a, struct funckey b)
{
	return a.hi == b.hi && a.lo == b.lo;
}
