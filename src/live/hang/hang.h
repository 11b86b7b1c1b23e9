/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The report of a hang: no iteration ends any more. Needs no trace. Pure: facts in, report out.
 *
 * A rank is accused, in this order of evidence:
 *  1. its process is stopped or gone;
 *  1a. it went on without a collective in which all that are behind it wait: those wait for it;
 *  2. its marks show less progress than those of the majority, which waits for it in the
 *     next collective;
 *  3. it has not entered a collective that most members of the group have entered (desync.h);
 *  4. its flight recorder shows another function than that in which the majority waits.
 * 3 and 4 are used only if the marks show no rank behind. If all ranks look alike, the report
 * is inconclusive.
 * Source: docs/findings.md (PT-107, PT-902 to PT-907).
 */
#pragma once

#include "live/link/wire.h"
#include "live/link/wire_hang.h"
#include "model/report.h"

/*
 * Whether a worker with the most progress has ended its program normally. Then the job is
 * over: the workers still connected shut down, they do not hang (but see live/ending/leaver.h).
 */
bool hang_job_is_ending(const struct wire_state *states, size_t cnt);

struct hang_facts {
	const struct wire_state *states; /* all workers of the job, including those that ended */
	size_t cnt;
	const struct wire_where *wheres; /* of the workers for which one is known, in any order */
	size_t where_cnt;
	int64_t now_ns; /* on the workers' clock */
	bool blind;	/* collectives may be unrecorded: overhead_is_blind() */
};

/* Returns 0 or -ENOMEM; *ret is to be freed with arena_done(&ret->arena) on success only. */
_must_check_ int hang_report(const struct hang_facts *facts, struct report *ret);
