/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of hangdiagnosis.h: hangwitness.c finds out which ranks to accuse, stackfacts.c what
 * their stacks show, hangrules.c which finding that is, hangpause.c
 * what may be no hang, hangfinding.c writes it down.
 */
#pragma once

#include "hang/desync.h"
#include "hang/hangdiagnosis.h"
#include "hang/hangrules.h"
#include "hang/meetings.h"
#include "hang/stackfacts.h"
#include "hang/waitgraph.h"
#include "model/hang/hangrecord.h"
#include "model/report.h"

#define HANG_CALLERS_MAX 16u

struct blocked {
	const struct hang_record *records;
	size_t cnt;
	struct stackfacts *stackfacts; /* by record */
	struct meetings meetings;
	struct waitgraph graph;
	bool graphed;  /* the graph decides who is behind, not the numbers alone */
	bool bare;     /* neither marks nor collectives are known */
	bool any_idle; /* a rank has not entered what others have, and is in no collective at all */
	size_t *rules; /* by record: index of its rule; HANG_NO_RULE: a victim */
	uint64_t front; /* progress of the majority */
	bool behind_known;
	bool all_load;	      /* no worker is behind: all of them wait for their loaders */
	bool all_move;	      /* no rank waits: all were in other functions two seconds later */
	bool halted;	      /* a process is stopped or gone: that explains the others' waits */
	bool skipped;	      /* those behind wait in a collective, which others have not entered */
	struct desync desync; /* used if no rank is behind by its marks */
	bool desync_known;
	/* used if collectives show no rank, either: the majority's function; NULL: none */
	const char *cluster;
	/* used without a cluster, too: some wait for others, and the rest, at most half, does not */
	bool waiters_known;
	/* All wait for others, and a minority in another collective than the rest. */
	bool mismatch;
	const char *meeting; /* the majority's collective then */
	/* Stacks of workers that wait in collectives, some of them. */
	const char *in_collectives[HANG_CALLERS_MAX];
	size_t in_collective_cnt;
	struct arena *arena;
};

/* Compares the ranks' marks, then collectives, then stacks. Fills rules. Returns 0 or -ENOMEM. */
_must_check_ int hangwitness_find(struct blocked *b);

/* hangpause.c: whether an accused rank may only take long; whether all of them may, or nothing hangs. */
bool hang_may_pause(const struct blocked *b, size_t i);
bool hang_is_pause(const struct blocked *b, size_t *ret_first);
/* Fills verdict and reason. Returns 0 or -ENOMEM. */
_must_check_ int hang_say_pause(const struct blocked *b, size_t first, struct report *report);

/* The functions of a worker: of the flight recorder, else those read from outside; "": unknown. */
const char *hang_stack(const struct blocked *b, size_t i);
bool hang_is_stopped(const struct hang_record *record);
bool hang_is_gone(const struct hang_record *record);

/* The worker's latest collective of the desynchronized group; NULL: unknown. */
const struct hang_entered *hang_entered_last(const struct blocked *b, size_t i);
/* The innermost function of a worker; "": unknown. */
const char *hang_innermost(const struct blocked *b, size_t i);
/* The system call, or the GIL, that the innermost function waits for; "": none was seen. */
const char *hang_waits_for(const struct blocked *b, size_t i);
/* The function of a worker that calls a collective, "": it is in none. */
const char *hang_meeting(const struct blocked *b, size_t i);

/* Fills verdict, findings and notes. Returns 0 or -ENOMEM. */
_must_check_ int hang_fill_report(const struct blocked *b, bool blind, struct report *report);
