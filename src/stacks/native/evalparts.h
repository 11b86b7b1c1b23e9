/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of the interpreter's loop that the compiler moved away from it. GCC puts unlikely code of a
 * function elsewhere; in a stripped interpreter (Debian's 3.14) that part has no name, and threads
 * are found in it. The loop jumps into it hundreds of times, and functions are called, not jumped
 * to: so direct jumps from the one into the other tell that they belong together.
 */
#pragma once

#include "stacks/native/modules.h"

#define EVALPARTS_LOOP "_PyEval_EvalFrameDefault"

struct evalparts {
	const struct module *module;
	uintptr_t begin, end; /* the loop, in the file; 0: not found */
};

/* module: the interpreter's. */
void evalparts_open(struct evalparts *parts, const struct module *module);

/* Whether the function at [begin, end) of the file is a part of the loop. O(size of the loop). */
bool evalparts_has(const struct evalparts *parts, uintptr_t begin, uintptr_t end);
