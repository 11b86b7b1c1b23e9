/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose link holds a ring up, from what its links do (fabric.h), and what that costs: the
 * critical part of the transfers of all whom it holds up, as far as it is no waiting for
 * somebody late, would shrink by the share of the free rate that they do not use.
 * Source: PerfTracker section 3, figures 3-5; section 6.1, figure 13.
 */
#pragma once

#include "localize/witness/witness.h"

/*
 * Accuses links that are slower than their peers', GPUs whose traffic takes PCIe where that
 * of their peers takes NVLink, and the network as a whole where the links wait by turns
 * for no one of them. One accusation for all functions that a link carries. Appends to out;
 * arrays live in arena. Returns 0 or -ENOMEM. O(functions * workers + collectives).
 */
_must_check_ int accuse_by_link(const struct job *job, const struct accuse_options *options,
				struct arena *arena, accusations *out);
