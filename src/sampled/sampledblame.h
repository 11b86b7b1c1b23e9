/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For which rank the others wait, by samples: in each round some ranks wait in a collective, and the
 * ones that do not are what they wait for. A rank that holds the others up for a share of all rounds,
 * in all parts of the window, and far more than any other rank, is behind by more than chance.
 *
 * Neighboring samples depend on each other, so the window is cut into parts, whose means are
 * compared: Student's t of the difference between the rank and the next one.
 */
#pragma once

#include "model/thresholds.h"
#include "sampled/sampledview.h"

struct sampledblame_rank {
	double waits_frac;		  /* of the rounds: it waits for other ranks */
	double hold_frac;		  /* others wait, it does not */
	double part[SAMPLED_BATCHES];	  /* hold, by part of the window */
	double loader_frac, loader_error; /* in its loader; standard error by parts */
	double runs_frac, queued_frac;	  /* on a CPU, runnable without one: by the kernel */
	bool behind;
};

struct sampledblame {
	struct sampledblame_rank *ranks;
	size_t round_cnt; /* in which all ranks were seen */
	size_t behind_cnt;
	double hold_frac; /* of those behind, the least */
	double next_frac; /* of the others, the most */
	double t;	  /* standard errors between them; 0: nothing stands out */
};

/* Returns 0 or -ENOMEM. */
_must_check_ int sampledblame_find(const struct sampledview *view, struct sampledblame *ret);

/* Whether rank `from` is one for which rank `to` waits in a round. */
bool sampledblame_waits(const struct sampledview *view, size_t round, size_t from, size_t to);

/* Mean and standard error of values[SAMPLED_BATCHES]. */
void sampledblame_mean(const double *values, double *ret_mean, double *ret_error);
