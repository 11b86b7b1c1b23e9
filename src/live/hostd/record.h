/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Saves workers' flight recorders as files, OUT/flight/rankN.flight: when a worker ends, for
 * any reason, and when `perftracker timeline` requests it. For a restarted rank the last two
 * processes are kept, the previous one as rankN.before.flight.
 */
#pragma once

#include "base/err.h"
#include "live/hostd/recordername.h"
#include "live/hostd/worker.h"

/*
 * Saves the worker's recorder with the rank, pid and host that the daemon knows. Returns 0 or
 * -errno with a line in err. O(its size), some ms.
 */
_must_check_ int record_save(const struct worker *worker, const char *out_dir, struct err *err);
