/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The iteration sequence of a job, learned from its marks and then matched.
 *
 * Marks fall into groups: loader calls followed by optimizer steps. When M
 * periods in a row are alike, that period is the sequence of an iteration. A
 * period is one group, or several when optimizers alternate (a GAN's
 * discriminator and generator). Jobs whose marks are all of one kind have one
 * mark per group; once the script marks iterations itself, only those count.
 *
 * A learned sequence is matched as a suffix of the marks so far: marks between two
 * iterations (an evaluation, a batch that ended an epoch) are skipped and counted. It is
 * given up after K marks without a match, or when M matches in a row had something in
 * between, which is then part of the loop.
 * Source: PerfTracker, section 4.1 (M = 10, K = 200).
 */
#pragma once

#include "base/base.h"
#include "format/shared/block.h"

#define SEQUENCE_BACKWARD UINT16_MAX /* detail of a MARK_OPTIMIZER: a backward pass instead */
#define SEQUENCE_MAX 4096u	     /* symbols of one iteration; a longer one is not learned */
#define SEQUENCE_GROUP 512u /* groups of one iteration: steps of one optimizer per parameter */

struct sequence_config {
	uint32_t repeat_cnt; /* M, at least 2 */
	uint32_t lost_cnt;   /* K */
};

enum sequence_result {
	SEQUENCE_NONE,
	SEQUENCE_LEARNED,  /* another sequence than before, or the first */
	SEQUENCE_REGAINED, /* the same one as before it was lost */
	SEQUENCE_MATCHED,  /* an iteration ended with this mark: see sequence_match */
	SEQUENCE_LOST,
};

/* The latest complete iteration. */
struct sequence_match {
	int64_t begin_ns; /* its first mark: where the first loader call began */
	int64_t end_ns;	  /* its last mark: where the last step ended */
	uint32_t skipped; /* marks between it and the one before */
	/*
	 * Where a profile divides iterations: begin_ns if the iteration begins with a loader call
	 * and ends with a step, else end_ns.
	 */
	int64_t bound_ns;
};

struct sequence;

/* Returns NULL when out of memory. The caller frees with sequence_free. About 200 KB. */
struct sequence *sequence_new(const struct sequence_config *config);
struct sequence *sequence_free(struct sequence *seq);

/*
 * Handles a mark; kinds unrelated to iterations are ignored. Steps of
 * different optimizers (detail) are different symbols, loaders are not: a new
 * one each epoch is the same job. Amortized O(1), O(SEQUENCE_GROUP) at the end
 * of a group while learning. Allocates nothing.
 */
enum sequence_result sequence_mark(struct sequence *seq, uint16_t mark, uint16_t detail,
				   int64_t time_ns);

bool sequence_is_learned(const struct sequence *seq);
const struct sequence_match *sequence_borrow_match(const struct sequence *seq);

/* Marks of the kind that counts steps in one iteration (an order's stride); 0 while learning. */
uint32_t sequence_step_cnt(const struct sequence *seq);

/*
 * "5 x (loader, optimizer 1), optimizer 2", for people; "" while learning. load_cnt: loader calls
 * that the first one stands for. Cut to size - 1.
 */
void sequence_describe(const struct sequence *seq, uint32_t load_cnt, char *buf, size_t size);
