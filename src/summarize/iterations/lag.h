/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Iterations as the device sees them. Marks of iterations are made by the training thread, which
 * may run several iterations ahead of its device: it launches one in a few ms and then waits in one
 * call for all of them, and the work of the last one ends long after its mark. There an iteration
 * ends when the work that was launched until its mark has ended. Else the marks stay: what the host
 * does belongs to them.
 */
#pragma once

#include "summarize/window.h"

/*
 * Moves the bounds of the iterations (start_ns on the trace's clock), if the device is more than
 * LAG_FRAC of an iteration behind a mark. Returns 0 or -ENOMEM. O(events log iterations).
 */
_must_check_ int lag_settle(const struct trace *trace, struct window *window);
