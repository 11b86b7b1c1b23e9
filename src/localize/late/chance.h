/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether chance can explain that one worker was late. In a healthy job ranks are last by turns:
 * each loses some time for the others, none of them all the time. The lead of a worker is what it
 * lost for the others in an iteration, less the most that any other worker lost in it.
 * Source: Student's t-test of the mean lead; docs/method.md.
 */
#pragma once

#include "localize/late/blame.h"

/* Time a worker lost for the others by what it did itself, over the window. */
double chance_own_loss(const struct blame *blame, uint32_t w);

/*
 * Whether chance could have made w lose more than all others. With one iteration false: that is
 * judged by its share of all lost time. O(iterations).
 */
bool chance_explains(const struct job *job, const struct blame *blame, uint32_t w);
