/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The worker that is on its host for longest after its last collective, where the window ends. The
 * others wait for it in the next collective, which is not in the window, so blame cannot know.
 * Pauses by turns that the devices hide cost most there: a host that runs ahead meets its device
 * once in some iterations only.
 * Source: docs/method.md, "After the last collective" (not in the paper).
 */
#pragma once

#include "localize/job.h"
#include "localize/late/blame.h"
#include "localize/verdict/conclude.h"

/*
 * ret: the rank, its name NULL where no function is known. rank -1: no worker with peers is there for
 * CHANCE_PCT of the window longer than they. Returns 0 or -ENOMEM. O(workers log workers + functions *
 * workers + collectives).
 */
_must_check_ int tail_find(const struct job *job, struct conclude_late *ret);

/*
 * The rank whose iterations take longer than the same iterations of the typical rank, by CHANCE_PCT at
 * least. rank -1: none, or ranks do not meet. Returns 0 or -ENOMEM. O(workers log workers).
 */
_must_check_ int tail_find_pace(const struct job *job, const struct blame *blame,
				struct conclude_late *ret);
