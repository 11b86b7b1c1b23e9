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
	KIND_CNT,
};

struct hang_case {
	const char *name, *help;
	const char *causes;	 /* findings that are right, words of JSON; "" none is */
	const char *bare_causes; /* the same without stacks that show more */
	const char *function;	 /* where the rank is, if it is known */
};

extern const struct hang_case hang_cases[KIND_CNT];

enum group_kind { GROUP_DEFAULT, GROUP_DP, GROUP_TP, GROUP_CNT };

/* One collective of the list that all ranks run. */
struct hang_op {
	enum group_kind group;
	const char *name; /* "all_reduce" */
	uint32_t elements;
	const char *function; /* the user's, which calls it */
	uint32_t line;
};

/* One that a rank has launched. */
struct hang_launch {
	struct hang_op op;
	int64_t seq;
	bool faulty; /* the one at which the fault is */
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
	int worker_cnt, tp;
	int at; /* the rank with the fault; KIND_ALIKE: a member of the group with it */
	VEC(struct hang_op) ops; /* of one step */
	size_t fault_op;	 /* over all steps */
	size_t end;		 /* ops simulated */
	int64_t steps;		 /* before those that are simulated */
	bool blocking;		 /* calls of collectives wait for them */
	bool timed;		 /* the recorder knows when collectives start */
	bool only_active, framed;
	const char *version;
	struct hang_worker *workers;
};

/* Fills the workers. Returns 0 or -ENOMEM. */
_must_check_ int hangplay_run(struct hangjob *job);

int hangplay_group_size(const struct hangjob *job, enum group_kind group);
/* The index-th member of the rank's group. */
int hangplay_member(const struct hangjob *job, enum group_kind group, int rank, int index);

/* Whether the rank's device has begun the launch with this index. */
bool hangplay_has_started(const struct hangjob *job, int rank, size_t index);

uint64_t hangplay_random(const struct hangjob *job, uint64_t what, uint64_t limit);
