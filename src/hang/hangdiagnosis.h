/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The report of a hang: no iteration ends any more. Needs no trace and no running job. Pure: records
 * of all ranks in, report out.
 *
 * A rank is accused, in this order of evidence:
 *  1. its process is gone, traced or stopped;
 *  1a. it went on without a collective in which all that are behind it wait: those wait for it;
 *  2. its marks show less progress than those of the majority, which waits for it in the
 *     next collective;
 *  3. it has not entered a collective that most members of the group have entered (desync.h);
 *  4. its stack has another function than that in which the majority waits;
 *  5. all wait in collectives, and it is in another one than most.
 * 3 to 5 are used only if the marks show no rank behind. What the stacks of an accused rank show (a
 * lock, a loop, work of a GPU) then decides which finding it is: hangrules.h. If all ranks look
 * alike, the report is inconclusive.
 * Source: docs/findings.md (PT-107, PT-902 to PT-915).
 */
#pragma once

#include "model/hang/hangrecord.h"
#include "model/report.h"

struct hang_facts {
	const struct hang_record *records; /* all ranks of the job, including those that ended */
	size_t cnt;
	bool blind; /* collectives may be unrecorded */
};

/*
 * Fills verdict, reason, findings, notes and trigger of a report whose arena is initialized; all
 * that it points to is in that arena, or static. Returns 0 or -ENOMEM.
 */
_must_check_ int hangdiagnosis_make(const struct hang_facts *facts, struct report *report);

/* Orders workers by progress: the count of steps, then the latest mark within the step. */
uint64_t hangdiagnosis_progress(const struct hang_record *record);
