/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the members of a process group have entered and finished, compared: by dumps that say which
 * collectives are open. A member whose peers have finished a collective that it has entered has a GPU
 * that does not finish; members of one number with different operations or sizes called different
 * collectives. Sends and receives are left out: they are numbered by pairs.
 * Source: PyTorch, torch/csrc/distributed/c10d/FlightRecorder.hpp; docs/findings.md (PT-914, PT-915).
 */
#pragma once

#include "base/arena.h"
#include "model/hang/hangrecord.h"

struct meetings {
	bool *unfinished; /* by record: peers have finished what it has entered and not finished */
	bool *other; /* by record: another operation or size than most members of that number */
	bool *idle;  /* by record: it is a member of groups, and none of its collectives is open */
	/* By record: what it has not finished, and by how much it is behind; NULL: nothing. */
	const struct hang_entered **shown;
	int64_t *shown_lag;
	bool any_unfinished, any_other;
};

/*
 * Gives entries without a number (a member that has nothing open) the number before the first open one
 * of its group, in `records` themselves: their entries are copied to the arena. Returns 0 or -ENOMEM.
 */
_must_check_ int meetings_number(struct hang_record *records, size_t cnt, struct arena *arena);

/* Whether members of one collective can have both first open ones. */
bool meetings_match(const struct hang_entered *a, const struct hang_entered *b);

/* Arrays are in the arena. Returns 0 or -ENOMEM. O(entries). */
_must_check_ int meetings_find(const struct hang_record *records, size_t cnt, struct arena *arena,
			       struct meetings *ret);
