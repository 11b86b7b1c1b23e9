/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who has not entered a collective in which the others of its group stand: those wait for it,
 * whatever it does. Collectives of a group have numbers, which all members count alike.
 * Source: PyTorch, torch/csrc/distributed/c10d (sequence numbers); docs/method.md.
 */
#pragma once

#include "live/link/wire.h"

struct missing {
	const struct wire_entered *front; /* the collective, as one who stands in it entered it */
	size_t member_cnt;		  /* of the group, among those that are known */
};

/*
 * wheres[cnt]: NULL for whom nothing is known. Of several groups the one with most members.
 * False: none lacks a minority (or one of two). O(cnt^2): once in a standstill.
 */
bool missing_find(const struct wire_where *const *wheres, size_t cnt, struct missing *ret);

/* What the worker entered last of that group; NULL: it is no member, as far as is known. */
const struct wire_entered *missing_entered(const struct missing *missing,
					   const struct wire_where *where);
