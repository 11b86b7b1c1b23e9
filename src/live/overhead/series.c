/* SPDX-License-Identifier: Apache-2.0 */
#include "live/overhead/series.h"

#include "detect/signedrank.h"
#include "model/thresholds.h"

#include <math.h>
#include <string.h>

/* Two intervals of this confidence that have nothing in common: the cost has changed. */
#define CHANGED 0.99

void series_clear(struct series *series)
{
	series->cnt = 0;
	series->side = 0;
}

/* Sorts pairs. No interval is narrower than the measurement of time allows. */
static struct wire_cost cost_of(double *pairs, size_t cnt, double confidence)
{
	struct signedrank rank;
	double frac;

	if (signedrank_interval(pairs, cnt, confidence, &rank) < 0)
		return (struct wire_cost){ 0 };
	frac = expm1(rank.center);
	return (struct wire_cost){
		.frac = frac,
		.low_frac = fmin(expm1(rank.low), frac - SLICES_ERROR_FRAC_MIN),
		.high_frac = fmax(expm1(rank.high), frac + SLICES_ERROR_FRAC_MIN),
		.pair_cnt = (uint32_t)cnt,
	};
}

struct wire_cost series_cost(const struct series *series, double confidence)
{
	double pairs[SERIES_PAIRS_MAX];
	size_t cnt = MIN(series->cnt, (size_t)SERIES_PAIRS_MAX);

	memcpy(pairs, series->pairs, cnt * sizeof(*pairs));
	return cost_of(pairs, cnt, confidence);
}

/* -1, 1: these pairs alone show a cost below or above all that the series allows; else 0. */
static int contradicts(const struct series *series, const double *pairs, size_t cnt)
{
	double sorted[WIRE_PAIRS_MAX];
	struct wire_cost latest, older = series_cost(series, CHANGED);

	memcpy(sorted, pairs, cnt * sizeof(*pairs));
	latest = cost_of(sorted, cnt, CHANGED);
	if (older.pair_cnt == 0 || latest.pair_cnt == 0)
		return 0;
	return (latest.low_frac > older.high_frac) - (latest.high_frac < older.low_frac);
}

static void push(struct series *series, const double *pairs, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++)
		series->pairs[series->cnt++ % SERIES_PAIRS_MAX] = pairs[i];
}

void series_add(struct series *series, const double *pairs, size_t cnt)
{
	double known[WIRE_PAIRS_MAX];
	size_t known_cnt = 0;
	int side;

	for (size_t i = 0; i < cnt && i < WIRE_PAIRS_MAX; i++) {
		if (isfinite(pairs[i]))
			known[known_cnt++] = pairs[i];
	}
	side = contradicts(series, known, known_cnt);
	if (side != 0 && side == series->side) {
		series_clear(series);
		push(series, series->latest, series->latest_cnt);
		side = 0;
	}
	push(series, known, known_cnt);
	series->side = side;
	memcpy(series->latest, known, sizeof(known[0]) * known_cnt);
	series->latest_cnt = known_cnt;
}
