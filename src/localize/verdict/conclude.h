/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verdict of a window, from the findings and from what was not seen. Healthy is the last of
 * the possibilities: nothing was found, and nothing was missing that could have hidden a fault.
 * Pure: facts in, verdict and reason out.
 * Source: docs/findings.md, "Verdicts".
 */
#pragma once

#include "base/base.h"
#include "model/report.h"

/* A worker that makes others wait beyond chance and is accused by no finding. */
struct conclude_late {
	int rank;	  /* -1: none */
	double ms, pct;	  /* per iteration; tail: ms of the window */
	const char *name; /* unequal, tail: where; borrowed from the job. NULL: not known */
};

struct conclude_facts {
	bool matched; /* who waited for whom is known */
	bool alone;   /* one rank, without a past and without a pace: nothing to compare it with */
	bool unrelated; /* hosts whose clocks nothing relates: between them nothing can be seen */
	bool apart;	/* each of several ranks does work of its own: none has peers */
	int unmatched_rank; /* its collectives fit those of no other rank; -1: none */
	uint64_t met_cnt;   /* matched collectives of the rank that has fewest */
	int lossy_rank;
	double lost_frac; /* of what the recorder of lossy_rank was to hold */
	double wait_ms;	  /* per iteration, maybe for an absent rank; 0: no more than usual */
	double absent_ms; /* the part of it that collectives show, beyond the shortest of their kind */
	double past_ms; /* an iteration of the past, where no trigger says; 0: now is no slower */
	double starved_ms; /* per iteration the median thread lacked a CPU; 0: not, or unknown */
	double min_gain_pct;
	struct conclude_late late, chance; /* chance: it may explain why that rank is late */
	struct conclude_late unequal;	   /* spends this where its peers spend nothing */
	struct conclude_late tail; /* longer than its peers after its last collective; in all */
	struct conclude_late pace; /* its iterations take longer than those of the typical rank */
};

/* Sets verdict and reason; all else of the report is filled. Returns 0 or -ENOMEM. */
_must_check_ int conclude(struct report *report, const struct conclude_facts *facts);
