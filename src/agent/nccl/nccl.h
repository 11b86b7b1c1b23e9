/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connects NCCL's profiler plugin (plugin.c) to the agent: its records go into the calling thread's
 * lane, or one that threads without a lane share; its names into the recorder's table.
 */
#pragma once

#include "agent/nccl/eventmask.h"

/* Sets which events NCCL reports. A few stores when it changes. */
void nccl_watch(enum nccl_level level);
