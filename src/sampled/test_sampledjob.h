/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs as samples, for tests: each rank does in each round what a function of the test says. */
#pragma once

#include "model/sampled/sampledjob.h"

enum { TEST_RANKS_MAX = 8, TEST_ROUNDS_MAX = 1200 };

enum test_does {
	TEST_COMPUTES, /* train.py: train_step */
	TEST_SLOW,     /* train.py: train_step > slow, on a CPU */
	TEST_STALLS,   /* the same, blocked */
	TEST_WAITS,    /* in a backward pass, in a collective */
	TEST_LOADS,    /* in __next__ of the loader, its worker in collate > read_shard */
	TEST_STEPS,    /* in the optimizer */
	TEST_RECEIVES, /* from another rank */
	TEST_DOES_CNT,
	TEST_UNSEEN = TEST_DOES_CNT,
};

struct test_sampledjob {
	struct sampled_job job;
	struct sampled_rank ranks[TEST_RANKS_MAX];
	struct sampled_moment moments[TEST_RANKS_MAX][TEST_ROUNDS_MAX];
};

/* queued_frac[rank]: of its time, by the kernel; NULL: none. */
void test_sampledjob_make(struct test_sampledjob *ret, size_t ranks, uint32_t rounds,
			  enum test_does (*does)(size_t rank, uint32_t round, void *context),
			  void *context, const double *queued_frac);
