/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the store remembers, in the words of a report: how this run's pace is to that of earlier runs,
 * findings that were here before, hosts that were accused before. Notes are copied into the
 * report's arena; without memory a report has fewer of them.
 */
#pragma once

#include "memory/earlier.h"
#include "model/report.h"

/* The comparison with earlier runs, if there is anything to say. */
void recall_note_pace(struct report *report, const struct earlier_answer *answer);

/*
 * The clause of the first sentence of a run that is slower than its earlier ones: ", but 2.0x slower than
 * 5 earlier runs ...". Nothing for any other answer, or NULL.
 */
void recall_append_slower(const struct earlier_answer *answer, const char *before,
			  struct str *out);
