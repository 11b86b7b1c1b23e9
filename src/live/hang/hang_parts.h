/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of hang.h: hang.c finds out which ranks to accuse, hangfinding.c writes it down. */
#pragma once

#include "live/hang/desync.h"
#include "live/link/wire.h"
#include "live/link/wire_hang.h"
#include "model/report.h"

/* Why a rank is accused, in order of precedence. */
enum reason {
	REASON_GONE,
	REASON_STOPPED,
	REASON_KERNEL, /* uninterruptible: disk, network file system, driver */
	REASON_LOADER,
	REASON_BEHIND,
	/* No rank is behind by its marks, but this one: */
	REASON_NOT_ENTERED, /* has not entered a collective of its group */
	REASON_ELSEWHERE,   /* is in another function than the cluster */
	REASON_ALONE,	    /* the only rank: where it is says all that can be known */
	REASON_CNT
};

#define HANG_CALLERS_MAX 16u

struct blocked {
	const struct wire_state *states;
	const struct wire_where **wheres; /* by state; NULL: unknown */
	size_t cnt;
	int64_t now_ns;
	uint64_t front; /* progress of the majority */
	bool behind_known;
	bool all_load;	      /* no worker is behind: all of them wait for their loaders */
	bool halted;	      /* a process is stopped or gone: that explains the others' waits */
	bool skipped;	      /* those behind wait in a collective, which others have not entered */
	struct desync desync; /* used if no rank is behind by its marks */
	bool desync_known;
	/* used if collectives show no rank, either: the majority's function; NULL: none */
	const char *cluster;
	/* used without a cluster, too: some wait for others, and the rest, at most half, does not */
	bool waiters_known;
	/* Stacks of workers that wait in collectives, some of them. */
	const char *in_collectives[HANG_CALLERS_MAX];
	size_t in_collective_cnt;
	struct arena *arena;
};

/* Why this worker is accused; REASON_CNT: it is not. */
enum reason hang_judge(const struct blocked *b, size_t i);

bool hang_is_stopped(const struct wire_state *state);
bool hang_is_gone(const struct wire_state *state);
/* Whether its iterations go on. */
bool hang_is_running(const struct wire_state *state);

/* The worker's latest collective of the desynchronized group; NULL: unknown. */
const struct wire_entered *hang_entered_last(const struct blocked *b, size_t i);
/* The innermost function of a worker; "": unknown. */
const char *hang_innermost(const struct blocked *b, size_t i);
/* The system call, or the GIL, that the innermost function waits for; "": none was seen. */
const char *hang_waits_for(const struct blocked *b, size_t i);

/* Fills verdict, findings and notes. blind: see struct hang_facts. Returns 0 or -ENOMEM. */
_must_check_ int hang_fill_report(const struct blocked *b, bool blind, struct report *report);
