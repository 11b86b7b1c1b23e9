/* SPDX-License-Identifier: Apache-2.0 */
#include "memory/runpace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define LOW_FRAC 0.05
#define HIGH_FRAC 0.95

static void halve(struct runpace *pace)
{
	size_t cnt = 0;

	for (size_t i = 0; i + 1 < pace->rows.cnt; i += 2) {
		struct runpace_row row = pace->rows.data[i];

		row.sum_ns += pace->rows.data[i + 1].sum_ns;
		row.cnt += pace->rows.data[i + 1].cnt;
		row.step = pace->rows.data[i + 1].step;
		pace->rows.data[cnt++] = row;
	}
	if (pace->rows.cnt % 2 == 1)
		pace->rows.data[cnt++] = pace->rows.data[pace->rows.cnt - 1];
	pace->rows.cnt = cnt;
}

int runpace_add(struct runpace *pace, const struct runpace_row *row)
{
	if (row->cnt == 0 || row->sum_ns <= 0)
		return 0;
	if (pace->rows.cnt >= RUNPACE_ROWS_MAX)
		halve(pace);
	return vec_push(&pace->rows, *row);
}

void runpace_begin_slow(struct runpace *pace, uint64_t since_step)
{
	if (pace->slow_cnt > 0 && pace->slow[pace->slow_cnt - 1].until_s == INT64_MAX)
		return;
	if (pace->slow_cnt == RUNPACE_SLOW_MAX) {
		pace->slow[pace->slow_cnt - 1].until_s = INT64_MAX;
		pace->slow_full = true;
		return;
	}
	pace->slow[pace->slow_cnt++] =
		(struct runpace_slow){ .since_step = since_step, .until_s = INT64_MAX };
}

void runpace_end_slow(struct runpace *pace, int64_t at_s)
{
	if (pace->slow_cnt > 0 && !pace->slow_full &&
	    pace->slow[pace->slow_cnt - 1].until_s == INT64_MAX)
		pace->slow[pace->slow_cnt - 1].until_s = at_s;
}

/* A text without a step is not of this program: slow from the first step on is the safe reading. */
static uint64_t step_of(const char *text)
{
	const char *found = strstr(text, "since step ");

	return found != NULL ? strtoull(found + strlen("since step "), NULL, 10) : 0;
}

void runpace_take_event(struct runpace *pace, const char *kind, const char *text, int64_t at_s)
{
	if (strcmp(kind, "slow") == 0)
		runpace_begin_slow(pace, step_of(text));
	else if (strcmp(kind, "slow-over") == 0)
		runpace_end_slow(pace, at_s);
}

static bool is_slow(const struct runpace *pace, const struct runpace_row *row)
{
	for (size_t i = 0; i < pace->slow_cnt; i++) {
		if (row->step >= pace->slow[i].since_step && row->at_s <= pace->slow[i].until_s)
			return true;
	}
	return false;
}

/* A row as its mean and its weight. */
struct weighed {
	int64_t mean_ns;
	uint64_t cnt;
};

static int by_mean(const void *a, const void *b)
{
	const struct weighed *x = a, *y = b;

	return (x->mean_ns > y->mean_ns) - (x->mean_ns < y->mean_ns);
}

/* The least mean up to which rows have this share of the weight. */
static int64_t quantile(const struct weighed *rows, size_t cnt, double total, double frac)
{
	double sum = 0;

	for (size_t i = 0; i < cnt; i++) {
		sum += (double)rows[i].cnt;
		if (sum >= frac * total)
			return rows[i].mean_ns;
	}
	return rows[cnt - 1].mean_ns;
}

int runpace_sum(const struct runpace *pace, struct runpace_sum *ret)
{
	struct weighed *rows = calloc(pace->rows.cnt + 1, sizeof(*rows));
	double total = 0;
	size_t cnt = 0;

	if (rows == NULL)
		return -ENOMEM;
	vec_foreach(row, &pace->rows) {
		if (is_slow(pace, row))
			continue;
		rows[cnt++] = (struct weighed){ .mean_ns = row->sum_ns / (int64_t)row->cnt,
						.cnt = row->cnt };
		total += (double)row->cnt;
	}
	*ret = (struct runpace_sum){ .row_cnt = cnt };
	if (cnt >= RUNPACE_ROWS_MIN || total >= RUNPACE_TIMES_MIN) {
		qsort(rows, cnt, sizeof(*rows), by_mean);
		ret->known = true;
		ret->median_ns = quantile(rows, cnt, total, 0.5);
		ret->low_ns = quantile(rows, cnt, total, LOW_FRAC);
		ret->high_ns = quantile(rows, cnt, total, HIGH_FRAC);
	}
	free(rows);
	return 0;
}

void runpace_done(struct runpace *pace)
{
	vec_done(&pace->rows);
}
