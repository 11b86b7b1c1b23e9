/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records the GPU's activity in a window: opens one of the back ends (gputrace.h) and has a thread
 * that drains its events into the flight recorder and sleeps between windows.
 *
 * A window is opened on the training thread, which waits for it, and closed by that thread; the
 * helper thread does the slow parts, flush and detach, and gpu_is_closed() returns whether the
 * recorder has all events.
 */
#pragma once

#include "agent/gpu/gputrace.h"

/*
 * Returns 0; -ENOENT: the process uses no known GPU; -ENOTSUP: it does, but it can't be recorded;
 * -EBUSY: another tool records it, or the window before is not closed yet; -ENOSPC: no lane is left
 * for its events; another -errno. ret_why: why not, "" on success.
 */
_must_check_ int gpu_open(char ret_why[static GPUTRACE_WHY_MAX]);

/* Returns at once. No effect when none is open. */
void gpu_close(void);
bool gpu_is_closed(void);

/*
 * The end of the closing window is no longer awaited: late events are still recorded, but a detach
 * that has not begun is skipped, since the user's profiler or the end of the process comes next.
 * The next window begins with the back end still attached.
 */
void gpu_abandon(void);

/* In a forked child, which lacks the thread. */
void gpu_forked(void);
