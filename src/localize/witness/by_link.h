/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the worker whose link slows a ring down, from the utilization of the ring's links
 * (fabric.h), and the cost: the critical part of the transfers of all affected workers, less
 * their waiting for late workers, times the unused share of the free rate.
 * Source: PerfTracker section 3, figures 3-5; section 6.1, figure 13.
 */
#pragma once

#include "localize/witness/witness.h"

/*
 * Accuses links that are slower than their peers', GPUs whose traffic takes PCIe where that
 * of their peers takes NVLink, and the network as a whole where the links wait by turns
 * and none is the slowest. One accusation for all functions that a link carries. Appends to out;
 * arrays live in arena. Returns 0 or -ENOMEM. O(functions * workers + collectives).
 */
_must_check_ int accuse_by_link(const struct job *job, const struct accuse_options *options,
				struct arena *arena, accusations *out);
