/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Simulates the program of one worker: the training thread launches ahead of the device, the device
 * works in order, collectives begin when the worker arrives and end for all members at once.
 *
 * simulation_meet() runs all workers; each stops where it must wait for others. A worker run alone
 * afterwards finds all ends computed, and can be recorded.
 */
#pragma once

#include "simulate/simulation.h"

/* A function call on the training thread. */
struct frame {
	int64_t start_ns, end_ns;
	uint32_t parent; /* index; FRAME_NONE at the root */
	uint16_t place;
};

/* A stretch with one innermost frame. */
struct leaf {
	int64_t start_ns, end_ns;
	uint32_t frame;
	float cpu_frac, delay_frac; /* shares of it: on a CPU; runnable without one */
};

/* Work of the device. */
struct span {
	int64_t start_ns, end_ns;
	int64_t launch_ns; /* start of its runtime call */
	uint32_t frame;	   /* frame of that runtime call */
	uint32_t iteration;
	uint16_t slot;
	uint8_t kernel, group; /* enum kernel; enum group_kind, GROUP_KIND_CNT: no collective */
	int8_t to_stage;       /* transfers between stages: offset of the other stage; 0: not a
			        * transfer */
	bool receives;
	int stream;
	double size_frac; /* of its input, 1 is usual */
	double ms;	  /* a transfer: on healthy links */
};

/* The activity of a worker from its first recorded iteration on. Times of the job. */
struct record {
	VEC(struct frame) frames; /* in order of start */
	VEC(struct leaf) leaves;  /* without gaps */
	VEC(struct span) spans;	  /* in order of launch */
	VEC(int64_t) starts;	  /* of iterations, and the end of the last */
	uint32_t first_iteration;
};

void record_done(struct record *record);
void record_clear(struct record *record);

enum player_state { PLAYER_BLOCKED, PLAYER_FINISHED };

/* 40 bytes per worker: all workers of a job are in memory at once. */
struct player {
	int64_t host_ns, device_ns;
	int64_t ready_ns; /* for the operation at pc: its earliest start, once posted */
	uint32_t pc;
	uint16_t iteration;
	uint16_t place; /* innermost function of the thread */
	bool posted, queued, finished;
};

/* Workers that may resume after one has run. */
struct wake_list {
	VEC(int) ranks;
};

/*
 * Runs the worker until it must wait or has finished. Fills meetings and messages; appends ranks
 * that may have waited for it to wake. Returns the state, or -ENOMEM.
 */
_must_check_ int player_run(struct simulation *sim, int rank, struct player *player,
			    struct wake_list *wake);

/* Runs a worker of a completed job again, from begin to end. Returns 0 or -ENOMEM. */
_must_check_ int player_record(const struct simulation *sim, int rank, struct record *ret);

/* The collective of a span. */
struct meeting_id player_meeting(const struct simulation *sim, int rank, const struct span *span);
