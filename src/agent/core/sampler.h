/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The helper thread of the agent: samples the stacks of the Python threads without the interpreter
 * lock, ten times a second always and 500 times in a window, and keeps the account of the training
 * thread. A thread that used no CPU since its last sample has the same stack: it costs one system
 * call.
 *
 * The helper blocks all signals, holds no lock, allocates nothing, and writes to the recorder only.
 * Failed reads are counted.
 * Source: pystack.h; docs/measurements.md for what it costs.
 */
#pragma once

#include "base/base.h"

#define SAMPLER_ALWAYS_HZ 10u
#define SAMPLER_WINDOW_HZ 500u
#define SAMPLER_MAX_HZ 5000u /* a daemon that asks for more gets this */

/*
 * Paused: no samples while iterations go on. If the training thread ends no iteration for a while
 * it is sampled as in ALWAYS, so that the record shows where it is blocked.
 */
enum sampler_mode { SAMPLER_OFF, SAMPLER_PAUSED, SAMPLER_ALWAYS, SAMPLER_WINDOW };

/* Starts the thread, once in a process. stacks: pystack_open() succeeded. Returns 0 or -errno. */
_must_check_ int sampler_start(bool stacks);

/* Any thread. hz: of a window; 0: as it is, the default at first. */
void sampler_set(enum sampler_mode mode, uint32_t hz);

/*
 * Frees the window's memory once taken_id of the block reaches id, or after 10 s. SAMPLER_FREE_NOW:
 * it will not be read.
 */
#define SAMPLER_FREE_NOW UINT64_MAX
void sampler_free_window(uint64_t id);

/* In a forked child, which lacks the thread. */
void sampler_forked(void);
