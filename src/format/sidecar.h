/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the daemon saw of one worker during one profiled window, in one file
 * beside the worker's trace: CPU time and run-queue delay of its threads,
 * garbage collections, iteration bounds, and processes that took its CPU.
 *
 * Fixed header, then sections of fixed-size records, all little-endian. Times
 * are CLOCK_MONOTONIC; one mono/wall pair in the header maps them to the wall
 * clock that traces use. Nothing read from a file is trusted.
 * Source: design.md sections 5 (mu, sigma) and 8; wprof's data.h for the shape.
 */
#pragma once

#include "base/err.h"
#include "base/vec.h"
#include "format/event.h"

#define SIDECAR_MAGIC 0x31435350u /* "PSC1" */
#define SIDECAR_VERSION 1u
#define SIDECAR_MAX_BYTES (256u << 20) /* a 20 s window of 1000 threads is 64 MB */
#define SIDECAR_SUFFIX ".sidecar"      /* beside TRACE: TRACE.sidecar */

/* Sections of the file. Append-only: X(id, field, record type). */
#define SIDECAR_SECTION_LIST(X)                             \
	X(THREAD, threads, struct sidecar_thread)           \
	X(SAMPLE, samples, struct sidecar_sample)           \
	X(PROCESS, process_samples, struct sidecar_process) \
	X(GC, collections, struct sidecar_gc)               \
	X(ITERATION, iterations, struct sidecar_iteration)  \
	X(THIEF, thieves, struct sidecar_thief)

enum sidecar_section {
#define X(id, field, type) SIDECAR_##id,
	SIDECAR_SECTION_LIST(X)
#undef X
		SIDECAR_SECTION_CNT
};

struct sidecar_thread {
	uint32_t tid;
	char name[20]; /* comm, NUL-terminated */
};

/* Cumulative counters of one thread at one moment. */
struct sidecar_sample {
	int64_t time_ns;
	uint64_t cpu_ns;
	uint64_t run_delay_ns; /* runnable, but waiting for a CPU */
	uint32_t tid;
	uint32_t reserved;
};

/* Cumulative counters of the whole worker process at one moment. */
struct sidecar_process {
	int64_t time_ns;
	uint64_t cpu_ns;
	uint32_t cpu_cnt; /* CPUs it may use */
	uint32_t reserved;
};

struct sidecar_gc {
	int64_t start_ns, dur_ns;
	uint32_t generation;
	uint32_t reserved;
};

/* Iteration `step` began here and ended where the next record begins. */
struct sidecar_iteration {
	uint64_t step;
	int64_t start_ns;
};

enum sidecar_thief_flag {
	SIDECAR_THIEF_IN_JOB = 1, /* a descendant of the job's command, but no worker */
};

/*
 * A process, or several of one command line, that used CPU the worker could have
 * used. Texts are NUL-terminated.
 */
struct sidecar_thief {
	uint32_t pid;	     /* of the busiest */
	uint32_t flags;	     /* enum sidecar_thief_flag */
	double cpu_frac;     /* CPU time of all / window, 1.0 is one CPU */
	double overlap_frac; /* share of looks at which they were last on the training thread's CPU */
	char comm[16];
	uint32_t process_cnt;
	char command[148]; /* command line, control characters replaced by '?' */
	char cpus[64];	   /* "0-3,7": CPUs it may run on; "" when unknown */
};

struct sidecar_header {
	uint32_t magic, version;
	uint32_t pid, tid; /* the worker and its training thread */
	int32_t rank;
	uint32_t reserved;
	int64_t mono_ns, wall_ns; /* the same moment on both clocks */
	int64_t start_ns, end_ns; /* the window, CLOCK_MONOTONIC */
	char host[64];		  /* NUL-terminated */
	struct {
		uint64_t off, cnt; /* bytes from the start of the file; records */
	} sections[SIDECAR_SECTION_CNT];
};
_Static_assert(sizeof(struct sidecar_thread) == 24, "on disk");
_Static_assert(sizeof(struct sidecar_sample) == 32, "on disk");
_Static_assert(sizeof(struct sidecar_process) == 24, "on disk");
_Static_assert(sizeof(struct sidecar_gc) == 24, "on disk");
_Static_assert(sizeof(struct sidecar_iteration) == 16, "on disk");
_Static_assert(sizeof(struct sidecar_thief) == 256, "on disk");
_Static_assert(sizeof(struct sidecar_header) == 120 + 16 * SIDECAR_SECTION_CNT, "on disk");

/* One sidecar in memory. A zeroed one is empty and valid. */
struct sidecar {
	struct sidecar_header header; /* sections are filled by sidecar_write() */
#define X(id, field, type) VEC(type) field;
	SIDECAR_SECTION_LIST(X)
#undef X
};

void sidecar_done(struct sidecar *sidecar);

/*
 * Writes the file complete or not at all (temporary file, then rename; mode
 * 0600). Returns 0 or -errno with a line in err.
 */
_must_check_ int sidecar_write(const struct sidecar *sidecar, const char *path, struct err *err);

/*
 * Parses data[len]. Returns 0, -ENOMEM, or -EINVAL with a line in err that
 * names path; *ret is untouched on failure. The caller frees ret.
 */
_must_check_ int sidecar_parse(const char *path, const void *data, size_t len, struct sidecar *ret,
			       struct err *err);

/* Reads a whole file; errors as sidecar_parse() and those of open(2). */
_must_check_ int sidecar_read(const char *path, struct sidecar *ret, struct err *err);

/*
 * Adds to trace, on its clock: tracks of RESOURCE_CPU_THREAD and RUN_DELAY per
 * thread and RESOURCE_CPU_PROCESS; KIND_GC events on the training thread's
 * lane; and, if it has no ProfilerStep annotation, one "ProfilerStep#<step>"
 * per iteration that lies within the trace. Events stay sorted and parents
 * right. Returns 0 or -ENOMEM; the trace is valid but may be partly extended
 * then. O(events log added).
 */
_must_check_ int sidecar_apply(const struct sidecar *sidecar, struct trace *trace);

/* sidecar_read() and sidecar_apply(). */
_must_check_ int sidecar_merge(const char *path, struct trace *trace, struct err *err);

/*
 * What a sidecar is evidence for, in one place. Thieves by what they took from
 * this worker: CPU time, weighted by how often it was on its CPU; largest first.
 */
struct sidecar_info {
	int rank;
	uint32_t pid, tid;
	int64_t window_ns;
	bool has_thread;       /* the training thread was sampled at least twice: */
	double cpu_frac;       /* its CPU time / time */
	double run_delay_frac; /* share of time it was runnable without a CPU */
	uint64_t gc_cnt;
	int64_t gc_ns;
	struct sidecar_thief thieves[8];
	size_t thief_cnt;
};

/* Condenses a sidecar. Allocates nothing. */
void sidecar_summarize(const struct sidecar *sidecar, struct sidecar_info *ret);

/* "pid 71 (stress --cpu 1) used 0.98 CPU on CPUs 0-1", or "4 processes like pid 71 ...". */
void sidecar_thief_text(const struct sidecar_thief *thief, char *text, size_t size);
