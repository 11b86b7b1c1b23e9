/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A part of a timeline in bounded size: columns of equal time, and in each column of a row the name that took
 * most of it by itself, without what was nested inside. It takes the slices of a timeline (slicesink.h), so it
 * has the same rows, names and aligned clocks. Slices that a finding names are flagged. Its JSON is what
 * the server draws. Memory: ranks x rows x columns, all limited; what was left out is counted.
 */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "report/timeline/timeline.h"

#define TIMEBINS_COLUMNS_MAX 400u
#define TIMEBINS_RANKS_MAX 64u		       /* shown */
#define TIMEBINS_ROWS_MAX 6u		       /* shown of a rank */
#define TIMEBINS_PRESET_NS (10 * NSEC_PER_SEC) /* at the end, where no part is asked for */

/* All is borrowed until timebins_free(). */
struct timebins_finding {
	const char *id, *name; /* name: of its function; NULL: none */
	const int *ranks;
	size_t rank_cnt;
	bool all_ranks;
};

struct timebins_rank {
	int rank;
	const char *host;
	bool shown;
	bool flagged; /* a finding names it */
};

struct timebins_options {
	const struct timebins_rank *ranks; /* in the order of the logs */
	size_t rank_cnt;
	const struct timebins_finding *findings;
	size_t finding_cnt;
	unsigned columns; /* 1 to TIMEBINS_COLUMNS_MAX */
	/* The part, from moment 0 on; to_ns 0: that of the window, else the last TIMEBINS_PRESET_NS. */
	int64_t from_ns, to_ns;
	int64_t window_wall_ns[2]; /* of the report, by wall clocks; 0: not known */
};

struct timebins;

/* NULL: out of memory. The sink is that of timebins_sink(). */
struct timebins *timebins_new(const struct timebins_options *options);
struct timebins *timebins_free(struct timebins *bins);
struct slice_sink *timebins_sink(struct timebins *bins);

/*
 * Flags the ranks that findings name, and chooses which are shown: those first, a quarter at most where not all
 * fit, the others evenly.
 */
void timebins_choose(struct timebins_rank *ranks, size_t cnt,
		     const struct timebins_finding *findings, size_t finding_cnt);

/*
 * Appends the part as JSON, docs/timebins-schema.json, after all slices were taken; results[rank_cnt] as
 * timeline_write() fills them. Returns 0 or -ENOMEM.
 */
_must_check_ int timebins_print(const struct timebins *bins, const struct timeline_rank *results,
				struct str *out);

/* A stream that takes everything and keeps nothing. NULL: out of memory. */
FILE *timebins_open_null(void);
