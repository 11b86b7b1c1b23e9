/* SPDX-License-Identifier: Apache-2.0 */
#include "sampled/sampledblame.h"

#include <errno.h>
#include <math.h>
#include <string.h>

struct round_view {
	size_t seen, waiting;
};

/* Whether all ranks were seen in the round, at nearly one time. */
static bool see_round(const struct sampledview *view, size_t round, struct round_view *ret)
{
	int64_t first_ns = INT64_MAX, last_ns = 0;

	*ret = (struct round_view){ 0 };
	for (size_t i = 0; i < view->job->cnt; i++) {
		const struct sampled_moment *moment = view->grid[i][round];
		const struct sampledview_stack *stack = sampledview_at(view, i, round);

		if (stack == NULL)
			return false;
		first_ns = MIN(first_ns, moment->time_ns);
		last_ns = MAX(last_ns, moment->time_ns);
		ret->seen++;
		ret->waiting += stack->phase == PHASE_PEERS;
	}
	return last_ns - first_ns <= view->job->period_ns / 2;
}

static bool is_waiting(const struct sampledview *view, size_t rank, size_t round)
{
	const struct sampledview_stack *stack = sampledview_at(view, rank, round);

	return stack != NULL && stack->phase == PHASE_PEERS;
}

/* At least half of the ranks wait, and not all: the rest of them is what they wait for. */
static bool holds(const struct round_view *round)
{
	return round->waiting < round->seen && round->waiting * 2 >= round->seen;
}

bool sampledblame_waits(const struct sampledview *view, size_t round, size_t from, size_t to)
{
	struct round_view seen;

	return see_round(view, round, &seen) && holds(&seen) && is_waiting(view, to, round) &&
	       !is_waiting(view, from, round);
}

void sampledblame_mean(const double *values, double *ret_mean, double *ret_error)
{
	double mean = 0.0, squares = 0.0;

	for (size_t i = 0; i < SAMPLED_BATCHES; i++)
		mean += values[i] / SAMPLED_BATCHES;
	for (size_t i = 0; i < SAMPLED_BATCHES; i++)
		squares += (values[i] - mean) * (values[i] - mean);
	*ret_mean = mean;
	*ret_error = sqrt(squares / (SAMPLED_BATCHES - 1) / SAMPLED_BATCHES);
}

static void count_account(const struct sampled_rank *rank, struct sampledblame_rank *ret)
{
	const struct sampled_moment *first, *last;
	double ns;

	if (rank->moment_cnt < 2)
		return;
	first = &rank->moments[0];
	last = &rank->moments[rank->moment_cnt - 1];
	ns = (double)(last->time_ns - first->time_ns);
	if (ns <= 0)
		return;
	ret->runs_frac = (double)(last->ran_ns - first->ran_ns) / ns;
	ret->queued_frac = (double)(last->queued_ns - first->queued_ns) / ns;
}

static size_t part_of(const struct sampledview *view, size_t round)
{
	return round * SAMPLED_BATCHES / view->job->round_cnt;
}

/* Its own rounds, whatever was seen of the others. */
static void count_own(const struct sampledview *view, size_t rank, struct sampledblame_rank *ret)
{
	double loader[SAMPLED_BATCHES] = { 0 }, seen[SAMPLED_BATCHES] = { 0 };
	double waits = 0, all = 0;

	for (size_t round = 0; round < view->job->round_cnt; round++) {
		const struct sampledview_stack *stack = sampledview_at(view, rank, round);

		if (stack == NULL)
			continue;
		seen[part_of(view, round)]++;
		all++;
		waits += stack->phase == PHASE_PEERS;
		loader[part_of(view, round)] += stack->phase == PHASE_LOADER;
	}
	for (size_t i = 0; i < SAMPLED_BATCHES; i++)
		loader[i] /= MAX(seen[i], 1.0);
	ret->waits_frac = waits / MAX(all, 1.0);
	sampledblame_mean(loader, &ret->loader_frac, &ret->loader_error);
	count_account(&view->job->ranks[rank], ret);
}

