/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Guesses the iterations of a trace in which nothing marks them: from one occurrence to the next of
 * the kernel that recurs most rarely (base/recurrence.h) on the busiest stream; without a device,
 * of such a collective. They may be layers: what is guessed says so (ITERATIONS_REPEATS).
 */
#pragma once

#include "summarize/window.h"

/*
 * Adds them to window->iterations, with times of the trace, if they cover most of the window. A live
 * window, whose stacks are sampled, gets none: its worker's marks are known or few. Returns 0 or
 * -ENOMEM.
 */
_must_check_ int repeats_add(const struct trace *trace, struct window *window);
