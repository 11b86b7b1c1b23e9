/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds how a worker used its GPUs (format/fingerprint/fingerprint_usage.h): one sweep over the
 * device work in order of start, then one over the calls that waited for it.
 */
#pragma once

#include "summarize/pass.h"

/* Fills fp->usage, fp->totals and fp->uses. Returns 0 or -ENOMEM. O(n log n) in the events. */
_must_check_ int usage_add(struct pass *p, struct fingerprint *fp);
