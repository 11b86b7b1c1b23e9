/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Saves workers' flight recorders as files, OUT/flight/rankN.flight: when a worker
 * ends, whatever ended it, and when `perftracker timeline` asks. Of a rank that was
 * started anew the last two processes are kept: its predecessor as rankN.before.flight.
 */
#pragma once

#include "base/err.h"
#include "live/hostd/worker.h"

#define RECORD_FOLDER "flight"

/*
 * A job begins to write to out_dir. Recorders of an earlier one there would be taken for
 * its own: they go to OUT/flight.before, as far as they can be moved.
 */
void record_begin(const char *out_dir);

/*
 * What the recorder holds now, rank, pid and host as the daemon knows them. Returns 0 or -errno
 * with a line in err. O(its size), some ms.
 */
_must_check_ int record_save(const struct worker *worker, const char *out_dir, struct err *err);
