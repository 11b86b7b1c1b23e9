/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Enters each function of both runs in one account, so that the accounts add up to the difference
 * of the iterations. A function with the same identity in both runs has one account per class. A
 * renamed, moved, new or removed function has one account, which includes its descendants without
 * partner. Private to this folder.
 */
#pragma once

#include "compare/runtree.h"
#include "model/comparison.h"

/* One side of an account: times per window of the run, and their means. */
struct account_side {
	uint32_t node;	  /* NODE_NONE: not in this run */
	double *ms;	  /* by window */
	double *spread;	  /* by window: deviation of ms over the iterations; NAN unknown */
	double thread_ms; /* means over the windows */
	double runs;
};

struct account {
	enum change_kind kind;
	double class_ms[CLASS_CNT]; /* of both runs, to name the class */
	size_t function_cnt;
	struct account_side before, after;
};

struct accounts {
	struct arena arena;
	VEC(struct account) list;
};

/*
 * The runs must be paired (pairing.h). Returns 0 or -ENOMEM; accounts_done() is fine after either.
 */
_must_check_ int accounts_fill(const struct run_tree *before, const struct run_tree *after,
			       struct accounts *ret);
void accounts_done(struct accounts *accounts);
