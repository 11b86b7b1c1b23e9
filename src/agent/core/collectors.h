/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which collectors of the agent run now. This module alone decides, from what this process can
 * record, whether a window is open, the daemon's overhead check, and the requested backoff.
 *
 *			marks	10 Hz + collectives	500 Hz + operators
 *	between windows	  x		x (collectives: in a process group only)
 *	in a window	  x		x			x
 *	overhead check	  x	  (x: of windows)
 *
 * A GPU is recorded in windows only; overhead checks skip it, since attaching is expensive.
 *
 * Called on the training thread, collectors_expect_collectives() on any, with the interpreter lock
 * held.
 * Source: ARCHITECTURE.md, "Processes of a live job".
 */
#pragma once

#include "format/shared/recorder.h"

/* Attaches to the recorder; the sources are opened one by one afterwards. */
void collectors_attach(struct flight *flight);

/* Records in the recorder that a source works (why NULL) or why it is absent. */
void collectors_note(enum flight_source source, const char *why);

/* Records that a source works, with a remark. */
void collectors_remark(enum flight_source source, const char *what);

/*
 * codes[cnt]: addresses of the code objects of the calling thread's stack, innermost first, as
 * Python reports them; the sampler's reading is checked against them.
 */
void collectors_open_stacks(const uintptr_t *codes, size_t cnt);

/* Look for torch's hook; then between begin and end the caller runs torch.empty(0). */
void collectors_open_operators(const char *torch_version);
void collectors_check_operators(bool begin);

/*
 * The process is in a group of ranks: its collectives are recorded from now on. Not before: the
 * hook that sees them costs each node of a backward pass 0.15 us, with or without collectives.
 */
void collectors_expect_collectives(void);

/* Starts the helper thread and what is always on. Returns 0 or -errno. */
_must_check_ int collectors_run(void);

/*
 * Opens a window for the order. hz: stack samples a second, 0 the default. exact: trace Python
 * calls; on failure FLIGHT_SOURCE_EXACT has the reason, and the window has samples only. whole:
 * fail if a GPU that the process uses can't be recorded. Returns 0; -ENOTSUP when stacks or
 * operators can't be recorded; -EBUSY when another tool records the GPU, or -ENODEV;
 * FLIGHT_SOURCE_GPU has the reason. On failure no window is open.
 */
_must_check_ int collectors_open_window(uint64_t order_id, uint32_t hz, bool exact, bool whole);
void collectors_close_window(void);
bool collectors_window_is_open(void);

/* Whether the recorder has all events of the last window: a GPU's events arrive late. */
bool collectors_window_is_complete(void);

/* The caller no longer waits for completion. */
void collectors_abandon_window(void);

/* At each iteration mark. Two loads when there is nothing to do. */
void collectors_step(uint64_t step);

/* Stops all collectors for good. */
void collectors_stop(void);

/* In a forked child: touches nothing that belongs to the parent. */
void collectors_forked(void);
