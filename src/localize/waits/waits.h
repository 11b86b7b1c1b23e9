/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the place of an accusation is a wait for something of the program's own: another thread, a
 * child process, or a coroutine of the thread's event loop. Who was awaited is measured for the
 * whole window (struct fp_host, awaited); here it is decided whether that says something of a place.
 */
#pragma once

#include "localize/witness/witness.h"

#define CALL_PREFIX "<system call " /* begins the name of a frame in which a thread waits */

/* The frame of the function that most of an accusation is in, FRAME_NONE: none. */
uint32_t waits_frame(const struct accusation *a, const struct job *job);

/* Whether a frame is a system call in which a thread uses no CPU, however few it gets. */
bool waits_sleeps(const struct job *job, uint32_t frame);

/* Whether it is any system call, or a call of Python that waits: a thread may be busy in some. */
bool waits_in_call(const struct job *job, uint32_t frame);

/*
 * Whether the thread waits there for another thread or process: in Python's own modules, or for a
 * lock in the user's function. O(frames * functions) for the latter.
 */
bool waits_for_others(const struct job *job, const struct accusation *a);

/*
 * The coroutine that the event loop of the first of the accused ran most, if the place is the loop's
 * wait for events: the user's function, "train.py(9): train". NULL: no such wait, or no coroutine
 * was seen. O(frames * functions).
 */
const char *waits_coroutine(const struct job *job, const struct accusation *a);
