/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matches the functions of two runs, in this order:
 * - by identity: the same name below the same callers, starting at the roots;
 * - renamed: similar names below matched callers; kernels, which have no callers, if the same
 *   operators launch them equally often;
 * - moved: the same name elsewhere, unless a larger subtree disappeared around it, which is
 *   reported at its top;
 * - renamed: the only unmatched functions at a place, whatever their names.
 */
#pragma once

#include "compare/runtree.h"

/* Sets match and partner of the nodes of both runs. Returns 0 or -ENOMEM. */
_must_check_ int pairing_find(struct run_tree *before, struct run_tree *after);
