/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the stacks of a rank, read from outside, show: in which function its training thread is, and
 * whether that waits for a lock, for a GPU, for other ranks, or runs without end; where the workers
 * of its loader are. By tables of names of functions; two samples are needed for a loop.
 */
#pragma once

#include "base/arena.h"
#include "model/hang/hangrecord.h"

struct stackfacts {
	uint32_t facts;	    /* enum hang_fact: those that stacks show */
	bool in_collective; /* a native frame is that of a collective: it waits for others */
	const char *stack;  /* functions of the training thread, the innermost last; "" unknown */
	const char *leaf;   /* what the innermost function waits for: "<system call read>"; "" */
	const char *says;   /* what it waits for, and who has it; "" nothing more is known */
	const char *child;  /* where a worker of its loader is: "f > <system call read>"; "" */
};

/* Texts are in the arena or the record's. Without stacks: what was shown. Returns 0 or -ENOMEM. */
_must_check_ int stackfacts_find(const struct hang_record *record, struct arena *arena,
				 struct stackfacts *ret);
