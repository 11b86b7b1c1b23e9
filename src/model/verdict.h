/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a report says of a job in one word. HEALTHY is an assertion: everything that could show a
 * fault was seen, and showed none. Each other state has its own word.
 * Source: docs/findings.md, "Verdicts".
 */
#pragma once

#include "base/base.h"

/* The values travel in struct wire_report: new verdicts go to the end. */
enum verdict {
	VERDICT_HEALTHY,
	VERDICT_ABNORMAL,      /* findings name the ranks and the function */
	VERDICT_INCONCLUSIVE,  /* the evidence is too thin */
	VERDICT_SLOW,	       /* slower than its best; the cause was not found */
	VERDICT_FAILED,	       /* the job ended with an error */
	VERDICT_STUCK,	       /* no iteration ends any more; the cause was not found */
	VERDICT_INCOMPLETE,    /* ranks are missing that may hold the answer */
	VERDICT_NOTHING_FOUND, /* by samples from outside, which cannot show health */
	VERDICT_CNT
};

/* The name in JSON and in metrics; "unknown" beyond the last. */
const char *verdict_name(enum verdict verdict);

/* The words before the first sentence of a report: "HEALTHY", "SLOW, CAUSE NOT FOUND". */
const char *verdict_words(enum verdict verdict);

/* Whether the job has a fault: abnormal, slow, failed or stuck. */
bool verdict_is_bad(enum verdict verdict);

/* Whether nothing is known to be wrong, but too little was seen: inconclusive, incomplete, nothing found. */
bool verdict_is_open(enum verdict verdict);
