/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workers that lost time, each with a ledger of places. Each way to accuse decides which
 * workers stand out; the rest is common to all ways: at which places a worker lost its time,
 * whether they explain enough of it, and one accusation for all workers of one place.
 */
#pragma once

#include "base/stats.h"
#include "localize/witness/ledger.h"
#include "localize/witness/witness.h"

#define SUSPECTS_PLACES 4 /* of a worker: a fault can sit in more than one line */

/* All arrays by worker. */
struct suspects {
	const struct job *job;
	const struct accuse_options *options;
	struct arena *arena; /* of what accusations point to */
	struct arena own;    /* of the rest */
	struct ledger *of;
	uint32_t *places;	    /* SUSPECTS_PLACES each; the first is the main one */
	size_t *place_cnt;	    /* 0: spread */
	bool *stands_out;	    /* set by the way to accuse */
	bool *used;		    /* accused of something else: no company for others */
	struct stats_others *usual; /* by frame: all workers' time below it; cnt 0: unknown */
	double *scratch;
};

/* Empty ledgers for all workers. Returns 0 or -ENOMEM; suspects_done() is to follow either. */
_must_check_ int suspects_init(struct suspects *s, const struct job *job,
			       const struct accuse_options *options, struct arena *arena);
void suspects_done(struct suspects *s);

/* Finds where each worker lost its time. Call once, when the ledgers are full. */
void suspects_find_places(struct suspects *s);

/* The largest place, FRAME_NONE where the loss is spread. */
uint32_t suspects_main_place(const struct suspects *s, uint32_t w);
bool suspects_has_place(const struct suspects *s, uint32_t w, uint32_t place);

/*
 * Slower in everything is only worth an accusation beyond what machines differ by.
 * loss_ns: of worker w, over the window.
 */
bool suspects_spread_matters(const struct suspects *s, uint32_t w, double loss_ns);

/*
 * One accusation of worker w and all others that stand out as it does, and lost time at the
 * same place, by their summed ledgers. Returns 0 or -ENOMEM.
 */
_must_check_ int suspects_accuse_at(struct suspects *s, uint32_t w, uint32_t place, bool rotates,
				    accusations *out);

/* An accusation for each place at which a worker that stands out lost its time. */
_must_check_ int suspects_accuse(struct suspects *s, accusations *out);
