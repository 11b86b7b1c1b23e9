/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Simulated training jobs with a known truth. Every worker runs the program of its pipeline stage
 * (program.h) and waits for the other members of its groups, so a slow worker, link or disk has the
 * effects it has in a real job.
 *
 * simulate_open() runs all workers against each other and stores only the end of each collective.
 * From these any worker can be simulated again, as a trace or as a fingerprint, in any order and by
 * several threads: the result is the same bytes for the same options.
 * Source: PerfTracker sections 3, 4.2 and 6; EROICA slides.
 */
#pragma once

#include "base/str.h"
#include "format/fingerprint/fingerprint.h"

struct simulation;

enum simulate_level {
	SIMULATE_EVENTS,       /* rings chunk by chunk; at most SIMULATE_EVENTS_MAX workers */
	SIMULATE_FINGERPRINTS, /* rings by their closed form */
};

#define SIMULATE_EVENTS_MAX 64

struct simulate_options {
	const char *scenario; /* names of the table in scenario.c, joined by '+' */
	enum simulate_level level;
	int worker_cnt; /* 0: the scenario's, at event level at most 32 */
	uint64_t seed;
	double strength;   /* scales all faults; 1: the size reported by the source */
	int iteration_cnt; /* 0: 5 */
	int tp, pp, ep;	   /* 0: the scenario's */
	int onset;	   /* first iteration with the faults */
	int host_gpus;	   /* workers of a host; 0: see layout_init() */
	double skew_ms;	   /* deviation of the hosts' clocks; negative: 15 */
	uint32_t counters; /* bit per enum resource that is sampled; UINT32_MAX: all available */
};

struct simulate_options simulate_defaults(const char *scenario);

/*
 * Returns 0; -ENOENT for an unknown scenario, -E2BIG for too many faults, -EINVAL for numbers out
 * of range, -ENOMEM, with a line in err. The caller frees ret with simulate_close().
 */
_must_check_ int simulate_open(const struct simulate_options *options, struct simulation **ret,
			       struct err *err);
void simulate_close(struct simulation *sim);

int simulate_worker_cnt(const struct simulation *sim);

/* False for a worker without data. */
bool simulate_has_worker(const struct simulation *sim, int rank);

/*
 * The fingerprint of the worker's window, like that of `summarize`. The caller frees ret with
 * fingerprint_done() on success. Returns 0 or -ENOMEM. O(events of the window).
 */
_must_check_ int simulate_fingerprint(const struct simulation *sim, int rank,
				      struct fingerprint *ret);

/* Writes the worker's trace (Kineto JSON, gzip) to path. Event level only. 0 or -errno. */
_must_check_ int simulate_trace(const struct simulation *sim, int rank, const char *path,
				struct err *err);

/*
 * Writes the host's measurements, for `summarize --sidecar`: processes that used the worker's CPU,
 * and pressure. CPU time is among the trace's counters. 0 or -errno with a line in err.
 */
_must_check_ int simulate_sidecar(const struct simulation *sim, int rank, const char *path,
				  struct err *err);

/*
 * Appends the truth about the job (JSON, docs/simulate.md). If there are several faults, it
 * simulates the job twice for each of them, to measure its cost and the gain of its repair. Returns
 * 0 or -ENOMEM.
 */
_must_check_ int simulate_truth(struct simulation *sim, struct str *out);

/* Appends the table of scenarios, as text or as JSON. */
void simulate_list(struct str *out, bool json);
