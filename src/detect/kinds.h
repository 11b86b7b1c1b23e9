/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The paces of a job whose iterations are of several kinds: each kind has its own baseline.
 * Long iterations that are part of the job from its beginning (rollouts between updates, an
 * evaluation every few batches) are one more kind, so that they neither hide in the noise nor
 * make it. Long ones that begin later stay with their kind: they may be the slowdown. "From its
 * beginning" counts from when the usual iteration is known, the lower quartile of the first ones.
 * When they are found, the first iterations are given to their kinds anew: a job that became slow
 * meanwhile is slow beside these.
 *
 * The job is slow when a kind is, and loses more than slow_frac of the job's time by it.
 */
#pragma once

#include "detect/pace.h"

#define KINDS_CYCLE_MAX 1000

struct kinds;

/* cnt: kinds of iterations. Returns NULL when out of memory or config is out of range. */
struct kinds *kinds_new(const struct pace_config *config, uint32_t cnt);
struct kinds *kinds_free(struct kinds *kinds);

/* Takes the time of one iteration of a kind; returns what that changes for the job. */
enum pace_result kinds_add(struct kinds *kinds, uint32_t kind, int64_t time_ns);

/* As pace_accept() for all kinds that are slow. */
bool kinds_accept(struct kinds *kinds);
void kinds_reset(struct kinds *kinds);

/*
 * Iterations from one long one to the next, if long ones are part of the job, else 1: a profile
 * must see several of them.
 */
uint32_t kinds_cycle(const struct kinds *kinds);

/*
 * Of those without long iterations the kind that takes most. While the job is slow, its mean
 * iteration, of all kinds, beside what that would be without the slowdown: a window of the job
 * shows this mean, too. slow, slow_since and iterations are those of all kinds.
 */
void kinds_look(const struct kinds *kinds, struct pace_view *ret);
