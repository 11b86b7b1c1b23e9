/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plays the program of one worker: the training thread launches ahead of the
 * device, the device works in order, collectives begin when the worker is there
 * and end for all at once.
 *
 * Played together (simulation_meet) workers stop where they must wait for others;
 * played alone afterwards they find all ends known, and can be recorded.
 */
#pragma once

#include "simulate/simulation.h"

/* A function that was entered on the training thread. */
struct frame {
	int64_t start_ns, end_ns;
	uint32_t parent; /* index; FRAME_NONE at the root */
	uint16_t place;
};

/* A stretch in which one frame was the innermost. */
struct leaf {
	int64_t start_ns, end_ns;
	uint32_t frame;
	float cpu_frac, delay_frac; /* of it: on a CPU; runnable without one */
};

/* Work of the device. */
struct span {
	int64_t start_ns, end_ns;
	int64_t launch_ns; /* its runtime call began */
	uint32_t frame;	   /* that runtime call */
	uint32_t iteration;
	uint16_t slot;
	uint8_t kernel, group; /* enum kernel; enum group_kind, GROUP_KIND_CNT: no collective */
	int8_t to_stage;       /* transfers between stages: the other one; 0: none */
	bool receives;
	int stream;
	double size_frac; /* of its input, 1 is usual */
	double ms;	  /* a transfer: on healthy links */
};

/* What a worker did from its first recorded iteration on. Times as in the job. */
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

/* 40 bytes a worker: all of a job are played at once. */
struct player {
	int64_t host_ns, device_ns;
	int64_t ready_ns; /* the operation at pc: when it could begin, once posted */
	uint32_t pc;
	uint16_t iteration;
	uint16_t place; /* innermost function of the thread */
	bool posted, queued, finished;
};

/* Workers that may go on after one was played. */
struct wake_list {
	VEC(int) ranks;
};

/*
 * Plays on until the worker must wait or has finished. Meetings and messages are
 * filled; ranks that may have waited for it are appended to wake. Returns the state,
 * or -ENOMEM.
 */
_must_check_ int player_run(struct simulation *sim, int rank, struct player *player,
			    struct wake_list *wake);

/* Plays a worker of a job that was played, from begin to end. Returns 0 or -ENOMEM. */
_must_check_ int player_record(const struct simulation *sim, int rank, struct record *ret);

/* The collective of a span. */
struct meeting_id player_meeting(const struct simulation *sim, int rank, const struct span *span);
