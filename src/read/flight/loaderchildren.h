/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the children of a worker's loader did while the worker waited for them, from the samples of
 * their main threads (FLIGHT_CHILD): the function that most samples share, with its callers from
 * the user's own code on. All children are taken together. A child that waits for work has no part
 * in it, and neither has one that starts or ends.
 */
#pragma once

#include "format/flightlog/flightlog.h"

#define FLIGHT_PLACE_MAX 500u

struct flight_children {
	double frac;	     /* share of the working children's samples that were there */
	uint32_t sample_cnt; /* of working children; 0: nothing is known */
	/* "train.py(8): collate > train.py(3): decode > <system call read>", NUL-terminated */
	char place[FLIGHT_PLACE_MAX];
};

/* Of samples in [start_ns, end_ns]. Returns 0 or -ENOMEM. O(samples + nodes). */
_must_check_ int flight_children(const struct flightlog *log, int64_t start_ns, int64_t end_ns,
				 struct flight_children *ret);
