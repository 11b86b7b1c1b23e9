/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the store remembers, in the words of a report: how this run's pace is to that of earlier runs,
 * findings that were here before, hosts that were accused before. Notes are copied into the
 * report's arena; without memory a report has fewer of them.
 */
#pragma once

#include "memory/hosttally.h"
#include "memory/pastfindings.h"
#include "model/report.h"

/* The comparison of this job with earlier runs, if there is anything to say. */
void recall_note_pace(struct report *report, const struct earlier_answer *answer, const char *key);

/*
 * The clause of the first sentence of a run that is slower than its earlier ones: ", but 2.0x slower than
 * 5 earlier runs ...". Nothing for any other answer, or NULL.
 */
void recall_append_slower(const struct earlier_answer *answer, const char *before, struct str *out);

/* For each finding of the report: that it was here before, and when. */
void recall_note_returned(struct report *report, const struct pastfindings *past,
			  const struct earlier *earlier);

/*
 * Of a run that ended well: findings of the run before that it does not have. The first of them also goes to
 * closed, as a line for the store; it stays empty without one.
 */
void recall_note_gone(struct report *report, const struct pastfindings *past,
		      const struct earlier *earlier, const struct earlier_answer *answer,
		      struct str *closed);

/* Hosts that the report accuses and other jobs accused, too. */
void recall_note_hosts(struct report *report, const struct hosttally *tally);
