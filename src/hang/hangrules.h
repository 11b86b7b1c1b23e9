/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules that decide which finding a rank of a hanging job is: a table. Each row has the facts
 * that it needs and those that forbid it; the first row that fits counts. The ids are stable and
 * listed in docs/findings.md.
 */
#pragma once

#include "model/finding.h"

/* What is known of one rank, or, where it says so, of the job. */
enum hang_fact {
	HANG_ENDED = 1 << 0,
	HANG_ENDED_WELL = 1 << 1,   /* it left: its program ended by itself, or with status 0 */
	HANG_ENDED_MEMORY = 1 << 2, /* killed because memory ran out */
	HANG_TRACED = 1 << 3,
	HANG_STOPPED = 1 << 4,
	HANG_ROAMS = 1 << 5,	   /* it is known not to wait for others */
	HANG_BEHIND = 1 << 6,	   /* by its marks */
	HANG_AT_LOADER = 1 << 7,   /* by its latest mark; without marks by its stack */
	HANG_NOT_ENTERED = 1 << 8, /* a collective of its group that most have entered */
	HANG_ELSEWHERE = 1 << 9,   /* than the majority, which waits */
	HANG_MISMATCH = 1 << 10,   /* in another collective than the majority */
	HANG_ALONE = 1 << 11,	   /* the only rank */
	HANG_ACCUSED = 1 << 12,	   /* at least one of the above, or HANG_SKIPPED and ROAMS */
	HANG_IN_KERNEL = 1 << 13,  /* in uninterruptible sleep */
	HANG_LOCK = 1 << 14,	   /* its stack: waits for a lock */
	HANG_LOOP = 1 << 15,	   /* its stack, twice: runs in one function */
	HANG_GPU = 1 << 16,	   /* its stack: waits for work of a GPU */
	HANG_UNLAUNCHED = 1 << 17, /* the process that started it is gone */
	HANG_PAUSES = 1 << 21,	   /* in a function that may take long: longcalls.h */
	HANG_MOVES = 1 << 23,	   /* its stack, twice: it is at work, and in no collective */
	HANG_UNFINISHED = 1 << 24, /* its peers have finished a collective that it has not */
	HANG_ABSENT = 1 << 25,	   /* it left no dump, and others wait for it */
	HANG_UNBEGUN = 1 << 26,	   /* its device has not begun the collective its peers are in */
	HANG_HALTED = 1 << 18,	   /* the job: a process is stopped or gone, which explains waits */
	HANG_SKIPPED = 1 << 19,	   /* the job: those behind wait in a collective, others went on */
	HANG_NOBODY = 1 << 20,	   /* the job: no rank is accused */
	HANG_ALL_MOVE = 1 << 22,   /* the job: all ranks run, and their stacks move */
};

struct hang_rule {
	uint32_t needs, lacks; /* enum hang_fact */
	const char *id;	       /* NULL: the rank is a victim */
	const char *cause, *title, *advice;
	const char *place; /* the finding's name if no stack is known */
	bool by_state;	   /* the state of the process counts, not where it was */
	enum confidence confidence;
	bool pause; /* no hang yet: it may only take long */
};

#define HANG_NO_RULE SIZE_MAX

extern const struct hang_rule hangrules[];
extern const size_t hangrules_cnt;

/* The index of the rule that fits; HANG_NO_RULE: none, or that of a victim. O(rules). */
size_t hangrules_match(uint32_t facts);
