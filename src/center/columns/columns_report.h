/* SPDX-License-Identifier: Apache-2.0 */
/*
 * localize.h for a crowd: columns in, a report out. Who is accused follows from the
 * columns of all workers. What is told of it (cause, times, evidence, points of the
 * pictures) is measured on some of the accused and some of their peers, whose whole
 * fingerprints are fetched. Nobody is asked who waited for whom; the report says so.
 */
#pragma once

#include "center/columns/columns.h"
#include "localize/localize.h"

#define CROWD_ACCUSED 32 /* of one accusation: so many are looked at in whole */
#define CROWD_PEERS 64	 /* and so many of all workers beside them */

/*
 * The whole fingerprint of a worker, by its tag. The caller frees it with
 * fingerprint_done(). Returns 0 or a negative errno, which ends the localization.
 */
typedef int crowd_fetch(void *arg, uint64_t tag, struct fingerprint *ret);

/*
 * crowd: joined, with at least one worker. Same crowd, same report. Returns 0, -ENOMEM
 * or what fetch() returned, with a line in err; report_done() frees *ret.
 */
_must_check_ int crowd_localize(const struct crowd *crowd, const struct localize_options *options,
				crowd_fetch *fetch, void *arg, struct report *ret, struct err *err);
