/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What hostd saw in a stall window after a report, for the hub:
 *
 *   pt.v1.stalls.local     struct wire_stalls      hostd: why workers of this host did not run
 */
#pragma once

#include "base/base.h"

#include <string.h>

#define SUBJECT_STALLS "pt.v1.stalls.local"
#define WIRE_STALL_LINES 4u

struct wire_stalls {
	uint64_t number;   /* of the report */
	uint32_t line_cnt; /* the most important ones first */
	uint32_t found;	   /* 1: the lines are stalls; 0: there was none, and one line says so */
	uint32_t several;  /* 1: stall_frac adds up threads, whose stalls may be at the same time */
	double stall_frac; /* share of the window in which training threads stalled */
	char lines[WIRE_STALL_LINES][360]; /* sentences; end with NUL */
};

/*
 * Causes that a stall window may explain: the host lost time, and what the window of a profile shows
 * of it is where, not who.
 */
static inline bool stalls_may_explain(const char *cause)
{
	static const char *const CAUSES[] = {
		"host-stall",	     "cpu-starvation",		 "gil-contention",
		"random-stalls",     "stopped-process",		 "more-than-before",
		"slow-data-loading", "slow-function-everywhere", "unexplained-difference",
		"kernel-wait",	     "cpu-bound-python",
	};

	for (size_t i = 0; i < ARRAY_SIZE(CAUSES); i++)
		if (strcmp(cause, CAUSES[i]) == 0)
			return true;
	return false;
}
