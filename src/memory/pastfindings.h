/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Findings of earlier runs of one name: one that a report has again was here before, and one that a
 * healthy run no longer has is gone, with the milliseconds that came back. A finding is the same one
 * when its function is (without one, its cause); ranks and hosts may differ from run to run.
 */
#pragma once

#include "memory/earlier.h"

#define PASTFINDINGS_MAX 2000u /* the newest */
/* Two runs differ by so much of an iteration without a cause (repair/repair.h has the same). */
#define PASTFINDINGS_NOISE_FRAC 0.02

struct pastfinding {
	char job[STORE_KEY_BYTES];
	char *cause, *title, *function_key;
	uint64_t number;
	int64_t made_ns;
	double gain_ms, iteration_ms;
};

struct pastfindings {
	VEC(struct pastfinding) all; /* the newest first */
};

/* Of the runs in earlier, and older ones. The caller ends with pastfindings_done(). */
_must_check_ int pastfindings_read(struct store *store, const char *name, int64_t before_ns,
				   struct pastfindings *ret, struct err *err);
void pastfindings_done(struct pastfindings *past);

/* Where a finding of now was seen before. */
struct pastfinding_seen {
	size_t job_cnt;			   /* distinct */
	const struct pastfinding *last;	   /* NULL: never */
	const struct earlier_run *without; /* a healthy run since then; NULL: none */
};

void pastfindings_find(const struct pastfindings *past, const struct earlier *earlier,
		       const char *cause, const char *function_key, struct pastfinding_seen *ret);

/*
 * Those of the latest run that was judged, if it had any: a run that is healthy now does not have them any
 * more. from: 0, then *ret_next; NULL: no more.
 */
const struct pastfinding *pastfindings_next_gone(const struct pastfindings *past,
						 const struct earlier *earlier, size_t from,
						 size_t *ret_next);

/* What came back of a finding that is gone. */
enum pastfinding_back {
	PASTFINDING_BACK,	 /* *ret_ms of an iteration */
	PASTFINDING_NOT_BACK,	 /* within what two runs differ by */
	PASTFINDING_INCOMPARABLE /* another command, machine or number of ranks */
};
enum pastfinding_back pastfindings_back(const struct pastfinding *finding,
					const struct earlier *earlier, uint32_t workers,
					const struct runpace_sum *pace, double *ret_ms);
