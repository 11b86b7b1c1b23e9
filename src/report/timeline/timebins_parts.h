/* SPDX-License-Identifier: Apache-2.0 */
/* What timebins.c collects and timebins_json.c prints. For these files alone. */
#pragma once

#include "base/idmap.h"
#include "base/strtab.h"
#include "base/vec.h"
#include "report/timeline/timebins.h"

#define TIMEBINS_ENTRIES 4u /* of a column: the names that took most of it */

struct bin_entry {
	uint32_t name, category;
	int64_t ns; /* by itself; 0: free */
	bool flagged;
};

struct bin_open {
	int64_t end_ns;
	struct bin_entry what; /* ns: unused */
	uint32_t total;	       /* its index; UINT32_MAX: none */
};

/* Of a name in a row, in the part that is shown. */
struct bin_total {
	uint32_t name, category;
	int64_t self_ns, longest_ns;
	size_t cnt;
	bool flagged;
};

struct bin_row {
	uint32_t idx, row;
	char name[64];
	unsigned order;		   /* what is shown first; UINT_MAX: it is empty */
	int64_t busy_ns;	   /* of the part */
	struct bin_entry *entries; /* TIMEBINS_ENTRIES of each column */
	VEC(struct bin_open) open;
	VEC(struct bin_total) totals;
	struct idmap total_of; /* by name */
};

struct timebins {
	struct timebins_options options;
	struct slice_sink sink;
	int64_t zero_wall_ns, length_ns, from_ns, to_ns;
	bool has_window;
	struct strtab names;
	VEC(struct bin_row *) rows;
	struct idmap row_of; /* by idx << 32 | row */
	size_t row_left_out_cnt, name_left_out_cnt;
};

static inline int64_t timebins_column_ns(const struct timebins *bins, unsigned column)
{
	__int128 length = bins->to_ns - bins->from_ns;

	return bins->from_ns + (int64_t)(length * column / bins->options.columns);
}
