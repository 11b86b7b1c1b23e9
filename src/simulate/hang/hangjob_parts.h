/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of hangjob.h: the job, what its ranks have entered, and where they are. */
#pragma once

#include "base/vec.h"
#include "simulate/hang/hangjob.h"

enum hang_kind {
	KIND_EXITED,
	KIND_BEHIND,
	KIND_LOADER,
	KIND_LOCK,
	KIND_LOOP,
	KIND_OPERATION,
	KIND_SIZE,
	KIND_SKIPPED,
	KIND_KERNEL,
	KIND_UNFINISHED,
	KIND_ALIKE,
	KIND_CHECKPOINT,
	KIND_COMPILE,
	KIND_GOES_ON,
	KIND_STOPPED,
	KIND_STAGE,
	KIND_TRANSFER,
	KIND_FLOWS,
	KIND_BATCH,
	KIND_CNT, /* kinds are seeds, too: new ones come last */
};

enum hang_trait {
	HANGS = 1 << 0,	  /* else the job goes on */
	HALTS = 1 << 1,	  /* the host of a rank stops before an operation */
	PIPED = 1 << 2,	  /* a pipeline instead of groups of tensors */
	BATCHED = 1 << 3, /* which sends and receives by batch_isend_irecv */
};

struct hang_case {
	const char *name, *help;
	const char *causes;	 /* findings that are right, words of JSON; "" none is */
	const char *bare_causes; /* the same without stacks that show more */
	const char *function;	 /* where the rank is, if it is known */
	uint32_t traits;	 /* enum hang_trait */
};

extern const struct hang_case hang_cases[KIND_CNT];

/* GROUP_PP: the stages of a pipeline, of which two send and receive. */
enum group_kind { GROUP_DEFAULT, GROUP_DP, GROUP_TP, GROUP_PP, GROUP_CNT };

/* One operation of the list that all ranks run; those of two stages alone are left out by the others. */
struct hang_op {
	enum group_kind group;
	const char *name; /* "all_reduce" */
	uint32_t elements;
	const char *function; /* the user's, which calls it */
	uint32_t line;
	int from, to; /* of GROUP_PP: places in the group */
};

/* One that a rank has launched. */
struct hang_launch {
	struct hang_op op;
	size_t index; /* in the list, over all steps */
	int64_t seq;  /* of sends and receives the rank's own count */
	bool faulty;  /* the one at which the fault is */
};

enum hang_place {
	PLACE_SYNC,	  /* waits for its device, at the end of a step */
	PLACE_COLLECTIVE, /* waits in the call of a collective */
	PLACE_FAULT,
	PLACE_WORKS, /* of a job that goes on */
};

struct hang_worker {
	VEC(struct hang_launch) launches;
	size_t done;		/* of launches: over */
	size_t op;		/* the next of the list, over all steps */
	int64_t seq[GROUP_CNT]; /* of the latest launch */
	bool frozen;		/* its device does not end its collective */
	enum hang_place place;
};

struct hangjob {
	struct hangjob_options options;
	enum hang_kind kind;
	int worker_cnt;
	int tp, pp; /* ranks of a group of tensors, stages; of one of them alone more than 1 */
	int at;	    /* the rank with the fault; KIND_ALIKE: a member of the group with it */
	VEC(struct hang_op) ops; /* of one step */
	size_t fault_op;	 /* over all steps */
	size_t end;		 /* ops simulated */
	int64_t steps;		 /* before those that are simulated */
	bool blocking;		 /* calls of collectives wait for them */
	bool timed;		 /* the recorder knows when collectives start */
	bool only_active, framed;
	bool eager;	   /* what is sent leaves without its receiver */
	bool synchronizes; /* KIND_STOPPED: it waited for its device */
	const char *version;
	struct hang_worker *workers;
};

/* Fills the workers. Returns 0 or -ENOMEM. */
_must_check_ int hangplay_run(struct hangjob *job);

/* Whether the rank takes part in the operation. */
bool hangplay_takes_part(const struct hangjob *job, int rank, const struct hang_op *op);

int hangplay_group_size(const struct hangjob *job, enum group_kind group);
/* The index-th member of the rank's group. */
int hangplay_member(const struct hangjob *job, enum group_kind group, int rank, int index);

/* Whether the rank's device has begun the launch with this index. */
bool hangplay_has_started(const struct hangjob *job, int rank, size_t index);

bool hangjob_has(const struct hangjob *job, enum hang_trait trait);

uint64_t hangplay_random(const struct hangjob *job, uint64_t what, uint64_t limit);
