/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who waits for another process. Ranks that meet by sockets of their own have no collectives that
 * show who came last: the one that waits at its socket takes as much longer as the one that is slow.
 */
#pragma once

#include "localize/witness/witness.h"

/*
 * Takes accusations of waiting at a socket out of the list where another accusation, of other
 * workers that do not wait, loses about as much. The processes of a worker's own loader are part of
 * it: who waits for these is no victim. O(n^2) in the accusations.
 */
void waits_drop_victims(const struct job *job, accusations *list);
