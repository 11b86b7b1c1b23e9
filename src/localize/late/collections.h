/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What garbage collections cost a job. Each rank collects when its own allocations say so, so one
 * after the other makes all wait, and blame counts only by how much a rank is later than the
 * others: what two ranks collect at the same time is in no one's loss. Without collections a
 * worker would have arrived earlier by the time it collected before the collective; all end
 * together, so the worker that would then arrive last has the shortest of the sums of execution
 * and collection. How much longer that is than the shortest execution is what collections cost.
 */
#pragma once

#include "localize/witness/witness.h"

/*
 * Raises the gain of each accusation of collections to what all collections of its workers cost
 * the job. Returns 0 or -ENOMEM. O(accusations * (collectives + shares)).
 */
_must_check_ int collections_weigh(const struct job *job, const struct blame *blame,
				   accusations *list);
