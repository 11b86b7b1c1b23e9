/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sampled stacks in the recorder: code objects become frames, frames the node of a stack. A code
 * object's names are read once; a stamp shows when its address has another owner.
 * Source: pystack.h, nametable.h.
 */
#pragma once

#include "agent/python/pystack.h"

/*
 * The node of codes[depth], the stack of a thread of that process, the innermost first; depth is at most PYSTACK_DEPTH. Returns 0; -ENOENT: a code object was freed or
 * cannot be read; -ENOSPC: the recorder has no room. The sampler's thread only.
 */
_must_check_ int stacknodes_find(const struct pystack_process *process, const uintptr_t *codes,
				 size_t depth, uint32_t *ret);
