/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds workers that have not entered a collective that the other members of their process
 * group have entered: those wait for them. All members number the collectives of a group alike.
 * Source: PyTorch, torch/csrc/distributed/c10d (sequence numbers); docs/method.md.
 */
#pragma once

#include "model/hang/hangrecord.h"

struct desync {
	const struct hang_entered *front; /* the latest collective of the group */
	size_t member_cnt;		  /* of the group's members with a known entry */
};

/*
 * Of several groups the one with the most members is returned. Sends and receives are left out.
 * Returns 1; 0: no group lacks a minority of its members (or one of two); -ENOMEM. O(entries).
 */
_must_check_ int desync_find(const struct hang_record *records, size_t cnt, struct desync *ret);

/* The worker's latest entry of that group; NULL: not known to be a member. */
const struct hang_entered *desync_entered(const struct desync *desync,
					  const struct hang_record *record);
