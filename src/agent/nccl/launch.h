/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels that NCCL launches, timed on the GPU. NCCL tells of a launch first, with its queue, and
 * then, on the same thread, of the calls that were in it: as one group. So what a launch was is
 * known at the end of the group behind it. A launch into a graph is not timed; its calls come on
 * another thread, when the graph is replayed.
 * Source: NCCL 2.28 to 2.32, enqueue.cc (ncclLaunchKernel, hostStreamPlanTask), profiler.cc.
 */
#pragma once

#include "agent/nccl/events.h"

#define LAUNCH_RECORDS 4u

/*
 * 0: it is not timed. comm: whose launch it is; 0: of whoever is told of on this thread until
 * launch_finish(), if that is one communicator.
 */
nccl_handle launch_start(const struct nccl_timing *timing, nccl_handle comm, void *queue);

/* Whether it is one; the launch is in the queue. */
bool launch_stop(const struct nccl_timing *timing, nccl_handle handle);

/* As launch_stop(), for one without a communicator; its calls have been told of. */
void launch_finish(const struct nccl_timing *timing, nccl_handle handle);

/* A call of comm was told of: its records, as they were written when it was queued. */
void launch_add(nccl_handle comm, const struct ring_record records[static LAUNCH_RECORDS]);

/* The group is at its end: what it had is told of the launch before it. */
void launch_tell(const struct nccl_timing *timing);

/* The communicator is no more. */
void launch_reclaim(nccl_handle comm);
