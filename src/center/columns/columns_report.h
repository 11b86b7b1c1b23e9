/* SPDX-License-Identifier: Apache-2.0 */
/*
 * localize.h for columns: columns in, a report out. Accusations follow from the columns of
 * all workers. Cause, times, evidence and the points of the pictures are measured on some of
 * the accused and some of their peers, whose whole fingerprints are fetched; lost records and
 * absent samples are listed of these workers, too. Blame is not computed: columns hold no
 * collectives. A note of the report says so.
 */
#pragma once

#include "center/columns/columns.h"
#include "localize/localize.h"

#define COLUMNS_ACCUSED 32 /* of one accusation: so many are looked at in whole */
#define COLUMNS_PEERS 64   /* and so many of all workers beside them */

/*
 * The whole fingerprint of a worker, by its tag. The caller frees it with
 * fingerprint_done(). Returns 0 or a negative errno, which ends the localization.
 */
typedef int columns_fetch(void *arg, uint64_t tag, struct fingerprint *ret);

/*
 * columns: joined, with at least one worker. Same columns, same report. Returns 0, -ENOMEM
 * or what fetch() returned, with a line in err; report_done() frees *ret.
 */
_must_check_ int columns_localize(const struct columns *columns,
				  const struct localize_options *options, columns_fetch *fetch,
				  void *arg, struct report *ret, struct err *err);
