/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The job as it is at this moment, for a page that shows it: pace, coverage, the order under way and
 * PerfTracker's own cost, as one JSON object ("Live" of docs/openapi.json). What lasts is in the
 * store; this is said once a second and forgotten.
 */
#pragma once

#include "live/hub/hub.h"

#define HUBLIVE_RANKS_MAX 64u /* listed one by one */

/* Appends the object and a line end. Returns 0 or -ENOMEM. O(workers). */
_must_check_ int hublive_print(const struct hub *hub, struct str *out);

/* Once a second, if somebody looks: the state for the page's store, and the object. */
void hublive_say(struct hub *hub, int64_t now_ns);
