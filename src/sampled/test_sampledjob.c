/* SPDX-License-Identifier: Apache-2.0 */
#include "sampled/test_sampledjob.h"

#include <string.h>

#define PY(name, path, at)                                                              \
	{                                                                               \
		.kind = STACKS_PYTHON, .function = (name), .file = (path), .line = (at) \
	}
#define NATIVE(name)                                                        \
	{                                                                   \
		.kind = STACKS_NATIVE, .function = (name), .file = "lib.so" \
	}

#define TRAIN "/home/me/train.py"
#define PACKAGES "/usr/lib/python3/dist-packages/torch/"
#define ROOT_FRAMES PY("train_step", TRAIN, 20), PY("<module>", TRAIN, 40)

static const struct stacks_frame computes[] = { ROOT_FRAMES };
static const struct stacks_frame slow[] = { PY("slow", TRAIN, 12), ROOT_FRAMES };
static const struct stacks_frame stalls[] = { NATIVE("clock_nanosleep"), PY("slow", TRAIN, 12),
					      ROOT_FRAMES };
static const struct stacks_frame waits[] = {
	NATIVE("pthread_cond_wait"),
	NATIVE("_ZN4c10d7Reducer17finalize_backwardEv"),
	PY("_engine_run_backward", PACKAGES "autograd/graph.py", 900),
	ROOT_FRAMES,
};
static const struct stacks_frame loads[] = {
	NATIVE("poll"),
	PY("_try_get_data", PACKAGES "utils/data/dataloader.py", 700),
	PY("__next__", PACKAGES "utils/data/dataloader.py", 600),
	PY("<module>", TRAIN, 39),
};
static const struct stacks_frame steps[] = { PY("step", PACKAGES "optim/sgd.py", 80), ROOT_FRAMES };
static const struct stacks_frame receives[] = {
	NATIVE("_ZN4c10d16ProcessGroupGloo8RecvWork4waitENSt6chrono8durationIlSt5ratio"),
	PY("recv", PACKAGES "distributed/distributed_c10d.py", 2400),
	ROOT_FRAMES,
};
static const struct stacks_frame worker[] = {
	PY("read_shard", TRAIN, 8),
	PY("collate", TRAIN, 9),
	PY("fetch", PACKAGES "utils/data/_utils/fetch.py", 54),
	PY("_worker_loop", PACKAGES "utils/data/_utils/worker.py", 300),
	PY("<module>", TRAIN, 39),
};

static const struct sampled_stack stacks[TEST_DOES_CNT + 1] = {
	[TEST_COMPUTES] = { computes, ARRAY_SIZE(computes) },
	[TEST_SLOW] = { slow, ARRAY_SIZE(slow) },
	[TEST_STALLS] = { stalls, ARRAY_SIZE(stalls) },
	[TEST_WAITS] = { waits, ARRAY_SIZE(waits) },
	[TEST_LOADS] = { loads, ARRAY_SIZE(loads) },
	[TEST_STEPS] = { steps, ARRAY_SIZE(steps) },
	[TEST_RECEIVES] = { receives, ARRAY_SIZE(receives) },
	[TEST_DOES_CNT] = { worker, ARRAY_SIZE(worker) },
};

static bool runs(enum test_does does)
{
	return does == TEST_COMPUTES || does == TEST_SLOW || does == TEST_STEPS;
}

void test_sampledjob_make(struct test_sampledjob *ret, size_t ranks, uint32_t rounds,
			  enum test_does (*does)(size_t rank, uint32_t round, void *context),
			  void *context, const double *queued_frac)
{
	const int64_t period_ns = 50 * NSEC_PER_MSEC;

	memset(ret, 0, sizeof(*ret));
	ret->job = (struct sampled_job){ .ranks = ret->ranks,
					 .cnt = ranks,
					 .world_size = (int)ranks,
					 .round_cnt = rounds,
					 .period_ns = period_ns };
	for (size_t r = 0; r < ranks; r++) {
		struct sampled_rank *rank = &ret->ranks[r];

		*rank = (struct sampled_rank){ .rank = (int)r,
					       .pid = 100 + (uint32_t)r,
					       .command = "python train.py",
					       .error = "",
					       .moments = ret->moments[r],
					       .stacks = stacks,
					       .stack_cnt = ARRAY_SIZE(stacks) };
		for (uint32_t i = 0; i < rounds; i++) {
			const enum test_does what = does(r, i, context);
			const double queued = queued_frac != NULL ? queued_frac[r] : 0.0;

			if (what == TEST_UNSEEN)
				continue;
			ret->moments[r][rank->moment_cnt++] = (struct sampled_moment){
				.round = i,
				.stack = what,
				.child_stack = what == TEST_LOADS ? TEST_DOES_CNT : SAMPLED_NONE,
				.state = runs(what) ? 'R' : 'S',
				.time_ns = (int64_t)(i + 1) * period_ns,
				.ran_ns = (int64_t)(i * 1000),
				.queued_ns = (int64_t)((double)i * (double)period_ns * queued),
			};
		}
	}
}
