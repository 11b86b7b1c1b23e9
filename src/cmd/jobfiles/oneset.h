/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Of all loaded files those that may be compared: one window of one job, each rank once. Says in
 * notes what was left out, and refuses files of several jobs with a list of them.
 */
#pragma once

#include "base/str.h"
#include "base/vec.h"
#include "format/fingerprint/fingerprint.h"

struct oneset {
	const char *rank_source; /* where the ranks come from, for the report */
	VEC(char *) notes;
	bool only_alike; /* that the hosts are of one job is likely, not sure */
};

/*
 * Reduces fps[*cnt] to the files that may be compared, frees the others, and gives every
 * fingerprint its rank. Returns 0; -EINVAL for several jobs, with lines for the user in why, all
 * fps kept; or -ENOMEM. oneset_done() in either case.
 */
_must_check_ int oneset_take(struct fingerprint **fps, size_t *cnt, struct oneset *ret,
			     struct str *why);
void oneset_done(struct oneset *oneset);

/*
 * Gives every fingerprint a rank: as jobfiles_rank(), else the lowest free number in the order of
 * the files. Returns where the ranks come from.
 */
const char *oneset_assign_ranks(struct fingerprint *const *fps, size_t cnt);