static void count_holds(const struct sampledview *view, struct sampledblame *ret)
{
	size_t seen[SAMPLED_BATCHES] = { 0 };

	for (size_t round = 0; round < view->job->round_cnt; round++) {
		const size_t part = part_of(view, round);
		struct round_view now;

		if (!see_round(view, round, &now))
			continue;
		ret->round_cnt++;
		seen[part]++;
		for (size_t i = 0; holds(&now) && i < view->job->cnt; i++)
			ret->ranks[i].part[part] += !is_waiting(view, i, round);
	}
	for (size_t i = 0; i < view->job->cnt; i++) {
		double error;

		for (size_t part = 0; part < SAMPLED_BATCHES; part++)
			ret->ranks[i].part[part] /= (double)MAX(seen[part], (size_t)1);
		sampledblame_mean(ret->ranks[i].part, &ret->ranks[i].hold_frac, &error);
	}
}

/* Marks the ranks in front of the largest gap; at most half of all. False: there is none. */
static bool mark_front(struct sampledblame *blame, size_t cnt)
{
	double cut = 0, gap = 0;

	/* Each rank's value is a candidate for the least of the front. */
	for (size_t i = 0; i < cnt; i++) {
		const double value = blame->ranks[i].hold_frac;
		double next = 0;
		size_t front = 0;

		for (size_t j = 0; j < cnt; j++) {
			front += blame->ranks[j].hold_frac >= value;
			if (blame->ranks[j].hold_frac < value)
				next = MAX(next, blame->ranks[j].hold_frac);
		}
		if (front * 2 <= cnt && value - next > gap) {
			gap = value - next;
			cut = value;
		}
	}
	for (size_t i = 0; i < cnt; i++) {
		blame->ranks[i].behind = gap > 0 && blame->ranks[i].hold_frac >= cut;
		blame->behind_cnt += blame->ranks[i].behind;
	}
	return blame->behind_cnt > 0;
}

/* In a part: the least of those behind, less the most of the others. */
static double difference(const struct sampledblame *blame, size_t cnt, size_t part)
{
	double least = (double)INFINITY, most = 0;

	for (size_t i = 0; i < cnt; i++) {
		if (blame->ranks[i].behind)
			least = MIN(least, blame->ranks[i].part[part]);
		else
			most = MAX(most, blame->ranks[i].part[part]);
	}
	return least - most;
}

/* Whether those behind differ from the others in nearly all parts, by more than chance. */
static bool stands_out(struct sampledblame *blame, size_t cnt)
{
	double parts[SAMPLED_BATCHES], mean, error, ahead = 0;

	blame->hold_frac = (double)INFINITY;
	for (size_t i = 0; i < cnt; i++) {
		const double hold = blame->ranks[i].hold_frac;

		if (blame->ranks[i].behind)
			blame->hold_frac = MIN(blame->hold_frac, hold);
		else
			blame->next_frac = MAX(blame->next_frac, hold);
	}
	for (size_t part = 0; part < SAMPLED_BATCHES; part++) {
		parts[part] = difference(blame, cnt, part);
		ahead += parts[part] > 0;
	}
	sampledblame_mean(parts, &mean, &error);
	/* The most of many ranks is larger by chance. */
	blame->t = mean / MAX(error, 1e-3);
	return blame->hold_frac >= SAMPLED_HOLD_FRAC &&
	       ahead >= SAMPLED_PART_FRAC * SAMPLED_BATCHES &&
	       blame->t >= SAMPLED_T_MIN + log((double)cnt) / 2 &&
	       blame->hold_frac >= 2.5 * blame->next_frac;
}

int sampledblame_find(const struct sampledview *view, struct sampledblame *ret)
{
	const size_t cnt = view->job->cnt;

	*ret = (struct sampledblame){ 0 };
	ret->ranks = arena_calloc(view->arena, cnt + 1, sizeof(*ret->ranks));
	if (ret->ranks == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < cnt; i++)
		count_own(view, i, &ret->ranks[i]);
	if (cnt < 2)
		return 0;
	count_holds(view, ret);
	if (ret->round_cnt >= SAMPLED_ROUNDS_MIN && mark_front(ret, cnt) && stands_out(ret, cnt))
		return 0;
	for (size_t i = 0; i < cnt; i++)
		ret->ranks[i].behind = false;
	ret->behind_cnt = 0;
	return 0;
}
