/* SPDX-License-Identifier: Apache-2.0 */
/* A part of a timeline in bounded size (--format bins), of recorders or of traces. */
#pragma once

#include "report/timeline/timebins.h"

#include <stdio.h>

/* The part that is asked for. */
struct timeline_part {
	const struct timebins_finding *findings; /* they mark what they name */
	size_t finding_cnt;
	int64_t window_wall_ns[2]; /* of a report; 0: not known */
	int64_t columns;
	double from_s, to_s; /* to_s 0: the report's window, else the end */
};

/* What is drawn: draw() gives the slices of ranks[cnt] to sink, and everything else to out. */
struct timeline_subject {
	struct timebins_rank *ranks;
	size_t cnt;
	const struct timeline_rank *results; /* filled by draw() */
	int (*draw)(void *arg, struct slice_sink *sink, FILE *out);
	void *arg;
};

/* Writes the part as JSON to out. Returns 0 or -errno, as draw() does. */
_must_check_ int timeline_bins_write(const struct timeline_part *part,
				     const struct timeline_subject *subject, FILE *out);
