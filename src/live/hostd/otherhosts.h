/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The workers of a job's other hosts, as the leader publishes them on this host's bus: so that
 * `perftracker status` on the leader's host shows all ranks.
 */
#pragma once

#include "base/idmap.h"
#include "base/vec.h"
#include "live/link/wire.h"

#define OTHERHOSTS_MAX 262144u /* workers; more are left out of `status` */

/* A zeroed one is empty and valid. */
struct otherhosts {
	VEC(struct wire_state) states; /* of living workers */
	struct idmap places;	       /* of them, by their id */
};

/* Takes a state of any worker; those of this host are passed over. */
void otherhosts_take(struct otherhosts *others, const struct wire_state *state);
void otherhosts_done(struct otherhosts *others);
