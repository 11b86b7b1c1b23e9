/* SPDX-License-Identifier: Apache-2.0 */
/* What the files behind serve/metrics_host.h share: the host, a worker, the names of xpu_timer. */
#pragma once

#include "base/vec.h"
#include "collective/streaming.h"
#include "format/flightlog/flightlog.h"
#include "format/shared/matmul.h"
#include "live/metrics/hostvalues.h"
#include "live/metrics/shortnames.h"

#define METRICS_PHASE_CNT 7u /* enum wire_phase */
#define METRICS_MARK_CNT 7u  /* enum mark, and 0 */
#define METRICS_GENERATION_CNT 3u

struct metrics_xpu;

struct metrics_host {
	struct metrics *metrics;
	struct metrics_xpu *xpu; /* NULL: those names are not wanted */
	struct stream stream;
	size_t worker_cnt;		       /* on this host, at the last tick */
	int64_t looked_ns;		       /* at the daemon itself, and at what is too old */
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

/* Series of a GPU event of this name; filled when it is first met. */
struct metrics_text {
	uint32_t operation;		     /* index + 1; 0: not met */
	uint32_t kernel, memop, memop_bytes; /* series + 1; 0: not met */
};

#define METRICS_XPU_MEMORY_CNT 9 /* operations on memory that xpu_timer knows and we see */

struct metrics_worker {
	struct metrics_host *host;
	char rank[12], local_rank[12]; /* "" unknown */
	struct flightlog log;
	uint64_t lost[sizeof(struct flightlog_drops) / sizeof(uint64_t)]; /* counted so far */
	uint64_t marks_lost;
	uint32_t iteration, loader, run_delay, cpu, state[METRICS_PHASE_CNT];
	uint32_t marks[METRICS_MARK_CNT], gc[METRICS_GENERATION_CNT];
	uint32_t last_mark, recent, baseline, world_size;
	uint64_t calls[FLIGHT_CALLS_CNT], mflop; /* counted so far */
	int64_t cpu_ns, delay_ns;		 /* the latest account; -1: none */
	uint64_t gc_cnt, loader_cnt, memory_cnt[METRICS_XPU_MEMORY_CNT];
	bool had_window;
	VEC(struct metrics_operation) operations;
	VEC(struct metrics_text) texts; /* by string */
};

/* A collective of a worker is over. last_start_ns: see stream_done. */
void metrics_settle(void *owner, const struct stream_member *member, int64_t last_start_ns);

/* One call of the GPU that was timed; matmul: NULL if it is no matrix multiplication. */
void metrics_take_timed(struct metrics_worker *worker, const struct ring_record *timed,
			const struct matmul *matmul);

/* How many calls there were. */
void metrics_take_calls(struct metrics_worker *worker, const struct ring_record *calls);

/* Moves what was seen of bandwidth into its gauges when 10 s are over. */
void metrics_worker_tick(struct metrics_worker *worker, int64_t now_ns);

/* --- the names of xpu_timer --- */

/* Returns NULL when out of memory. */
struct metrics_xpu *metrics_xpu_new(struct metrics *metrics);
struct metrics_xpu *metrics_xpu_free(struct metrics_xpu *xpu);

struct metrics_xpu_event {
	const struct metrics_worker *worker;
	const char *operation; /* as we call it */
	const char *dtype;     /* as we call it; "unknown" */
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

/* Makes gauges of what came; every second. */
void metrics_xpu_tick(struct metrics_xpu *xpu, int64_t now_ns);
