/* SPDX-License-Identifier: Apache-2.0 */
/* What by_split.c and split_add.c share. Not for other files. */
#pragma once

#include "localize/witness/suspects.h"

/*
 * All iterations of a job take equally long: who works longer in one waits less in it. Where
 * many are slow, hardly anybody is late behind the typical arrival, because that is slow too,
 * and in a pipeline lateness is passed on: blame sees little of either. But what peers do
 * beside communication falls into two populations, of any size.
 */
struct split {
	struct suspects s;
	unsigned int classes; /* bit per class: what is compared */
	uint32_t *left;	      /* workers that gather() may take, ascending */
	size_t left_cnt;
	uint32_t *members; /* those who are compared, the fastest first */
	size_t member_cnt, fast_cnt;
	uint32_t *alike;       /* room for members who have the same to do */
	bool *marked;	       /* by worker: is of a slower part */
	uint32_t *leader;      /* by worker of a slower part: the fastest of the faster one */
	double *own_ns;	       /* by worker: what it does beside communication, per iteration */
	double *common_ns;     /* by worker: of that, in the kernels of all stages; 0: not known */
	const double *time_ns; /* of the two, what is compared */
	bool *common;	       /* by function: whether the kernel is one of all stages */
	double *variance;      /* by worker: of it, over the iterations; NAN: not known */
	double *typical_ns;    /* by function: what the faster part spends in it, per iteration */
	const bool *strikes;   /* by function: what strikes at random there; NULL: nothing */
};

/* Whether time in functions of a class is compared. */
static inline bool split_compares(const struct split *p, unsigned int class)
{
	return (p->classes & 1u << class) != 0;
}

/*
 * Appends an accusation of the slower part to out, or unites it with what blame accuses at the
 * same place; workers that are accused already are left out. Returns 0 or -ENOMEM.
 */
_must_check_ int split_add(const struct split *p, struct accusation slow, accusations *out);
