/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory block (memfd) shared by a worker and the daemon of its host: the worker's marks, and
 * the daemon's desired state.
 *
 * The order is a desired state, written by the daemon and read by the worker at each iteration
 * mark: no signal, no system call, no wait.
 * Source: ARCHITECTURE.md, "Processes of a live job".
 */
#pragma once

#include "base/splitmix.h"
#include "format/shared/ring.h"

/*
 * Marks: records of the training thread's ring. detail: the optimizer or loader, a small id in
 * order of appearance. extra: worker_step, for the kind of mark that counts the steps, else 0.
 * Append-only.
 */
enum mark {
	/* dataloader.next began; value: ns it took, filled by MARK_DATALOADER_END */
	MARK_DATALOADER = 1,
	MARK_DATALOADER_END,
	MARK_OPTIMIZER, /* optimizer.step returned */
	MARK_ITERATION, /* the user's own perftracker.step() */
	MARK_GC,	/* a garbage collection ended; value: ns it took; detail: generation */
	MARK_OPTIMIZER_BEGIN,
	MARK_BACKWARD, /* a backward pass ended: counts where no optimizer steps */
};

#define MARK_RING_CNT 16384u /* power of two */

#define BLOCK_MAGIC 0x50544231u /* "PTB1" */
#define BLOCK_VERSION 2u

/*
 * The desired state. The daemon writes the fields, then id with release; the
 * worker reads id with acquire. An order is executed at most once per id.
 */
struct order {
	_Atomic uint64_t id;	     /* 0: no order yet; grows by one */
	_Atomic uint64_t start_step; /* begin at the mark with this count; 0: at the next mark */
	_Atomic uint64_t window_ns;  /* length */
	_Atomic uint64_t min_steps;  /* and at least this many steps... */
	_Atomic uint64_t max_steps;  /* ...and at most this many; 0: no limit */
	_Atomic uint32_t canceled;   /* 1: ignore this order */
	/* iteration marks of one iteration (several optimizers); 0 means 1 */
	_Atomic uint32_t stride;
	_Atomic uint32_t source;    /* enum order_source */
	_Atomic uint32_t sample_hz; /* Python stacks per second in the window; 0: the default */
	_Atomic uint32_t exact;	    /* 1: trace every Python call instead of sampling */
	uint32_t reserved;
};

enum order_source {
	ORDER_SOURCE_AUTO,  /* the agent's own collectors; torch.profiler if they are unavailable */
	ORDER_SOURCE_AGENT, /* only the agent's own collectors */
	ORDER_SOURCE_TORCH, /* only torch.profiler */
};

/*
 * The overhead check: pairs of slices of iterations, with collectors on and off, at the same steps
 * on all workers. slice_cnt slices of slice_steps from start_step on: overhead_slice_is_on().
 */
struct overhead_order {
	_Atomic uint64_t id; /* as in struct order */
	_Atomic uint64_t start_step, slice_steps, slice_cnt;
	_Atomic uint32_t kind; /* enum overhead_kind */
	uint32_t reserved;
};

enum overhead_kind {
	OVERHEAD_ALWAYS, /* off: marks only; on: the always-on collectors */
	OVERHEAD_WINDOW, /* off: the always-on collectors; on: also those of a window */
};

/* Worker and daemon derive the coins of a check's pairs from its order. */
static inline uint64_t overhead_seed(uint64_t id, uint64_t start_step)
{
	return splitmix_finish(id * SPLITMIX_STEP ^ start_step);
}

/* Slices 2i and 2i + 1 are a pair: a coin decides which of them has the collectors on. */
static inline bool overhead_slice_is_on(uint64_t seed, uint64_t slice)
{
	uint64_t coin = splitmix_finish(seed + slice / 2 * SPLITMIX_STEP) >> 63;

	return (slice & 1) != coin;
}

/*
 * The shared block. Writers: worker_* and ring by the worker's training thread only; order and
 * daemon_* by the daemon only. Readers do not trust the contents: they copy first, then check
 * bounds.
 */
struct worker_block {
	uint32_t magic, version;
	uint32_t ring_cnt; /* MARK_RING_CNT */
	uint32_t reserved;
	_Atomic uint64_t worker_step;  /* iteration marks seen by the worker */
	_Atomic uint64_t worker_drops; /* marks that could not be written */
	_Atomic uint64_t head; /* records ever written; stored with release after the record */
	_Atomic uint32_t worker_state; /* enum worker_state */
	_Atomic uint32_t backoff;      /* daemon: bits of enum backoff */
	struct order order;
	struct overhead_order overhead;
	_Atomic uint64_t taken_id; /* daemon: the window of this order has been read */
	struct ring_record ring[MARK_RING_CNT];
};

/* Collectors disabled because of their overhead: bits. Written by the daemon's overhead check. */
enum backoff {
	BACKOFF_NONE = 0,
	BACKOFF_SAMPLES = 1,	 /* in a window: four of five stack samples */
	BACKOFF_OPERATORS = 2,	 /* in a window: operators */
	BACKOFF_ALWAYS = 4,	 /* between windows: everything but marks */
	BACKOFF_COLLECTIVES = 8, /* between windows: collectives by torch's hook */
};

enum worker_state { WORKER_IDLE, WORKER_PROFILING, WORKER_EXPORTING, WORKER_DISABLED };
