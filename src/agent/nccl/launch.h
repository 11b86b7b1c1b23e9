/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels that NCCL launches, timed on the GPU. NCCL reports a launch first, with its queue, and
 * then, on the same thread, its calls, as one group. So the calls of a launch are known at the end
 * of the group that follows it. A launch into a graph is not timed; its calls come on another
 * thread, when the graph is replayed.
 * Source: NCCL 2.28 to 2.32, enqueue.cc (ncclLaunchKernel, hostStreamPlanTask), profiler.cc.
 */
#pragma once

#include "agent/nccl/events.h"

#define LAUNCH_RECORDS 4u

/*
 * Returns 0 if not timed. comm 0: attributed to the communicator whose calls arrive on this thread
 * before launch_finish(), if it is only one.
 */
nccl_handle launch_start(const struct nccl_timing *timing, nccl_handle comm, void *queue);

/* After the launch was queued. Returns whether the handle is a launch's. */
bool launch_stop(const struct nccl_timing *timing, nccl_handle handle);

/* As launch_stop(), for a launch with comm 0, after its calls were reported. */
void launch_finish(const struct nccl_timing *timing, nccl_handle handle);

/* Adds a reported call of comm: its records, as written when it was queued. */
void launch_add(nccl_handle comm, const struct ring_record records[static LAUNCH_RECORDS]);

/* At the end of the group: its calls are the preceding launch's. */
void launch_end_group(const struct nccl_timing *timing);

/* The communicator was closed. */
void launch_reclaim(nccl_handle comm);
