/* SPDX-License-Identifier: Apache-2.0 */
/* Private to jobfiles: the division of files into sets. */
#pragma once

#include "cmd/jobfiles/jobfiles.h"

/* Whether both say the size of their world, and not the same. */
bool jobfiles_other_world(const struct jobfile *a, const struct jobfile *b);

/*
 * Sets the set of files[used_cnt], by time, and set_cnt and clocks_off. *ret_by_turn: some sets
 * are a guess, as the files of a rank differ in nothing else. Returns 0 or -ENOMEM.
 */
_must_check_ int jobfiles_divide(struct jobfiles *j, bool *ret_by_turn);

/*
 * Whether the collectives of both end together, all but for a constant: the ranks met in them.
 * Returns 1, 0, or -ENOMEM.
 */
_must_check_ int jobfiles_meet(const struct fingerprint *a, const struct fingerprint *b);
