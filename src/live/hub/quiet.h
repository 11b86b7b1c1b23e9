/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The report of a job that ended without a finding: healthy, or inconclusive if the job
 * failed, was too short, or stopped iterating for a while. Pure: facts in, report out.
 * Source: docs/findings.md.
 */
#pragma once

#include "live/link/wire.h"
#include "model/report.h"

/* What helps a job of which no iteration was seen. */
#define QUIET_ADVICE                                                                           \
	"a loop without torch's DataLoader and optimizers marks its iterations itself: "       \
	"`import perftracker`, and `perftracker.step()` at the end of each (torch before 2.5 " \
	"needs the import in any case)"

/* Least iterations from which a quiet job may be called healthy. */
#define QUIET_ITERATIONS_MIN 30u

struct quiet_facts {
	const struct wire_state *states; /* all workers that ever connected */
	size_t cnt;
	unsigned slowdowns;		     /* profiled, without a finding */
	unsigned hangs;			     /* hangs reported, without a finding */
	int exit_status;		     /* of the job */
	const struct wire_state *first_gone; /* first worker to end without MSG_BYE; NULL: none */
};

/* Returns 0 or -ENOMEM; *ret is to be freed with arena_done(&ret->arena) on success only. */
_must_check_ int quiet_report(const struct quiet_facts *facts, struct report *ret);
