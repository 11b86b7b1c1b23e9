/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One worker as its host's daemon knows it: who it is, its ring, its detector,
 * and, while a window is open, what is being recorded for the sidecar.
 */
#pragma once

#include "detect/detector.h"
#include "detect/slices.h"
#include "format/shared/message.h"
#include "host/process/contenders.h"
#include "host/process/threads.h"
#include "live/hostd/sharedblock.h"
#include "live/link/wire.h"
#include "live/metrics/hostvalues.h"
#include "live/run/options.h"

#define WORKER_PACE_CNT 32

struct worker_window {
	bool open;     /* an order has begun and is not answered */
	bool sampling; /* the profiled iterations are still running */
	uint64_t order_id;
	struct sidecar side;
	struct thread_sampler threads;
	uint32_t cpu_cnt; /* CPUs the process may use */
	bool stepped;	  /* an optimizer stepped since the last iteration bound */
};

/* The self-audit that this worker takes part in. */
struct worker_overhead {
	uint64_t id;   /* 0: none */
	bool reported; /* its result is published */
	struct slices slices;
};

struct worker {
	uint32_t id, pid, tid;
	int32_t rank, local_rank, world_size;
	bool gone, bye;
	bool off;	  /* its block says that the hook has switched itself off */
	bool silent;	  /* so it is, and not because the program ends */
	bool was_blocked; /* at the latest look of blocked_stacks_publish() */
	struct block_reader block;
	struct detector *detector;
	uint32_t last_mark;
	int64_t last_ns;
	uint64_t step;
	struct {
		uint64_t step;
		int64_t time_ns;
	} pace[WORKER_PACE_CNT]; /* ring of the latest looks at the step counter */
	size_t pace_cnt;
	struct worker_window window;
	struct worker_overhead overhead;
	struct metrics_worker *metrics; /* owned; NULL: nobody wants them */
};

/*
 * Takes over the block behind block_fd (stays the caller's). pid is the one the
 * kernel vouches for. Returns 0, -ENOMEM, or the error of block_open().
 */
_must_check_ int worker_init(struct worker *worker, const struct message *hello, uint32_t pid,
			     int block_fd, const struct run_options *options, struct err *err);
void worker_done(struct worker *worker);

/*
 * Takes the marks off the ring: to the detector, to the metrics with what else the recorder has,
 * and during a window to the sidecar.
 */
void worker_drain(struct worker *worker, int64_t now_ns);

/* The window of order_id is open since now_ns. Returns 0 or -ENOMEM. */
_must_check_ int worker_begin(struct worker *worker, uint64_t order_id, int64_t now_ns);

/* One look at the threads; does nothing when the profiled iterations are over. */
_must_check_ int worker_sample(struct worker *worker, int64_t now_ns);

/*
 * The trace is complete at trace_path: writes the sidecar beside it. query tells
 * who else was on the host; may be NULL with contenders. Returns 0 or -errno
 * with a line in err. The window is closed in any case.
 */
struct worker_finish {
	const char *trace_path;
	int sidecar_fd;		  /* not -1: the sidecar goes there, and trace_path doesn't count */
	int64_t mono_ns, wall_ns; /* one moment on both clocks */
	uint64_t window_ns;	  /* as the worker says */
	const struct contenders *contenders;
	const struct contenders_query *query;
};
_must_check_ int worker_finish(struct worker *worker, const struct worker_finish *finish,
			       struct err *err);

/* Begins an audit in the worker, or with slice_cnt 0 ends it. */
void worker_measure_overhead(struct worker *worker, const struct overhead_plan *plan);

/* Returns true once when the slices are over, with what they say. */
bool worker_overhead_cost(struct worker *worker, struct slices_cost *ret);

/* What is slow from now on is our doing, until it is resumed. */
void worker_suspend(struct worker *worker, bool suspended, int64_t now_ns);

/* The window is over without a trace. */
void worker_abandon(struct worker *worker);

/* Whether no marks come any more from a worker that made iterations. */
bool worker_is_blocked(const struct worker *worker);

/* Everything the hub needs to know. now_ns: for a worker that may be blocked. */
void worker_state(const struct worker *worker, int64_t now_ns, struct wire_state *ret);
