/* SPDX-License-Identifier: Apache-2.0 */
/* Private to jobfiles: the division of files into sets. */
#pragma once

#include "cmd/jobfiles/jobfiles.h"

/* Whether both say the size of their world, and not the same. */
bool jobfiles_other_world(const struct jobfile *a, const struct jobfile *b);

/*
 * Sets the set of files[used_cnt], by time, and set_cnt and clocks_off. *ret_by_turn: some sets
 * are a guess, as the files of a rank differ in nothing else. Returns 0 or -ENOMEM.
 */
_must_check_ int jobfiles_divide(struct jobfiles *j, bool *ret_by_turn);

/* How well the ends of collectives that pairs of files have in common agree. */
struct jobfiles_meeting {
	double sum_ns;	 /* of deviations */
	size_t cnt;	 /* of collectives */
	bool unclear;	 /* those of a group agree as well an iteration apart */
	bool guess_fits; /* those of a group that the traces do not name agree, and not apart */
};

/* Whether both have collectives of a process group that the traces name. */
bool jobfiles_share_group(const struct fingerprint *a, const struct fingerprint *b);

/*
 * Adds the collectives of both: their ends differ by a constant offset of the clocks and by their
 * drift, if the ranks met in them. Returns 0 or -ENOMEM.
 */
_must_check_ int jobfiles_meet(const struct fingerprint *a, const struct fingerprint *b,
			       struct jobfiles_meeting *meeting);

/* Whether enough of them agree. */
bool jobfiles_met(const struct jobfiles_meeting *meeting);

/* Whether all ranks of the world are there, each once. */
bool jobfiles_complete(const struct jobfiles *j);

/*
 * Whether two sets look like hosts of one job: other hosts, one world, the same steps, and
 * iterations of one length. That is weaker than collectives that agree.
 */
bool jobfiles_alike(const struct jobfiles *j, uint32_t a, uint32_t b);
