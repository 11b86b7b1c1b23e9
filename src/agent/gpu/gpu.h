/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the GPU does in a window, into the flight recorder: holds one of the back
 * ends (collect/gpu/gputrace.h) and a thread that takes its events out, which sleeps
 * between windows.
 *
 * A window is opened on the training thread, which stands still for it. It is
 * closed by that thread: what takes time at its end, a flush and a detach, is
 * the helper's, and gpu_is_closed() tells when all is in the recorder.
 */
#pragma once

#include "agent/gpu/gputrace.h"

/*
 * Returns 0; -ENOENT: the process uses no GPU that we know; -ENOTSUP: it does, but it can't be
 * recorded; -EBUSY: another tool records it, or the window before is not closed yet;
 * -ENOSPC: no lane is left for its events; another -errno. ret_why: why not, "" on success.
 */
_must_check_ int gpu_open(char ret_why[static GPUTRACE_WHY_MAX]);

/* Returns at once. Nothing happens when none is open. */
void gpu_close(void);
bool gpu_is_closed(void);

/*
 * Nobody waits for the end of the window that is being closed: what of it is late is still
 * recorded, but a detach that has not begun doesn't come any more, since the user's profiler
 * or the end of the process comes now. The next window begins with what stayed attached.
 */
void gpu_abandon(void);

/* In a forked child, where the thread is not. */
void gpu_forked(void);
