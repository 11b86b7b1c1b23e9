/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which rank waits for which, by dumps that say which collectives are open. A rank's *head* is the open
 * collective that it launched first; its device is at that one. The rank waits for the members of the
 * head's group that have not finished it and whose own head is another one, or that have none. Who is waited
 * for and waits for no such member is where the chain ends: it has not entered the head, or all members
 * of the group are at one head and it does not end. A send or receive is the head of two ranks, who of them
 * is not at it is waited for; with unknown ranks, or in a batch, it ends the chain: unknown.
 * Source: PyTorch, torch/csrc/distributed/c10d/FlightRecorder.hpp.
 */
#pragma once

#include "base/arena.h"
#include "model/hang/hangrecord.h"

struct waitgraph {
	bool known; /* dumps say what is open, and something is */
	bool whole; /* all ranks wait by their heads: their hosts are not behind */
	bool *behind; /* by record: others are at a head that it has not entered, it waits for none such */
	bool *other; /* by record: at the head of its group's others, with another operation or size */
	bool *unbegun; /* by record: its device has not begun the head that its group's others have */
	int *absent;   /* ranks without a record, if the chains end there alone */
	size_t absent_cnt;
};

/* Arrays are in the arena, with room for records of absent ranks behind. Returns 0 or -ENOMEM. O(entries + members of groups). */
_must_check_ int waitgraph_find(const struct hang_record *records, size_t cnt, struct arena *arena,
				struct waitgraph *ret);
