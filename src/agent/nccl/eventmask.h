/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which events NCCL makes. It keeps one mask for all communicators, hands out its
 * address with each of them and looks at it before every event: so it is raised
 * and lowered here while the job runs.
 *
 *	off: no daemon, or left out		nothing
 *	always					collectives, sends and receives, network
 *						operations if a communicator crosses
 *						hosts, launches if they are timed
 *	in a window				the steps of those, too
 *
 * Never the kernel's channels (a graph captured with them calls the host at every
 * replay for ever; up to 13 % of an all-reduce in 2.31) nor the proxy's control.
 * Source: NCCL's profiler.cc.
 */
#pragma once

#include "base/base.h"

#include <stdatomic.h>

enum nccl_level { NCCL_OFF, NCCL_ALWAYS, NCCL_WINDOW };

/* A communicator that crosses hosts, or may: it has operations on the network. */
enum eventmask_reach { EVENTMASK_ONE_HOST, EVENTMASK_NETWORK };

/*
 * A communicator begins or ends. at: the address that NCCL gave with it; after the last that
 * came with an address it is not written to any more. What can't be followed, because there
 * are copies of NCCL beyond those that are remembered, gets no events.
 */
void eventmask_add(int *at, enum eventmask_reach reach);
void eventmask_remove(int *at, enum eventmask_reach reach);

/* Whether launches are timed, which NCCL tells from version 5 of the interface on. */
void eventmask_set_timing(bool on);

/* What is wanted from now on. Any thread; a few stores. */
void eventmask_set_level(enum nccl_level level);

enum nccl_level eventmask_level(void);
