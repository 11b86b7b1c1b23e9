/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's side of a worker's shared block: drains records from the ring and writes
 * orders. The block is memory of the training process, so its contents are not trusted: sizes
 * and seals are checked before it is mapped, each record is copied before it is checked, and
 * a ring with too many invalid records is given up.
 * Source: format/shared/block.h.
 */
#pragma once

#include "base/err.h"
#include "format/shared/recorder.h"

#define BLOCK_FAULTS_MAX 4096u /* invalid records after which the ring is given up */

/* A plan for all workers of a job; becomes the `order` of each block. */
struct order_plan {
	uint64_t id, start_step, window_ns;
	uint64_t steps;	 /* min_steps and max_steps of the order */
	uint32_t stride; /* iteration marks of one iteration */
	uint32_t source; /* enum order_source */
	bool exact;	 /* trace Python calls */
	bool apart;	 /* the hub's: the workers are not at one step */
};

struct block_reader {
	struct flight *flight;	    /* shared with the worker */
	struct worker_block *block; /* its first part */
	int fd;			    /* a duplicate, passed to the summarizer */
	uint64_t tail;		    /* records read so far */
	int64_t last_ns;	    /* time of the last good record */
	uint64_t overrun;	    /* records overwritten before they were read */
	uint64_t torn;		    /* records read while being written */
	uint64_t invalid;	    /* seq, mark or time out of range, head going back */
	bool given_up;
};

/*
 * Maps the block of fd, which stays the caller's. Returns 0, -EINVAL (not a sealed memory file
 * of the right size and version) or -errno, with a line in err.
 */
_must_check_ int block_open(int fd, struct block_reader *ret, struct err *err);
void block_close(struct block_reader *reader);

/*
 * Copies up to cap records to ret, in order; now_ns bounds their times. Returns their number,
 * always 0 once the ring is given up. Reads at most one ring's length of records per call.
 */
size_t block_drain(struct block_reader *reader, int64_t now_ns, struct ring_record *ret,
		   size_t cap);

/* Iteration marks the worker has counted. */
uint64_t block_step(const struct block_reader *reader);

/* Marks the worker could not write. */
uint64_t block_worker_drops(const struct block_reader *reader);

/* Writes the order: fields first, id last. */
void block_order(struct block_reader *reader, const struct order_plan *plan);

/* Slices to measure overhead with; slice_cnt 0 ends the current ones. */
struct overhead_plan {
	uint64_t id, start_step, slice_steps, slice_cnt;
	uint32_t kind;	 /* enum overhead_kind */
	uint32_t stride; /* not written to the block */
};
/* Writes the plan: fields first, id last. */
void block_measure_overhead(struct block_reader *reader, const struct overhead_plan *plan);

/* Sets the collectors that the worker switches off from its next iteration on: enum backoff. */
void block_back_off(struct block_reader *reader, uint32_t backoff);

/* Cancels the worker's order, begun or not. */
void block_cancel(struct block_reader *reader);
