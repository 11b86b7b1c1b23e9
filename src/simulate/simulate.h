/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Simulated training jobs whose truth is known. Every worker runs the program of
 * its pipeline stage (program.h); whoever must wait for others waits for them, so
 * that one slow worker, link or disk shows where it would in a real job.
 *
 * A job is opened once: that plays all workers against each other and keeps only
 * when each collective ended. Any worker can be played again from that alone, as a
 * trace or as a fingerprint, in any order and by several threads: the same bytes
 * come out for the same options.
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
	int worker_cnt; /* 0: as the scenario has, at event level at most 32 */
	uint64_t seed;
	double strength;   /* scales all faults; 1: as the source reports */
	int iteration_cnt; /* 0: 5 */
	int tp, pp, ep;	   /* 0: as the scenario has */
	int onset;	   /* first iteration with the faults */
	int host_gpus;	   /* workers of a host; 0: see layout_init() */
	double skew_ms;	   /* deviation of the hosts' clocks; negative: 15 */
	uint32_t counters; /* bit per enum resource that is sampled; UINT32_MAX: all it can */
};

struct simulate_options simulate_defaults(const char *scenario);

/*
 * Returns 0; -ENOENT for an unknown scenario, -E2BIG for too many faults, -EINVAL for numbers out of range, -ENOMEM,
 * with a line in err. The caller frees ret with simulate_close().
 */
_must_check_ int simulate_open(const struct simulate_options *options, struct simulation **ret,
			       struct err *err);
void simulate_close(struct simulation *sim);

int simulate_worker_cnt(const struct simulation *sim);

/* False for a worker whose data never came. */
bool simulate_has_worker(const struct simulation *sim, int rank);

/*
 * What `summarize` would make of the worker's window. The caller frees ret with
 * fingerprint_done() on success. Returns 0 or -ENOMEM. O(events of the window).
 */
_must_check_ int simulate_fingerprint(const struct simulation *sim, int rank,
				      struct fingerprint *ret);

/* Writes the worker's trace (Kineto JSON, gzip) to path. Event level only. 0 or -errno. */
_must_check_ int simulate_trace(const struct simulation *sim, int rank, const char *path,
				struct err *err);

/*
 * Writes what the worker's host saw, for `summarize --sidecar`: who took its CPU, and
 * pressure. CPU time is among the trace's counters. 0 or -errno with a line in err.
 */
_must_check_ int simulate_sidecar(const struct simulation *sim, int rank, const char *path,
				  struct err *err);

/*
 * Appends what is true of the job (JSON, docs/simulate.md). Plays the job twice for
 * each of several faults, to know what it costs and what its repair would give back. Returns 0 or -ENOMEM.
 */
_must_check_ int simulate_truth(struct simulation *sim, struct str *out);

/* Appends the table of scenarios, for people or as JSON. */
void simulate_list(struct str *out, bool json);
