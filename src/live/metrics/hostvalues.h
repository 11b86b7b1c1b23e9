/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns hostd's data of its workers into the series of /metrics: every record of the always-on
 * rings counts once, GPU records while a window is open. Reads the recorders' shared memory;
 * no code of it runs in a worker.
 * Source: format/shared/recorder.h; docs/metrics.md.
 */
#pragma once

#include "format/shared/recorder.h"
#include "live/gpuwatch/gpuwatch.h"
#include "live/link/wire.h"
#include "live/link/wire_report.h"
#include "live/metrics/metrics.h"
#include "live/run/options.h"
#include "model/ownthread.h"

struct metrics_host;
struct metrics_worker;

/* Returns NULL when out of memory. */
struct metrics_host *metrics_host_new(const struct run_options *options);
struct metrics_host *metrics_host_free(struct metrics_host *host);

/* For pages of the metrics. Valid while host is. */
struct metrics *metrics_host_borrow(struct metrics_host *host);

/* Once a tick, after the workers. */
void metrics_host_tick(struct metrics_host *host, size_t worker_cnt, int64_t now_ns);

/* CPU time of PerfTracker's own threads. */
void metrics_host_own(struct metrics_host *host, const struct own_cpu *own);

void metrics_host_overhead(struct metrics_host *host, const struct wire_overhead *overhead);
void metrics_host_report(struct metrics_host *host, const struct wire_report *report,
			 int64_t wall_ns);
/* The state of the GPUs, about once a second; and each fault that a driver reported. */
void metrics_host_gpus(struct metrics_host *host, const struct gpuwatch_state *state);
void metrics_host_gpu_fault(struct metrics_host *host, uint32_t device, uint32_t number);

void metrics_host_refused(struct metrics_host *host, uint64_t refused);

/* How often ranks failed and were started again. */
void metrics_host_restarts(struct metrics_host *host, uint32_t restarts);

/* A process of this rank has ended; wait_status: as of waitpid(). */
void metrics_host_ended(struct metrics_host *host, int32_t rank, int wait_status);

/* A new process of this rank. Returns NULL when out of memory. */
struct metrics_worker *metrics_worker_new(struct metrics_host *host, int32_t rank,
					  int32_t local_rank);
struct metrics_worker *metrics_worker_free(struct metrics_worker *worker);

/* Counts the worker's records. All accept NULL for worker: metrics are off. */
void metrics_worker_mark(struct metrics_worker *worker, const struct ring_record *mark);
void metrics_worker_iteration(struct metrics_worker *worker, int64_t time_ns);

/* Counts new records of the worker's recorder; with_window: also of an open window's rings. */
void metrics_worker_follow(struct metrics_worker *worker, const struct flight *flight,
			   bool with_window);

/* mono_to_wall_ns: Unix time minus CLOCK_MONOTONIC. */
void metrics_worker_state(struct metrics_worker *worker, const struct wire_state *state,
			  int64_t mono_to_wall_ns);
