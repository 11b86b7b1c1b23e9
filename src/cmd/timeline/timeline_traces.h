/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The timeline of plain traces: those of torch.profiler and of Nsight Systems. The report that
 * `perftracker analyze` gives of them marks the culprits.
 */
#pragma once

#include "base/err.h"
#include "cmd/cmd.h"
#include "cmd/timeline/timeline_bins.h"

struct timeline_request {
	const char *output; /* path, or "-" */
	double last_s;
	const rankset_vec *ranks; /* empty: all */
	bool wall_only, compress;
	const struct timeline_part *part; /* NULL: the whole trace */
};

/* What words[cnt] of the command line name. */
enum timeline_material {
	TIMELINE_RECORDERS, /* flight recorders, or nothing that is known */
	TIMELINE_TRACES,
	TIMELINE_MIXED,
};
enum timeline_material timeline_material_of(char *const *words, int cnt);

/* Draws the traces that words[cnt] name. Returns an exit status. */
int timeline_traces(const struct timeline_request *request, char *const *words, int cnt);
