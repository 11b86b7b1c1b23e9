/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long those present waited for a rank that has no fingerprint. Who came last at a collective
 * shows only among its members here. But a collective that took much longer than the shortest of
 * its kind did not transfer all the time: what no present rank explains was waiting for an absent
 * one, or for the network.
 * Source: dlrm4_sleep_20ms of the real traces without its culprit (docs/method.md).
 */
#pragma once

#include "localize/late/blame.h"

/*
 * The longest such waiting of a worker, on its critical path, per iteration in ns. Collectives of
 * one group, name and size are of a kind; one alone of its kind counts as transfer. Returns 0 or
 * -ENOMEM. O(collectives + waits).
 */
_must_check_ int absentee_wait(const struct job *job, const struct blame *blame, double *ret_ns);

/* Share of all windows in communication that is no waiting for a worker known to be late. O(workers + waits). */
double absentee_comm_frac(const struct job *job, const struct blame *blame);
