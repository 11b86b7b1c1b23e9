/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/roofline/ceiling.h"

#include "base/stats.h"
#include "base/str.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OUTSIDE_FRAC 0.05

size_t ceiling_outside(size_t pair_cnt)
{
	/* The chance that at most k of pair_cnt differences are on one side of the median. */
	double term = 1, sum = 0;

	for (size_t i = 0; i < pair_cnt; i++)
		term /= 2;
	for (size_t k = 0; k < pair_cnt; k++) {
		sum += term;
		if (2 * sum > OUTSIDE_FRAC)
			return k;
		term *= (double)(pair_cnt - k) / (double)(k + 1);
	}
	return 0;
}

static int by_rank(const void *a, const void *b)
{
	const struct rooflog *x = ((const struct ceiling_rank *)a)->log;
	const struct rooflog *y = ((const struct ceiling_rank *)b)->log;

	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	if (x->start_ns != y->start_ns)
		return x->start_ns > y->start_ns ? -1 : 1; /* the latest first */
	return (x->pid > y->pid) - (x->pid < y->pid);
}

/* Sorts, and drops earlier processes of a rank that was started again. */
static void choose_ranks(struct ceiling *c)
{
	size_t kept = 0;

	qsort(c->ranks, c->rank_cnt, sizeof(*c->ranks), by_rank);
	for (size_t i = 0; i < c->rank_cnt; i++) {
		const struct rooflog *log = c->ranks[i].log;

		if (kept > 0 && log->rank >= 0 && c->ranks[kept - 1].log->rank == log->rank)
			continue;
		c->ranks[kept++] = c->ranks[i];
	}
	c->rank_cnt = kept;
}

_printf_(2, 3) static void refuse(struct ceiling *c, const char *fmt, ...)
{
	va_list args;

	c->verdict = CEILING_REFUSED;
	va_start(args, fmt);
	(void)vsnprintf(c->why, sizeof(c->why), fmt, args);
	va_end(args);
}

/* "rank 3", or "process 4711" where ranks are unknown. */
static const char *name_of(const struct rooflog *log, char buf[static 32])
{
	(void)snprintf(buf, 32, "%s %d", log->rank >= 0 ? "rank" : "process",
		       log->rank >= 0 ? log->rank : log->pid);
	return buf;
}

/* Whether a rank's file alone forbids a result. */
static bool check_rank(struct ceiling *c, const struct rooflog *log)
{
	char name[32];

	(void)name_of(log, name);
	if (log->refused[0] != '\0')
		refuse(c, "%s: %s", name, log->refused);
	else if (!log->has_loader)
		refuse(c, "%s steps an optimizer, but reads no batches from a DataLoader of torch",
		       name);
	else
		return true;
	return false;
}

static size_t pairs_of(const struct rooflog *log)
{
	return log->blocks.cnt / 2;
}

static bool are_alike(const struct rooflog *a, const struct rooflog *b, size_t block_cnt)
{
	for (size_t i = 0; i < block_cnt; i++) {
		const struct roof_block *x = &a->blocks.data[i], *y = &b->blocks.data[i];

		if (x->repeated != y->repeated || x->first != y->first || x->cnt != y->cnt)
			return false;
	}
	return true;
}

/* Sets pair_cnt. Returns whether all ranks measured the same blocks, and enough. */
static bool check_ranks(struct ceiling *c)
{
	const struct rooflog *first = c->ranks[0].log;
	char name[32], other[32];

	c->pair_cnt = pairs_of(first);
	for (size_t i = 0; i < c->rank_cnt; i++) {
		if (!check_rank(c, c->ranks[i].log))
			return false;
		c->pair_cnt = MIN(c->pair_cnt, pairs_of(c->ranks[i].log));
	}
	for (size_t i = 1; i < c->rank_cnt; i++) {
		if (are_alike(first, c->ranks[i].log, 2 * c->pair_cnt))
			continue;
		refuse(c,
		       "%s and %s repeated batches at different iterations: their loaders differ "
		       "(num_workers, prefetch_factor)",
		       name_of(first, name), name_of(c->ranks[i].log, other));
		return false;
	}
	for (size_t j = 0; j < c->pair_cnt; j++) {
		const struct roof_block *block = &first->blocks.data[2 * j];

		if (block[0].repeated != block[1].repeated)
			continue;
		refuse(c, "%s: two %s blocks in one pair", name_of(first, name),
		       block[0].repeated ? "repeated" : "real");
		return false;
	}
	if (c->pair_cnt >= CEILING_PAIRS_MIN)
		return true;
	refuse(c,
	       "the training ended too early: %zu pair%s of blocks, and an interval needs %d, "
	       "which are %llu iterations",
	       c->pair_cnt, plural((double)c->pair_cnt), CEILING_PAIRS_MIN,
	       (unsigned long long)(first->warm +
				    2ull * CEILING_PAIRS_MIN * (first->skip + first->block)));
	return false;
}

