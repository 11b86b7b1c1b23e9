/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records operators and collectives of PyTorch by its RecordFunction hook, from C. The callback
 * that torch runs around each operator writes one record at the operator's end (lane.h).
 * Collectives are recorded also while no window is open; the hook is then set for user scopes only.
 * Forward operators then cost what they cost without it. Each node of a backward pass still costs
 * 0.15 us more, in torch itself: it copies the list of callbacks whenever it sets a node's
 * thread-local state, twice a node. So watch no collectives in a process that has none.
 *
 * One thread at a time calls these functions, with the interpreter lock held.
 * torch may call the hook for a while after it was removed: the library must
 * never be unloaded. In a forked child the hook does nothing.
 * Source: ATen/record_function.h.
 */
#pragma once

#include "base/base.h"

/*
 * torch_version: torch.__version__ of the torch that this process has imported.
 * Returns 0, or -errno and the reason in why[size], NUL-terminated: -ENOTSUP for a version or a
 * machine on which the hook was not tested (PERFTRACKER_OPERATORS=force in the environment: the
 * version does not matter), -ENOENT when torch's library or a symbol in it is not there.
 */
_must_check_ int torchops_open(const char *torch_version, char *why, size_t size);

/*
 * Tries the hook: between begin and end the caller runs torch.empty(0) on this thread,
 * while nothing is watched. begin: 0 or -ENOTSUP (not open), -EBUSY (something is
 * watched). end: 0, or -EPROTO and the reason in why[size]: then watch nothing.
 */
_must_check_ int torchops_check_begin(void);
_must_check_ int torchops_check_end(char *why, size_t size);

/* Collectives, on all threads, in the rings that are always written. 0 or -ENOTSUP (not open). */
int torchops_watch_collectives(bool on);

/*
 * Operators, forward and backward, and user scopes, on all threads, in the rings of a window;
 * nothing is written before lane_open_window. With elements, torch copies each operator's inputs
 * for the callback, a quarter of the total cost: for some iterations only. 0 or -ENOTSUP (not
 * open).
 */
enum torchops_detail { TORCHOPS_NONE, TORCHOPS_PLAIN, TORCHOPS_ELEMENTS };
int torchops_watch_operators(enum torchops_detail detail);
