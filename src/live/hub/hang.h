/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports that need no trace: of a job that stands still, and of a job that
 * ended without anything worth a profile. Pure: what is known goes in, a report
 * comes out.
 *
 * Blocked: every rank waits in the next collective for the one that does not
 * come, so the rank that is least advanced is the one to look at; a process
 * that is stopped or gone speaks for itself. If marks don't tell, collectives and stacks
 * out of the flight recorders may: a minority that has not entered what the others did, or
 * is elsewhere while they wait. If all look alike, nobody is accused. A job that went on
 * after that is not called healthy.
 * Source: docs/findings.md (PT-107, PT-901).
 */
#pragma once

#include "live/link/wire.h"
#include "model/report.h"

/* Least iterations from which a quiet job may be called healthy. */
#define VERDICT_ITERATIONS_MIN 30u

/*
 * A worker whose program ended as it should, as far on as any other, means that
 * the job is over: those still there tidy up, they aren't stuck.
 */
bool verdict_is_ending(const struct wire_state *states, size_t cnt);

struct verdict_standstill {
	const struct wire_state *states; /* all workers of the job, the gone ones too */
	size_t cnt;
	const struct wire_where *wheres; /* of those that are known, in any order */
	size_t where_cnt;
	int64_t now_ns; /* on the workers' clock */
};

/* Returns 0 or -ENOMEM; *ret is to be freed with arena_done(&ret->arena) on success only. */
_must_check_ int verdict_blocked(const struct verdict_standstill *facts, struct report *ret);

struct verdict_facts {
	const struct wire_state *states; /* all workers that ever connected */
	size_t cnt;
	unsigned slowdowns;		     /* profiled, and no culprit found */
	unsigned standstills;		     /* blocked, and nobody accused */
	int exit_status;		     /* of the job */
	const struct wire_state *first_gone; /* first to end without a word; NULL: none */
};
_must_check_ int verdict_quiet(const struct verdict_facts *facts, struct report *ret);
