/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks by time: the state of each rank over the whole run, for the page of a job. Of a larger job
 * a row is some neighboring ranks, of which the worst state is kept. When all columns are used,
 * neighbors are merged and a column is twice as long, so memory and page do not grow with the run.
 *
 * A rank is "behind" when it has done at least two iterations less than the first, and as many as
 * the first does in 1.5 s: states of hosts come up to 0.1 s apart. It is "silent" when its step has
 * not moved for four of its iterations, and three columns. Both are measured by the hub's clock.
 */
#pragma once

#include "live/link/wire.h"

#define CARPET_ROWS_MAX 64u
#define CARPET_COLUMNS_MAX 120u /* even */

/* From harmless to bad: when states are merged, the last one stays. */
enum carpet_cell {
	CARPET_UNKNOWN,
	CARPET_WATCHING,
	CARPET_PROFILING,
	CARPET_LEARNING,
	CARPET_OFF,
	CARPET_ENDED,
	CARPET_SLOW,
	CARPET_BEHIND,
	CARPET_SILENT,
	CARPET_BLOCKED,
	CARPET_CELL_CNT
};

struct carpet_row {
	uint8_t cells[CARPET_COLUMNS_MAX]; /* enum carpet_cell */
	uint64_t step;			   /* the least of its ranks that are watched */
	int64_t moved_ns;		   /* when that was first seen */
};

/* A zeroed carpet is empty. */
struct carpet {
	int32_t world_size;
	size_t row_cnt, column_cnt;
	int64_t begin_ns, column_ns; /* wall clock of the first column; length of one */
	int64_t column_end_ns;	     /* monotonic, of the last column */
	struct carpet_row rows[CARPET_ROWS_MAX];
};

/* The states at this moment. A job of another size begins a new carpet. */
void carpet_note(struct carpet *carpet, const struct wire_state *states, size_t cnt,
		 int64_t mono_ns, int64_t wall_ns);

/* The ranks *ret_first to *ret_last of a row. */
void carpet_ranks(const struct carpet *carpet, size_t row, int32_t *ret_first, int32_t *ret_last);

/* A constant: "watching", "behind". */
const char *carpet_word(enum carpet_cell cell);
/* Of carpet_word() in a text of cells: '.', 'r'. */
char carpet_letter(enum carpet_cell cell);
