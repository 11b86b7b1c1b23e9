/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Selects NCCL's events. NCCL keeps one mask for all communicators, passes its address with each of
 * them and checks it before every event: this module changes it while the job runs.
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

/* EVENTMASK_NETWORK: a communicator that crosses hosts, or may: it has network operations. */
enum eventmask_reach { EVENTMASK_ONE_HOST, EVENTMASK_NETWORK };

/*
 * A communicator begins or ends. at: the mask's address from NCCL; not written after the last
 * communicator with that address ends. Copies of NCCL beyond the size of the table get no events.
 */
void eventmask_add(int *at, enum eventmask_reach reach);
void eventmask_remove(int *at, enum eventmask_reach reach);

/* Whether launches are timed, which NCCL reports from version 5 of the interface on. */
void eventmask_set_timing(bool on);

/* Sets the desired level. Any thread; a few stores. */
void eventmask_set_level(enum nccl_level level);

enum nccl_level eventmask_level(void);
