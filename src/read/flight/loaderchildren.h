/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the children of a worker's loader did while the worker waited for them, from the samples of
 * their main threads (FLIGHT_CHILD). All children are taken together. A child that waits for work
 * has no part in it, and neither has one that starts or ends.
 */
#pragma once

#include "read/flight/placing.h"

/*
 * Of samples in [start_ns, end_ns]; sample_cnt 0: none of working children. Returns 0 or -ENOMEM.
 * O(samples + nodes).
 */
_must_check_ int flight_children(const struct flightlog *log, int64_t start_ns, int64_t end_ns,
				 struct flight_place *ret);
