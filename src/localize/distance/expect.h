/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Distance from expectation: how far a function's behavior is outside the box
 * that a well-optimized job keeps.
 * Source: PerfTracker eq. 6 and 7.
 */
#pragma once

#include "base/err.h"
#include "format/fingerprint/fingerprint.h"

/* Expected box of one class: [low, high] in beta, mu and sigma. */
struct expect_box {
	double beta[2], mu[2], sigma[2];
};

struct expect_table {
	struct expect_box of_class[CLASS_CNT];
};

/*
 * The paper's table: host [0, 0.01], comm [0, 0.3], everything else [0, 1] in beta. Idle time,
 * which the paper does not mention, has the host's box: the host launched nothing.
 */
struct expect_table expect_defaults(void);

/*
 * Reads overrides from a JSON file: {"host": {"beta": [0, 0.02]}, "comm": ...}.
 * Classes and dimensions that are not named keep their defaults. Returns 0 or
 * -errno with a line in err; *table is untouched on failure.
 */
_must_check_ int expect_load(const char *path, struct expect_table *table, struct err *err);

/* D of eq. 7: Manhattan distance to the box; absent dimensions leave the sum. */
double expect_distance(const struct expect_table *table, const struct fp_function *f);
