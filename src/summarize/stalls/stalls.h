/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds stalls of the host (format/fingerprint/fingerprint_stalls.h). An execution is compared with
 * the median execution of its function, and with what the function has of such long executions in
 * other iterations: what is long in each of them, such as the last layer of a model, is no stall. Nor
 * are waits for a device, for other ranks, for the loader or for memory, collections, what device
 * work hides, and an iteration in which most functions are longer.
 */
#pragma once

#include "summarize/pass.h"

/* Fills fp->stalls and stall_ns of fp's functions. Returns 0 or -ENOMEM. O(n log n) in the events. */
_must_check_ int stalls_add(struct pass *p, struct fingerprint *fp);
