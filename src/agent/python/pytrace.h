/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exact tracing of Python while a window is open: each call of a Python function,
 * and the C functions that wait or decode (pylisted.h), with start and duration, as
 * FLIGHT_PYTHON and FLIGHT_C_CALL in the lane of the thread that calls.
 *
 *	3.12 and later	sys.monitoring with built-in callbacks; all threads. A place in
 *			the code that calls a C function which is not listed is asked once
 *			in a window, then costs nothing.
 *	3.8 to 3.11	PyEval_SetProfile in all threads there are; threads that the
 *			threading module starts later join, others do not.
 *
 * If a thread sustains more than 100,000 calls a second, only its longer calls are kept; dropped
 * calls are counted (thin.h).
 *
 * A resumed generator is a call of its own, from there to its next yield. Not seen:
 * calls that began before the window; those of other threads than the stopping one
 * that end after it; what overran the ring of a lane; C functions called by C
 * functions ("with lock:"); from 3.12 on a listed function called from a place where
 * the same window first saw another one; more than 32 threads or 256 nested calls
 * (counted). Greenlets mix up the calls of their thread.
 *
 * Survives fork (pytrace_forked), exit in progress, and Python errors, which it clears. Source: PEP
 * 669; Python/C API Reference, "Profiling and Tracing".
 *
 * All functions except pytrace_forked need the interpreter lock. why[size] gets the reason of a
 * failure, NUL-terminated.
 */
#pragma once

#include "base/base.h"

/*
 * Finds the C interface. Returns 0; -ENOSYS without one, -ENOTSUP for a build whose
 * layouts differ or that has no interpreter lock.
 */
_must_check_ int pytrace_open(char *why, size_t size);

/*
 * Begins, best at an iteration mark on the training thread. calls: Python functions too; otherwise
 * only the C functions that are listed. A Python call costs 60 to 120 ns more with calls; without,
 * nothing on 3.12 and later, 20 to 90 ns before. A listed call costs 50 to 90 ns more. Returns 0;
 * -EBUSY when a profiler, a debugger or a coverage tool is active, which stays untouched;
 * -EALREADY; -ENOTSUP when not open; -EIO when Python refuses.
 *
 * On 3.12 and later it restarts disabled events (sys.monitoring.restart_events): other tools get
 * events again for places that they had disabled. Before, audit hooks see sys.setprofile for each
 * thread, at both ends of the window.
 */
_must_check_ int pytrace_start(bool calls, char *why, size_t size);

/*
 * Ends and restores the previous state. Open calls of the calling thread end now. A profiler that
 * has replaced the agent's stays. No effect when not started.
 */
void pytrace_stop(void);

/* In a forked child, which has the parent's hooks: they record nothing and remove themselves. */
void pytrace_forked(void);
