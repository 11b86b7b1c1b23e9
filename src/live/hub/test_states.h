/* SPDX-License-Identifier: Apache-2.0 */
/* States of workers for tests of the hub's modules. */
#pragma once

#include "format/shared/block.h"
#include "live/link/wire.h"

#define TEST_NOW_NS (1000 * NSEC_PER_SEC)

/* A healthy worker of four whose last mark is 20 s old. */
static inline struct wire_state test_worker(int rank, uint64_t step, int64_t step_ns)
{
	return (struct wire_state){ .worker = (uint32_t)rank + 1,
				    .rank = rank,
				    .world_size = 4,
				    .step = step,
				    .step_ns = step_ns,
				    .iteration_ns = step_ns,
				    .iterations = step,
				    .stride = 1,
				    .phase = PHASE_STEADY,
				    .process = 'S',
				    .last_mark = MARK_DATALOADER_END,
				    .last_ns = TEST_NOW_NS - 20 * NSEC_PER_SEC };
}
