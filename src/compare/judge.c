/* SPDX-License-Identifier: Apache-2.0 */
#include "compare/judge.h"

#include "compare/significance.h"

#include <errno.h>
#include <math.h>

#define RANKS_LEAST 3	/* ranks: minimum of a test over ranks, and of medium confidence */
#define PAIRED_LEAST 8	/* ranks: with fewer, pairing loses more than it gains */
#define REPEATS_LEAST 2 /* windows: minimum of a test over windows */
#define REPEATS_MANY 3	/* windows: minimum of high confidence */

static bool has_rank(const struct run_tree *run, int rank)
{
	for (size_t i = 0; i < run->window_cnt; i++) {
		if (run->windows[i].fp->rank == rank)
			return true;
	}
	return false;
}

static bool same_ranks(const struct run_tree *a, const struct run_tree *b)
{
	if (a->rank_cnt != b->rank_cnt || a->rank_cnt < PAIRED_LEAST)
		return false;
	for (size_t i = 0; i < a->window_cnt; i++) {
		if (!has_rank(b, a->windows[i].fp->rank))
			return false;
	}
	return true;
}

static bool has_iterations(const struct run_tree *run)
{
	for (size_t i = 0; i < run->window_cnt; i++) {
		if (isnan(run->windows[i].deviation_ms))
			return false;
	}
	return true;
}

int judge_init(struct judge *judge, const struct run_tree *before, const struct run_tree *after)
{
	size_t cnt = MAX(before->window_cnt, after->window_cnt);

	*judge = (struct judge){ .before = before, .after = after };
	judge->scratch[0] = calloc(cnt, sizeof(double));
	judge->scratch[1] = calloc(cnt, sizeof(double));
	if (judge->scratch[0] == NULL || judge->scratch[1] == NULL)
		return -ENOMEM;
	judge->paired = same_ranks(before, after);
	if (MIN(before->repeat_cnt, after->repeat_cnt) >= REPEATS_LEAST) {
		judge->basis = BASIS_WINDOWS;
		return 0;
	}
	if (MIN(before->rank_cnt, after->rank_cnt) >= RANKS_LEAST)
		judge->basis |= BASIS_RANKS;
	if (has_iterations(before) && has_iterations(after))
		judge->basis |= BASIS_ITERATIONS;
	return 0;
}

void judge_done(struct judge *judge)
{
	free(judge->scratch[0]);
	free(judge->scratch[1]);
	*judge = (struct judge){ 0 };
}

/* Means over windows with the same number: ret[number] for each rank or repeat. */
static void group_means(const struct run_tree *run, const double *ms, bool by_rank, double *ret)
{
	size_t cnt = by_rank ? run->rank_cnt : run->repeat_cnt;

	for (size_t k = 0; k < cnt; k++) {
		size_t members = 0;

		ret[k] = 0;
		for (size_t i = 0; i < run->window_cnt; i++) {
			const struct run_window *w = &run->windows[i];

			if ((by_rank ? w->rank : w->repeat) != k)
				continue;
			ret[k] += ms[i];
			members++;
		}
		ret[k] /= (double)members;
	}
}

static double chance_over_windows(const struct judge *j, const struct judge_values *v)
{
	group_means(j->before, v->before, false, j->scratch[0]);
	group_means(j->after, v->after, false, j->scratch[1]);
	return significance_welch(estimate_of(j->scratch[0], j->before->repeat_cnt),
				  estimate_of(j->scratch[1], j->after->repeat_cnt));
}

/* Reorders the means of run b to the order of a's ranks. */
static void order_as(const struct run_tree *a, const struct run_tree *b, const double *of_b,
		     double *ret)
{
	for (size_t i = 0; i < a->window_cnt; i++) {
		for (size_t k = 0; k < b->window_cnt; k++) {
			if (a->windows[i].fp->rank == b->windows[k].fp->rank)
				ret[a->windows[i].rank] = of_b[b->windows[k].rank];
		}
	}
}

static double chance_over_ranks(const struct judge *j, const struct judge_values *v)
{
	size_t cnt = j->after->rank_cnt;
	_cleanup_free_ double *ordered = j->paired ? calloc(cnt, sizeof(*ordered)) : NULL;

	group_means(j->before, v->before, true, j->scratch[0]);
	group_means(j->after, v->after, true, j->scratch[1]);
	if (ordered == NULL)
		return significance_welch(estimate_of(j->scratch[0], j->before->rank_cnt),
					  estimate_of(j->scratch[1], cnt));
	order_as(j->before, j->after, j->scratch[1], ordered);
	return significance_paired(j->scratch[0], ordered, cnt);
}

/* Ranks of one step vary together: more ranks do not make the mean more certain. */
static struct estimate over_iterations(const struct run_tree *run, const double *ms,
				       const double *spread)
{
	struct estimate e = { 0 };

	for (size_t i = 0; i < run->window_cnt; i++) {
		double iterations = run->windows[i].iterations;

		e.mean += ms[i] / (double)run->window_cnt;
		e.variance += spread[i] * spread[i] / iterations / (double)run->window_cnt;
		e.freedom += (iterations - 1) / (double)run->window_cnt;
	}
	return e;
}

static double chance_over_iterations(const struct judge *j, const struct judge_values *v)
{
	struct estimate before = over_iterations(j->before, v->before, v->before_spread);
	struct estimate after = over_iterations(j->after, v->after, v->after_spread);

	return isnan(before.variance + after.variance) ? (double)NAN
						       : significance_welch(before, after);
}

double judge_chance(const struct judge *j, const struct judge_values *values)
{
	double ranks = (double)NAN, iterations = (double)NAN;

	if ((j->basis & BASIS_WINDOWS) != 0)
		return chance_over_windows(j, values);
	if ((j->basis & BASIS_RANKS) != 0)
		ranks = chance_over_ranks(j, values);
	if ((j->basis & BASIS_ITERATIONS) != 0)
		iterations = chance_over_iterations(j, values);
	return fmax(ranks, iterations); /* fmax() returns the other where one is NAN */
}

enum confidence judge_confidence(const struct judge *j, bool significant, bool structural)
{
	if (!significant)
		return CONFIDENCE_LOW;
	if (MIN(j->before->repeat_cnt, j->after->repeat_cnt) >= REPEATS_MANY)
		return CONFIDENCE_HIGH;
	if ((j->basis & (BASIS_WINDOWS | BASIS_RANKS)) != 0 || structural)
		return CONFIDENCE_MEDIUM;
	return CONFIDENCE_LOW;
}
