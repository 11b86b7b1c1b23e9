/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two witnesses that look at what workers do beside communication, compared with their
 * peers: a part of them always does it more slowly, or inputs of unequal size make now this
 * one, now that one the last.
 */
#pragma once

#include "localize/witness/witness.h"

/*
 * Accuses the slower part of each peer group where its members fall into two: first, where
 * stages of a pipeline have different work, in the kernels that all of them run, then in all
 * functions of workers with the same work. Time of devices and of hosts is compared apart.
 * Joins an accusation in out of the same place; leaves out workers accused of another place
 * of the same kind.
 * Arrays live in arena. Returns 0 or -ENOMEM.
 */
_must_check_ int accuse_by_split(const struct job *job, const struct accuse_options *options,
				 struct arena *arena, accusations *out);

/*
 * Accuses all members of the peer groups in which the time to compute follows the size of
 * the inputs, where the largest inputs rotate among workers. Call after the other witnesses:
 * they accuse a worker that always has more. Arrays live in arena. Returns 0 or -ENOMEM.
 */
_must_check_ int accuse_by_inputs(const struct job *job, const struct blame *blame,
				  const struct accuse_options *options, struct arena *arena,
				  accusations *out);
