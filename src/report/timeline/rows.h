/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of a track: viewers want the slices of a row nested, outer ones first. A slice goes into
 * the first row in which it fits. For the timeline's files alone.
 */
#pragma once

#include "base/vec.h"

/* Rows of a track: slices that overlap and don't nest lie one below the other. */
#define ROW_MAX 16u

/* Ends of the slices that are open in a row, outer ones first. */
struct row {
	VEC(int64_t) ends;
	bool used;
};

static inline bool row_fits(struct row *row, int64_t start_ns, int64_t end_ns)
{
	while (row->ends.cnt > 0 && row->ends.data[row->ends.cnt - 1] <= start_ns)
		row->ends.cnt--;
	return row->ends.cnt == 0 || row->ends.data[row->ends.cnt - 1] >= end_ns;
}

/* The row for the next slice, by start and longest first; ROW_MAX: none. */
static inline uint32_t rows_choose(struct row rows[static ROW_MAX], int64_t start_ns,
				   int64_t end_ns)
{
	uint32_t idx = 0;

	while (idx < ROW_MAX && !row_fits(&rows[idx], start_ns, end_ns))
		idx++;
	return idx;
}

static inline void rows_done(struct row rows[static ROW_MAX])
{
	for (size_t i = 0; i < ROW_MAX; i++)
		vec_done(&rows[i].ends);
}