/* Iterations of a block on its slowest rank. */
static double block_ns(const struct ceiling *c, size_t idx)
{
	double most = 0;

	for (size_t i = 0; i < c->rank_cnt; i++) {
		const struct roof_block *block = &c->ranks[i].log->blocks.data[idx];

		most = MAX(most, (double)block->wall_ns / (double)block->cnt);
	}
	return most;
}

/*
 * Elements of batches, repeated against real ones, of the rank where these differ most: medians of
 * blocks, because the last batch of an epoch is often a short one. scratch: 2 numbers for each pair.
 */
static void compare_sizes(struct ceiling *c, double *scratch)
{
	double worst = 0;

	c->size_ratio = -1;
	for (size_t i = 0; i < c->rank_cnt; i++) {
		double *sizes[2] = { scratch, scratch + c->pair_cnt }, middle[2], ratio, apart;
		size_t cnts[2] = { 0, 0 };

		for (size_t j = 0; j < 2 * c->pair_cnt; j++) {
			const struct roof_block *block = &c->ranks[i].log->blocks.data[j];

			sizes[block->repeated][cnts[block->repeated]++] =
				(double)block->elements / (double)block->cnt;
		}
		middle[0] = stats_median(sizes[0], cnts[0]);
		middle[1] = stats_median(sizes[1], cnts[1]);
		if (middle[0] <= 0)
			continue;
		ratio = middle[1] / middle[0];
		apart = ratio > 1 ? ratio - 1 : 1 - ratio;
		if (c->size_ratio < 0 || apart > worst) {
			worst = apart;
			c->size_ratio = ratio;
		}
	}
}

static void judge(struct ceiling *c, double *differences)
{
	const size_t outside = ceiling_outside(c->pair_cnt);

	c->cost_ns = stats_median(differences, c->pair_cnt); /* sorts */
	c->low_ns = differences[outside > 0 ? outside - 1 : 0];
	c->high_ns = differences[c->pair_cnt - (outside > 0 ? outside : 1)];
	if (c->low_ns > 0)
		c->verdict = CEILING_COST;
	else if (c->high_ns < 0)
		c->verdict = CEILING_SLOWER;
	else if (c->high_ns > CEILING_NONE_FRAC_MAX * c->real_ns)
		c->verdict = CEILING_UNCLEAR;
	else
		c->verdict = CEILING_NONE;
	if (c->size_ratio < 0 || (c->size_ratio < 1 + CEILING_SIZE_FRAC_MAX &&
				  c->size_ratio > 1 - CEILING_SIZE_FRAC_MAX))
		return;
	refuse(c,
	       "the lengths of batches vary, and the repeated ones have %.0f %% %s elements than the "
	       "others: keep more of them (--keep)",
	       c->size_ratio > 1 ? (c->size_ratio - 1) * 100 : (1 - c->size_ratio) * 100,
	       c->size_ratio > 1 ? "more" : "fewer");
}

/* values: room for 3 numbers for each pair. */
static void measure(struct ceiling *c, double *values)
{
	double *real = values, *repeated = real + c->pair_cnt, *difference = repeated + c->pair_cnt;
	const struct rooflog *first = c->ranks[0].log;

	for (size_t j = 0; j < c->pair_cnt; j++) {
		const struct roof_block *pair = &first->blocks.data[2 * j];
		const size_t real_idx = 2 * j + pair[0].repeated;
		const size_t repeated_idx = 2 * j + !pair[0].repeated;

		real[j] = block_ns(c, real_idx);
		repeated[j] = block_ns(c, repeated_idx);
		difference[j] = real[j] - repeated[j];
		c->iterations += pair[0].cnt;
		c->epochs += pair[0].epochs + pair[1].epochs;
	}
	c->real_ns = stats_median(real, c->pair_cnt);
	c->repeated_ns = stats_median(repeated, c->pair_cnt);
	for (size_t i = 0; i < c->rank_cnt; i++) {
		for (size_t j = 0; j < c->pair_cnt; j++) {
			const struct roof_block *pair = &c->ranks[i].log->blocks.data[2 * j];
			const struct roof_block *block = pair[0].repeated ? &pair[1] : &pair[0];

			real[j] = (double)block->wait_ns / (double)block->cnt;
		}
		c->ranks[i].wait_ns = stats_median(real, c->pair_cnt);
	}
	compare_sizes(c, values);
	judge(c, difference);
}

int ceiling_find(const struct rooflog *logs, size_t cnt, struct ceiling *ret)
{
	struct ceiling c = { .world = -1, .rank_cnt = cnt };
	double *values;

	c.ranks = calloc(cnt, sizeof(*c.ranks));
	if (c.ranks == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < cnt; i++)
		c.ranks[i].log = &logs[i];
	choose_ranks(&c);
	c.world = c.ranks[0].log->world;
	if (check_ranks(&c)) {
		values = calloc(3 * c.pair_cnt, sizeof(*values));
		if (values == NULL) {
			ceiling_done(&c);
			return -ENOMEM;
		}
		measure(&c, values);
		free(values);
	}
	*ret = c;
	return 0;
}

void ceiling_done(struct ceiling *ceiling)
{
	free(ceiling->ranks);
	ceiling->ranks = NULL;
}
