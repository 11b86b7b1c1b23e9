/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operations of a worker in one iteration, which its training thread executes: enter and leave
 * functions, work, launch kernels and collectives, wait for the device. Workers of one pipeline
 * stage share it. Times result only from running it (player.h).
 */
#pragma once

#include "base/vec.h"
#include "simulate/kernels.h"

#define PLACE_NONE UINT16_MAX

/*
 * A function on the training thread, or on autograd's thread while the training thread waits in its
 * call: a node of the call tree.
 */
struct place {
	uint16_t parent; /* PLACE_NONE at the root */
	uint8_t kind;	 /* enum event_kind */
	bool autograd;	 /* on autograd's thread */
	double cpu_frac; /* of its own time: 1 computes, 0 waits */
	char *name;	 /* as written by a profiler; owned */
};

typedef VEC(struct place) place_list;

enum op_kind {
	OP_ENTER,
	OP_LEAVE,
	OP_WORK,   /* work of the thread itself */
	OP_KERNEL, /* launch on the compute stream */
	OP_MEET,   /* collective on its own stream; the compute stream waits for it */
	OP_LAUNCH, /* the same without waiting */
	OP_JOIN,   /* the compute stream waits for all launched collectives of the group */
	OP_SEND,   /* to a neighboring stage, without waiting */
	OP_RECV,   /* from a neighboring stage; the compute stream waits */
	OP_WAIT,   /* the thread waits for the device */
};

/* Work that faults may prolong. */
enum work_kind {
	WORK_PLAIN,
	WORK_BATCH,  /* waiting for the next batch */
	WORK_PINNED, /* an allocation of pinned memory */
	WORK_PYTHON, /* the function affected by slow-function faults */
	WORK_RANDOM, /* a garbage collection may happen here; one of RANDOM_PLACES */
	WORK_PAUSE,  /* straggler faults pause here */
	WORK_SAVE,   /* a checkpoint, in one iteration of the window */
};

#define RANDOM_PLACES 4

struct op {
	uint8_t kind;
	uint8_t work;	/* enum work_kind; for WORK_RANDOM: WORK_RANDOM, number in slot */
	uint8_t kernel; /* enum kernel */
	uint8_t group;	/* enum group_kind */
	uint16_t place; /* OP_ENTER: the place to enter; launches: the operator's place */
	uint16_t slot;	/* number of the collective in its group and iteration, or of the message */
	double ms;	/* in a healthy job; transfers: at the nominal rate of the slowest link */
	int8_t to_stage; /* OP_SEND: 1 or -1, the direction; OP_RECV: the sender's direction */
	bool gradient;	 /* work on the input: larger inputs take longer */
};

struct program {
	VEC(struct op) ops;
	uint16_t slot_cnt[GROUP_KIND_CNT];
	uint16_t message_cnt; /* messages received per iteration */
};

struct program_options {
	const struct layout *layout;
	int layers;	  /* per stage */
	int microbatches; /* per iteration */
};

/*
 * Builds the program of a stage; appends new places to the list, callers before callees; the first
 * place encloses every iteration. Returns 0 or -ENOMEM; program_done() is fine after either.
 */
_must_check_ int program_build(struct program *program, place_list *places,
			       const struct program_options *options, int stage);
void program_done(struct program *program);
void places_done(place_list *places);

/*
 * The place of this name below parent, on the same thread, created if new; PLACE_NONE: out of
 * memory.
 */
uint16_t place_under(place_list *places, uint16_t parent, enum event_kind kind, double cpu_frac,
		     const char *name);

/*
 * The caller of a place as a profiler records it; PLACE_NONE: none. A Python function has its
 * caller even on another thread; an operator does not.
 */
static inline uint16_t place_caller(const place_list *places, uint16_t id)
{
	const struct place *place = &places->data[id];

	if (place->parent == PLACE_NONE || place->kind == KIND_PYTHON ||
	    place->autograd == places->data[place->parent].autograd)
		return place->parent;
	return PLACE_NONE;
}
