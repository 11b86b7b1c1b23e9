/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time that workers lost, by function and by place. One slow function shows in many
 * leaves below it, and in every caller above it: the place is the deepest frame that
 * still holds most of the loss.
 */
#pragma once

#include "localize/job.h"
#include "model/thresholds.h"

struct ledger {
	double *of_function; /* by job function, ns over the window */
	double *below;	     /* by frame: its subtree */
	double total;	     /* with what no function explains */
	double listed;	     /* of it, in functions */
};

/* An empty ledger, arrays in arena. Returns 0 or -ENOMEM. */
_must_check_ int ledger_init(struct ledger *l, const struct job *job, struct arena *arena);

/* function: FRAME_NONE for time that no listed function explains. */
void ledger_add(struct ledger *l, uint32_t function, double ns);
void ledger_merge(struct ledger *l, const struct ledger *other, const struct job *job);

/* Computes the sums over subtrees. Call after the last ledger_add(). */
void ledger_sum(struct ledger *l, const struct job *job);

/*
 * Gives the subtree of place, which has some, ns of what is listed; the rest keeps its proportions.
 * After ledger_sum().
 */
void ledger_move(struct ledger *l, const struct job *job, uint32_t place, double ns);

/* The deepest frame that holds LEDGER_MOST of the listed time; FRAME_NONE: there is none. */
uint32_t ledger_place(const struct ledger *l, const struct job *job);

/* Time lost at a place, FRAME_NONE: everywhere. */
double ledger_at(const struct ledger *l, uint32_t place);

/*
 * The class that holds most of a place's lost time, and the function that does; where the
 * place is everywhere (FRAME_NONE), the largest function of that class. FRAME_NONE: none.
 */
uint32_t ledger_main(const struct ledger *l, const struct job *job, uint32_t place,
		     uint8_t *ret_class);
