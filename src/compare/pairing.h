/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which function of one run is which of the other. First by identity: the same name
 * below the same callers, from the roots on. What is left below two callers that are
 * one is renamed when its name is alike; kernels, which have no callers, when the same
 * operators launch them as often. What is left then and has its name elsewhere has
 * moved, unless a larger subtree disappeared around it: that is told at its top. At last
 * the only ones left at a place are renamed whatever their names.
 */
#pragma once

#include "compare/runtree.h"

/* Sets match and partner of the nodes of both runs. Returns 0 or -ENOMEM. */
_must_check_ int align_runs(struct run_tree *before, struct run_tree *after);
