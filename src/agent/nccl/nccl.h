/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the profiler plugin of NCCL (collect/nccl) meets the agent: its records go
 * into the lane of the thread that NCCL calls, or one that threads without a lane
 * share; its names into the recorder's table.
 */
#pragma once

#include "agent/nccl/eventmask.h"

/* What NCCL is to tell from now on. A few stores when it changes. */
void nccl_watch(enum nccl_level level);
