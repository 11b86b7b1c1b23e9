/* SPDX-License-Identifier: Apache-2.0 */
/* Accusations of a slower part beside what blame has found. */
#include "localize/witness/split_parts.h"
#include "model/thresholds.h"

#include <errno.h>
#include <math.h>

static bool is_same_place(const struct job *job, const struct accusation *a,
			  const struct accusation *b)
{
	if (a->frame == FRAME_NONE || b->frame == FRAME_NONE)
		return a->frame == b->frame && a->class == b->class;
	return job_frame_below(job, a->frame, b->frame) || job_frame_below(job, b->frame, a->frame);
}

static double loss_at(const struct split *p, uint32_t w, uint32_t place)
{
	return ledger_at(&p->s.of[w], place) / p->s.job->workers[w].iterations;
}

/* Of those that are slow together repair gives back what the slowest of them loses. */
static double largest_loss(const struct split *p, const struct accusation *a)
{
	double largest = 0;

	for (size_t i = 0; i < a->worker_cnt; i++)
		largest = fmax(largest, loss_at(p, a->workers[i], a->frame));
	return largest;
}

/* Both name the same fault: blame those that were the last, this all that are as slow. */
static int unite(const struct split *p, const struct accusation *slow, struct accusation *a)
{
	size_t most = p->s.job->worker_cnt, cnt = 0;
	uint32_t *workers = arena_calloc(p->s.arena, most + 1, sizeof(*workers));

	if (workers == NULL)
		return -ENOMEM;
	for (uint32_t w = 0; w < most; w++) {
		if (accusation_has(slow, w) || accusation_has(a, w))
			workers[cnt++] = w;
	}
	/* Who is as slow without ever being the last takes no turns. */
	a->rotates = a->rotates && cnt == a->worker_cnt;
	a->own_ns *= (double)cnt / (double)a->worker_cnt;
	a->main_ns *= (double)cnt / (double)a->worker_cnt;
	a->gain_ns = fmax(a->gain_ns, slow->gain_ns);
	a->workers = workers;
	a->worker_cnt = cnt;
	return 0;
}

/*
 * Whether worker w is accused of something of what is compared. What strikes anybody is no
 * reason for being slow in one place.
 */
static bool is_accused_anywhere(const struct split *p, const accusations *list, uint32_t w)
{
	vec_foreach(a, list) {
		if (a->strikes == NULL && split_compares(p, a->class) && accusation_has(a, w))
			return true;
	}
	return false;
}

/* Keeps the workers that lose enough there; with list also only those it does not accuse. */
static int keep_workers(const struct split *p, const accusations *list, struct accusation *slow)
{
	uint32_t *workers = arena_calloc(p->s.arena, slow->worker_cnt + 1, sizeof(*workers));
	size_t cnt = 0;

	if (workers == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < slow->worker_cnt; i++) {
		uint32_t w = slow->workers[i];

		if (loss_at(p, w, slow->frame) >= SPLIT_MINOR * slow->gain_ns &&
		    (list == NULL || !is_accused_anywhere(p, list, w)))
			workers[cnt++] = w;
	}
	slow->workers = workers;
	slow->worker_cnt = cnt;
	return 0;
}

/* Whether an accusation is of workers that are slow there always, though last by turns only. */
static bool is_of_slow(const struct accusation *a, const struct accusation *slow)
{
	for (size_t i = 0; i < a->worker_cnt; i++) {
		if (!accusation_has(slow, a->workers[i]))
			return false;
	}
	return a->place_cnt == 0;
}

/* Adds an accusation of slow workers to the list, without those accused of something else. */
int split_add(const struct split *p, struct accusation slow, accusations *out)
{
	int error;

	slow.gain_ns = largest_loss(p, &slow);
	error = keep_workers(p, NULL, &slow);
	if (error < 0)
		return error;
	vec_foreach(a, out) {
		if (is_same_place(p->s.job, a, &slow) && (!a->rotates || is_of_slow(a, &slow)))
			return unite(p, &slow, a);
	}
	error = keep_workers(p, out, &slow);
	return error == 0 && slow.worker_cnt > 0 ? vec_push(out, slow) : error;
}
