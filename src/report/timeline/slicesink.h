/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes the slices of a timeline as they are drawn, in place of the text of a trace: what
 * timebins.h draws small pictures of. The writer of the timeline calls it; of a row the slices come by
 * start, outer ones first.
 */
#pragma once

#include "base/base.h"

struct sink_slice {
	uint32_t idx;		  /* of its rank, in the order of the logs or traces */
	uint32_t row;		  /* as told by row() */
	int64_t start_ns, end_ns; /* from moment 0 of the timeline on */
	/* Borrowed for the call. shown: the name as findings have it, "train.py(7): load". */
	const char *category, *name, *shown;
	const char *finding; /* the id of the finding that names it; NULL: none, or not known */
};

struct slice_sink {
	/* Once, before all else: the wall clock of the first rank at moment 0, and how long it is. */
	int (*begin)(void *arg, int64_t zero_wall_ns, int64_t length_ns);
	/* A row of a rank, before its slices. */
	int (*row)(void *arg, uint32_t idx, uint32_t row, const char *name);
	int (*slice)(void *arg, const struct sink_slice *slice);
	void *arg;
	int error; /* the first one of the calls above, 0 or -errno; no call follows */
};
