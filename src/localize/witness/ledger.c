/* SPDX-License-Identifier: Apache-2.0 */
#include "localize/witness/ledger.h"

#include <errno.h>

int ledger_init(struct ledger *l, const struct job *job, struct arena *arena)
{
	l->of_function = arena_calloc(arena, job->functions.cnt + 1, sizeof(double));
	l->below = arena_calloc(arena, job->frames.cnt + 1, sizeof(double));
	l->total = l->listed = 0;
	return l->of_function != NULL && l->below != NULL ? 0 : -ENOMEM;
}

void ledger_add(struct ledger *l, uint32_t function, double ns)
{
	l->total += ns;
	if (function == FRAME_NONE)
		return;
	l->listed += ns;
	l->of_function[function] += ns;
}

void ledger_merge(struct ledger *l, const struct ledger *other, const struct job *job)
{
	for (uint32_t f = 0; f < job->functions.cnt; f++)
		l->of_function[f] += other->of_function[f];
	l->total += other->total;
	l->listed += other->listed;
}

void ledger_sum(struct ledger *l, const struct job *job)
{
	for (size_t f = 0; f < job->functions.cnt; f++) {
		if (job->functions.data[f].frame != FRAME_NONE)
			l->below[job->functions.data[f].frame] += l->of_function[f];
	}
	for (size_t i = job->frames.cnt; i > 0; i--) {
		uint32_t parent = job->frames.data[i - 1].parent;

		if (parent != FRAME_NONE)
			l->below[parent] += l->below[i - 1];
	}
}

void ledger_move(struct ledger *l, const struct job *job, uint32_t place, double ns)
{
	double there = l->below[place], others = l->listed - there;

	if (there <= 0)
		return;
	for (uint32_t f = 0; f < job->functions.cnt; f++) {
		uint32_t frame = job->functions.data[f].frame;

		if (frame != FRAME_NONE && job_frame_below(job, frame, place))
			l->of_function[f] *= ns / there;
		else if (others > 0)
			l->of_function[f] *= (l->listed - ns) / others;
	}
	for (uint32_t i = 0; i < job->frames.cnt; i++)
		l->below[i] = 0;
	ledger_sum(l, job);
}

uint32_t ledger_place(const struct ledger *l, const struct job *job)
{
	uint32_t place = FRAME_NONE;

	for (;;) {
		uint32_t best = FRAME_NONE;

		for (uint32_t i = 0; i < job->frames.cnt; i++) {
			if (job->frames.data[i].parent == place && l->below[i] > 0 &&
			    (best == FRAME_NONE || l->below[i] > l->below[best]))
				best = i;
		}
		if (best == FRAME_NONE || l->below[best] < LEDGER_MOST * l->listed)
			return place;
		place = best;
	}
}

double ledger_at(const struct ledger *l, uint32_t place)
{
	return place == FRAME_NONE ? l->listed : l->below[place];
}

static uint8_t main_class(const double by_class[static CLASS_CNT])
{
	int main = 0;

	for (int c = 1; c < CLASS_CNT; c++) {
		if (by_class[c] > by_class[main])
			main = c;
	}
	return (uint8_t)main;
}

uint32_t ledger_main(const struct ledger *l, const struct job *job, uint32_t place,
		     uint8_t *ret_class)
{
	uint32_t largest[CLASS_CNT], main = FRAME_NONE;
	double by_class[CLASS_CNT] = { 0 };

	for (int c = 0; c < CLASS_CNT; c++)
		largest[c] = FRAME_NONE;
	for (uint32_t f = 0; f < job->functions.cnt; f++) {
		const struct job_function *fn = &job->functions.data[f];
		uint32_t *best = &largest[fn->class];

		if (l->of_function[f] <= 0 ||
		    (place != FRAME_NONE && !job_frame_below(job, fn->frame, place)))
			continue;
		by_class[fn->class] += l->of_function[f];
		if (*best == FRAME_NONE || l->of_function[f] > l->of_function[*best])
			*best = f;
		if (main == FRAME_NONE || l->of_function[f] > l->of_function[main])
			main = f;
	}
	*ret_class = main_class(by_class);
	return place == FRAME_NONE ? largest[*ret_class] : main;
}
