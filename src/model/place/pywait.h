/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of CPython in which a thread sleeps or waits, by their names in traces and stacks: there
 * it uses no CPU and does not hold the interpreter's lock.
 */
#pragma once

#include "base/base.h"

/*
 * name: of a frame as torch.profiler writes it, with or without the object's address:
 * "<built-in function sleep>", "<built-in method acquire of _thread.lock object at 0x7f...>".
 */
bool pywait_is(const char *name);
