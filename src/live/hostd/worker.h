/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hostd's state of one worker: its identity, ring and detector, and, while a window is open,
 * the sidecar.
 */
#pragma once

#include "detect/detector.h"
#include "detect/slices.h"
#include "format/shared/message.h"
#include "format/sidecar/bounds.h"
#include "host/process/contenders.h"
#include "host/process/ownthreads.h"
#include "host/process/threads.h"
#include "live/hostd/sharedblock.h"
#include "live/link/wire.h"
#include "live/link/wire_report.h"
#include "live/metrics/hostvalues.h"
#include "live/run/options.h"

#define WORKER_PACE_CNT 32

struct worker_window {
	bool open;     /* an order has begun and is not answered */
	bool sampling; /* the window's iterations have not ended */
	uint64_t order_id;
	struct sidecar side;
	struct thread_sampler threads;
	uint32_t cpu_cnt;     /* CPUs the process may run on */
	struct bounds bounds; /* fills side.iterations */
};

/* The overhead measurement that this worker takes part in. */
struct worker_overhead {
	uint64_t id;   /* 0: none */
	bool reported; /* its result was published */
	struct slices slices;
};

struct worker {
	uint32_t id, pid, tid;
	int32_t rank, local_rank, world_size;
	bool gone, bye, exit_known;
	bool numbered; /* rank: the smallest that was free, since the job does not say it */
	int exit_status;
	char raised[WIRE_RAISED]; /* MSG_BYE: class of the exception; "": none */
	bool off, silent; /* the block is WORKER_DISABLED; at two ticks in a row, without MSG_BYE */
	bool was_blocked; /* at the last blocked_stacks_publish() */
	struct block_reader block;
	struct detector *detector;
	uint32_t last_mark;
	int64_t last_ns;
	uint64_t step;
	struct {
		uint64_t step;
		int64_t time_ns;
	} pace[WORKER_PACE_CNT]; /* ring of the latest readings of the step counter */
	size_t pace_cnt;
	struct worker_window window;
	struct worker_overhead overhead;
	struct ownthreads own;		/* the agent's threads in the worker */
	int64_t since_ns;		/* when it connected */
	struct metrics_worker *metrics; /* owned; NULL: /metrics is off */
};

/*
 * Opens the block of block_fd, which stays the caller's. pid: from SO_PEERCRED. Returns 0,
 * -ENOMEM, or the error of block_open().
 */
_must_check_ int worker_init(struct worker *worker, const struct message *hello, uint32_t pid,
			     int block_fd, const struct run_options *options, struct err *err);
void worker_done(struct worker *worker);

/* Drains the ring: marks go to detector, metrics and, in a window, sidecar; the rest to metrics. */
void worker_drain(struct worker *worker, int64_t now_ns);

/* The window of order_id is open since now_ns. Returns 0 or -ENOMEM. */
_must_check_ int worker_begin(struct worker *worker, uint64_t order_id, int64_t now_ns);

/* Samples the threads; does nothing once the window's iterations are over. */
_must_check_ int worker_sample(struct worker *worker, int64_t now_ns);

/*
 * The trace is complete at trace_path: writes the sidecar beside it. contenders and query give
 * the other processes of the host; both may be NULL. Returns 0 or -errno with a line in err.
 * The window is closed in any case.
 */
struct worker_finish {
	const char *trace_path;
	int sidecar_fd;		  /* not -1: the sidecar is written there; trace_path is ignored */
	int64_t mono_ns, wall_ns; /* the same moment on both clocks */
	uint64_t window_ns;	  /* from the worker's message */
	uint64_t last_step;	  /* at the end of the window; 0: unknown */
	const struct contenders *contenders;
	const struct contenders_query *query;
};
_must_check_ int worker_finish(struct worker *worker, const struct worker_finish *finish,
			       struct err *err);

/* Begins an overhead measurement in the worker; slice_cnt 0 ends it. */
void worker_measure_overhead(struct worker *worker, const struct overhead_plan *plan);

/* Returns true once, with the pairs, when the slices are over. */
bool worker_overhead_cost(struct worker *worker, struct wire_slices_cost *ret);

void worker_suspend(struct worker *worker, bool stops); /* see detector_suspend() */
void worker_resume(struct worker *worker, int64_t now_ns);
void worker_bye(struct worker *worker, const struct message *message);

/* The slow pace becomes the baseline. Returns false if the worker is not slow. */
bool worker_accept(struct worker *worker);

/* The window is over without a trace. */
void worker_abandon(struct worker *worker);

/* Whether the detector's state is DETECTOR_BLOCKED and the worker is connected and not silent. */
bool worker_is_blocked(const struct worker *worker);

/* Fills the state for the hub. now_ns: a worker silent for 1 s is looked up in /proc. */
void worker_state(const struct worker *worker, int64_t now_ns, struct wire_state *ret);
