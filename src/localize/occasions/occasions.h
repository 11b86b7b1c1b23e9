/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work of few iterations of a window: checkpoints, evaluations. One window does not show how often
 * it comes, and so what it costs an iteration.
 */
#pragma once

#include "localize/witness/witness.h"

/*
 * Drops the last accusation of out if its function runs only occasionally. Returns 0 or -ENOMEM.
 * O(workers * iterations).
 */
_must_check_ int occasions_drop(const struct job *job, const struct accuse_options *options,
				struct arena *arena, accusations *out);
