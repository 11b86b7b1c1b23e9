/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of hostvalues.h, shared by its files: the host, a worker, the names of xpu_timer. */
#pragma once

#include "base/vec.h"
#include "collective/streaming.h"
#include "format/flightlog/flightlog.h"
#include "format/shared/matmul.h"
#include "live/metrics/hostvalues.h"
#include "live/metrics/shortnames.h"

#define METRICS_PHASE_CNT 7u /* enum wire_phase */
#define METRICS_MARK_CNT 8u  /* enum mark, and 0 */
#define METRICS_GENERATION_CNT 3u

struct metrics_xpu;

struct metrics_host {
	struct metrics *metrics;
	struct metrics_xpu *xpu; /* NULL: without --metrics-compat xpu_timer */
	struct stream stream;
	size_t worker_cnt;		       /* on this host, at the last tick */
	int64_t looked_ns;		       /* when the daemon's own values were last read */
	uint64_t gpu_shown[GPUHW_DEVICES_MAX]; /* metrics of each GPU that have a series */
	VEC(struct metrics_worker *) workers;
};

/* One kind of collective on one worker. */
struct metrics_operation {
	struct collective_words words;
	uint32_t seconds, wait, transfer, launch, payload, bus_bytes, bus_time, bandwidth, rate;
	uint32_t network, network_bytes;
	double recent_bytes; /* over the bus, since */
	int64_t recent_ns, since_ns;
};

/* Series of GPU events of one name; made at its first event. */
struct metrics_text {
	uint32_t operation;		     /* index + 1; 0: none yet */
	uint32_t kernel, memop, memop_bytes; /* series + 1; 0: none yet */
};

#define METRICS_XPU_MEMORY_CNT 9 /* operations on memory that both xpu_timer and the agent know */

struct metrics_worker {
	struct metrics_host *host;
	char rank[12], local_rank[12]; /* "" unknown */
	struct flightlog log;
	uint64_t lost[sizeof(struct flightlog_drops) / sizeof(uint64_t)]; /* counted so far */
	uint64_t marks_lost;
	uint32_t iteration, loader, run_delay, cpu, state[METRICS_PHASE_CNT];
	uint32_t marks[METRICS_MARK_CNT], gc[METRICS_GENERATION_CNT];
	uint32_t last_mark, recent, baseline, best, slow_since, world_size;
	uint64_t calls[FLIGHT_CALLS_CNT], mflop; /* counted so far */
	int64_t cpu_ns, delay_ns;		 /* the latest account; -1: none */
	uint64_t gc_cnt, loader_cnt, memory_cnt[METRICS_XPU_MEMORY_CNT];
	bool had_window;
	VEC(struct metrics_operation) operations;
	VEC(struct metrics_text) texts; /* by string */
};

/* The worker's series of this metric; third: the value of the label after rank and local_rank. */
uint32_t metrics_worker_series(struct metrics_worker *worker, enum metric metric,
			       const char *third);

/*
 * Counts the collective or transfer whose first record is r[0], of `left` records. Returns how
 * many it has; 0: the last ones are not written yet.
 */
size_t metrics_take_collective(struct metrics_worker *worker, const struct ring_record *r,
			       size_t left);
void metrics_take_network_steps(struct metrics_worker *worker, const struct ring_record *record);

/* A collective of a worker is over. last_start_ns: see stream_done. */
void metrics_settle(void *owner, const struct stream_member *member, int64_t last_start_ns);

/* Counts a timed GPU call; matmul: NULL if it is not a matrix multiplication. */
void metrics_take_timed(struct metrics_worker *worker, const struct ring_record *timed,
			const struct matmul *matmul);

/* Counts calls. */
void metrics_take_calls(struct metrics_worker *worker, const struct ring_record *calls);

/* Updates the bandwidth gauges every 10 s. */
void metrics_worker_tick(struct metrics_worker *worker, int64_t now_ns);

/* --- the names of xpu_timer --- */

/* Returns NULL when out of memory. */
struct metrics_xpu *metrics_xpu_new(struct metrics *metrics);
struct metrics_xpu *metrics_xpu_free(struct metrics_xpu *xpu);

struct metrics_xpu_event {
	const struct metrics_worker *worker;
	const char *operation; /* PerfTracker's name */
	const char *dtype;     /* PerfTracker's name, or "unknown" */
	const char *transport; /* "IntraNode", "InterNode" */
	int64_t dur_ns, bytes; /* -1: unknown */
	double bus_bytes;      /* 0: unknown */
};

void metrics_xpu_collective(struct metrics_xpu *xpu, const struct metrics_xpu_event *event);
void metrics_xpu_kernel(struct metrics_xpu *xpu, const struct metrics_worker *worker,
			const char *kind, int64_t dur_ns);
/* dtype: as matmul_type_name() has it. flop 0: as metrics_xpu_kernel(). */
void metrics_xpu_matmul(struct metrics_xpu *xpu, const struct metrics_worker *worker,
			const char *dtype, int64_t dur_ns, double flop);

/* what: memop_kind() of a copy, or the name of a call; others are not counted. */
void metrics_xpu_memory(struct metrics_worker *worker, const char *what);
void metrics_xpu_state(struct metrics_xpu *xpu, const struct metrics_worker *worker,
		       uint32_t phase);

/* Updates the gauges from recent events; called every second. */
void metrics_xpu_tick(struct metrics_xpu *xpu, int64_t now_ns);
