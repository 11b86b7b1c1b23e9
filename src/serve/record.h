/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Saves workers' flight recorders as files, OUT/flight/rankN.flight: when a worker
 * ends, whatever ended it, and when `perftracker timeline` asks.
 */
#pragma once

#include "base/err.h"
#include "serve/worker.h"

#define RECORD_FOLDER "flight"

/* What the recorder holds now. Returns 0 or -errno with a line in err. O(its size), some ms. */
_must_check_ int record_save(const struct worker *worker, const char *out_dir, struct err *err);
