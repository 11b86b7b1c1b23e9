/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The length of an iteration, by a phase that comes again: the optimizer, the loader, or a backward
 * pass. Only where samples are so close that no phase can be missed: short iterations have no length
 * here.
 */
#pragma once

#include "sampled/sampledview.h"

struct sampledpace {
	double iteration_ms; /* NAN: not known */
	size_t iteration_cnt;
	const char *by; /* "optimizer steps", "loader calls", "backward passes"; "" */
};

void sampledpace_find(const struct sampledview *view, size_t rank, struct sampledpace *ret);
