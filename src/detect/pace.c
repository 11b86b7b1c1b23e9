/* SPDX-License-Identifier: Apache-2.0 */
#include "detect/pace.h"

#include "base/stats.h"
#include "model/thresholds.h"

#include <math.h>

struct window_stats {
	double mean, var; /* var: half the mean squared difference of neighbors */
	uint32_t cnt;
};

struct record {
	double mean, var;
};

struct pace {
	struct pace_config config;
	double samples[PACE_LONG * PACE_WINDOW_MAX]; /* by sample number, modulo */
	uint64_t cnt;				     /* samples since the reset, warm-up apart */
	uint32_t warmed;
	double median; /* of the last N, renewed each N/10 */

	struct record *history; /* of history_cnt, modulo */
	uint64_t record_cnt;
	struct record baseline;

	double window_var; /* of a whole window's mean, from windows that don't overlap */
	bool calibrated;   /* there were enough of them; until then: */
	double early_var;  /* the greatest that single windows showed */

	uint64_t long_at, long_first; /* sample numbers of long iterations; 0: none */
	uint64_t distances[PACE_DISTANCE_CNT];
	uint32_t distance_cnt;
	uint64_t pause_period; /* 0: pauses are not periodic */

	struct window_stats now;
	double threshold;    /* over the baseline, short window */
	uint32_t agree;	     /* iterations in a row that were over it */
	uint64_t long_since; /* sample number before which the long window isn't looked at */
	uint64_t slow_at;
	bool slow;
	bool slow_by_long; /* rare long iterations: the short window cannot detect their end */
	uint64_t pauses, iterations;
};

static bool config_is_valid(const struct pace_config *config)
{
	return config->window_cnt >= 5 && config->window_cnt <= PACE_WINDOW_MAX &&
	       config->history_cnt > 0 && config->confirm_cnt > 0 && config->slow_frac > 0 &&
	       config->pause_factor > 1;
}

struct pace *pace_new(const struct pace_config *config)
{
	struct pace *pace;

	if (!config_is_valid(config))
		return NULL;
	pace = calloc(1, sizeof(*pace));
	if (pace == NULL)
		return NULL;
	pace->config = *config;
	pace->history = calloc(config->history_cnt, sizeof(*pace->history));
	if (pace->history == NULL)
		return pace_free(pace);
	return pace;
}

struct pace *pace_free(struct pace *pace)
{
	if (pace == NULL)
		return NULL;
	free(pace->history);
	free(pace);
	return NULL;
}

void pace_reset(struct pace *pace)
{
	struct pace kept = { .config = pace->config,
			     .history = pace->history,
			     .pauses = pace->pauses,
			     .iterations = pace->iterations };

	*pace = kept;
}

/* The sample that came `back` samples ago; 0 is the newest. */
static double sample_at(const struct pace *pace, uint64_t back)
{
	return pace->samples[(pace->cnt - 1 - back) % ARRAY_SIZE(pace->samples)];
}

static bool is_long(const struct pace *pace, double sample)
{
	return pace->median > 0 && sample > pace->config.pause_factor * pace->median;
}

static uint32_t pauses_allowed(const struct pace *pace, uint32_t span)
{
	uint32_t plain = pace->config.pause_cnt * span / pace->config.window_cnt;

	if (pace->pause_period == 0)
		return plain;
	return plain + (uint32_t)(span / (pace->pause_period - 1)) + 1;
}

/* Over the newest `span` samples; more long ones than allowed are no pauses. */
static struct window_stats compute_stats(const struct pace *pace, uint32_t span)
{
	struct window_stats stats = { 0 };
	double sum = 0, square_sum = 0, last = 0;
	uint32_t long_cnt = 0;
	bool leave_out;

	for (uint32_t i = 0; i < span; i++)
		long_cnt += is_long(pace, sample_at(pace, i));
	leave_out = long_cnt <= pauses_allowed(pace, span);
	for (uint32_t i = 0; i < span; i++) {
		double sample = sample_at(pace, i);

		if (leave_out && is_long(pace, sample))
			continue;
		sum += sample;
		if (stats.cnt > 0)
			square_sum += (sample - last) * (sample - last);
		last = sample;
		stats.cnt++;
	}
	stats.mean = sum / MAX(stats.cnt, 1u);
	stats.var = square_sum / 2 / MAX(stats.cnt - 1, 1u);
	return stats;
}

static void renew_median(struct pace *pace)
{
	uint32_t span = (uint32_t)MIN(pace->cnt, (uint64_t)pace->config.window_cnt);
	double sorted[PACE_WINDOW_MAX];

	if (span < PACE_MEDIAN_MIN || pace->cnt % MAX(pace->config.window_cnt / 10, 1u) != 0)
		return;
	for (uint32_t i = 0; i < span; i++)
		sorted[i] = sample_at(pace, i);
	pace->median = stats_median(sorted, span);
}

static bool distances_agree(const struct pace *pace)
{
	uint64_t least = UINT64_MAX, most = 0;

	if (pace->distance_cnt < PACE_DISTANCE_CNT)
		return false;
	for (uint32_t i = 0; i < PACE_DISTANCE_CNT; i++) {
		least = MIN(least, pace->distances[i]);
		most = MAX(most, pace->distances[i]);
	}
	return least >= PACE_PERIOD_MIN && most - least <= 1;
}

/* Periods are only learned at first: later, regular long iterations are a slowdown. */
static void note_pause(struct pace *pace)
{
	pace->pauses++;
	if (pace->long_at != 0)
		pace->distances[pace->distance_cnt++ % PACE_DISTANCE_CNT] =
			pace->cnt - pace->long_at;
	else
		pace->long_first = pace->cnt;
	pace->long_at = pace->cnt;
	if (pace->long_first <= pace->config.window_cnt / 2 &&
	    pace->cnt <= PACE_EARLY_WINDOWS * pace->config.window_cnt && distances_agree(pace))
		pace->pause_period = pace->distances[0];
}

static void renew_baseline(struct pace *pace)
{
	uint64_t cnt = MIN(pace->record_cnt, (uint64_t)pace->config.history_cnt);

	pace->baseline = pace->history[0];
	for (uint64_t i = 1; i < cnt; i++) {
		if (pace->history[i].mean < pace->baseline.mean)
			pace->baseline = pace->history[i];
	}
}

static double record_mean(const struct pace *pace, uint64_t back)
{
	return pace->history[(pace->record_cnt - 1 - back) % pace->config.history_cnt].mean;
}

/*
 * Noise that outlasts an iteration shows between windows. The median of the
 * differences of neighboring ones is deaf to a step and nearly so to a drift.
 */
static void renew_window_var(struct pace *pace)
{
	uint64_t kept = MIN(pace->record_cnt, (uint64_t)pace->config.history_cnt);
	double diffs[PACE_DIFF_MAX], sd;
	uint32_t cnt = 0;

	for (uint64_t i = 0; i + PACE_RECORDS_IN_WINDOW < kept && cnt < PACE_DIFF_MAX; i++)
		diffs[cnt++] =
			fabs(record_mean(pace, i) - record_mean(pace, i + PACE_RECORDS_IN_WINDOW));
	if (cnt < PACE_DIFF_MIN)
		return;
	sd = PACE_SD_MARGIN * STATS_MAD_TO_SD * stats_median(diffs, cnt);
	pace->window_var = sd * sd / 2;
	pace->calibrated = true;
}

static void record(struct pace *pace)
{
	struct record *slot = &pace->history[pace->record_cnt % pace->config.history_cnt];

	*slot = (struct record){ .mean = pace->now.mean, .var = pace->now.var };
	pace->record_cnt++;
	renew_baseline(pace);
	renew_window_var(pace);
}

/*
 * As window_var, before there are windows enough: from the means of ten blocks
 * of the newest window. Small blocks see less of slow noise, hence the margin.
 */
static double early_var(const struct pace *pace)
{
	uint32_t size = MAX(pace->config.window_cnt / PACE_EARLY_BLOCKS, 1u);
	uint32_t cnt = pace->config.window_cnt / size;
	double diffs[PACE_WINDOW_MAX], last = 0, sd;

	for (uint32_t block = 0; block < cnt; block++) {
		double sum = 0;

		for (uint32_t i = 0; i < size; i++)
			sum += sample_at(pace, block * size + i) / size;
		if (block > 0)
			diffs[block - 1] = fabs(sum - last);
		last = sum;
	}
	sd = STATS_MAD_TO_SD * stats_median(diffs, cnt - 1);
	return PACE_EARLY_MARGIN * sd * sd / 2 / cnt;
}

/* How far over the baseline a mean of `span` iterations must be. */
static double threshold_of(const struct pace *pace, const struct window_stats *stats, uint32_t span)
{
	double window_cnt = pace->config.window_cnt;
	double jitter = stats->var / MAX(stats->cnt, 1u) + pace->baseline.var / window_cnt;
	double window_var = pace->calibrated ? pace->window_var : pace->early_var;
	double slow_noise = window_var * (window_cnt / span + 1);
	double z_frac = span > pace->config.window_cnt ? PACE_LONG_Z_FRAC : 1;
	double noise = pace->config.noise_z * fmax(z_frac * sqrt(jitter), sqrt(slow_noise));

	return fmax(pace->config.slow_frac * pace->baseline.mean, noise);
}

/* Mean of the long window over the baseline, as a share of what it has to be for slow. */
static double long_excess(const struct pace *pace)
{
	uint32_t span = PACE_LONG * pace->config.window_cnt;
	struct window_stats stats;

	if (pace->cnt < pace->long_since + span)
		return 0;
	stats = compute_stats(pace, span);
	return (stats.mean - pace->baseline.mean) / threshold_of(pace, &stats, span);
}

static enum pace_result watch(struct pace *pace)
{
	bool over = pace->now.mean - pace->baseline.mean > pace->threshold;
	bool long_over = !over && long_excess(pace) > 1;

	pace->agree = over || long_over ? pace->agree + 1 : 0;
	if (pace->agree >= pace->config.confirm_cnt) {
		pace->slow = true;
		pace->slow_at = pace->cnt;
		pace->slow_by_long = long_over;
		return PACE_SLOW;
	}
	if (pace->cnt % (pace->config.window_cnt / PACE_RECORDS_IN_WINDOW) == 0)
		record(pace);
	return PACE_NONE;
}

/* Until here the baseline stood still: a slow job must not become its own measure too soon. */
static enum pace_result watch_slow(struct pace *pace)
{
	uint64_t since = pace->cnt - pace->slow_at;
	bool is_back = pace->now.mean - pace->baseline.mean <= pace->threshold / 2;
	enum pace_result result = PACE_NONE;

	if (is_back && pace->slow_by_long)
		is_back = long_excess(pace) <= 0.5;
	if (since >= pace->config.window_cnt && is_back)
		result = PACE_CLEARED;
	else if (since >= pace->config.adopt_cnt)
		result = PACE_ADOPTED;
	if (result == PACE_NONE)
		return result;
	pace->slow = false;
	pace->agree = 0;
	pace->long_since = pace->cnt;
	if (result == PACE_ADOPTED) {
		pace->record_cnt = 0;
		record(pace);
	}
	return result;
}

enum pace_result pace_add(struct pace *pace, int64_t time_ns)
{
	double sample = (double)time_ns;

	pace->iterations++;
	if (pace->warmed < pace->config.warmup_cnt) {
		pace->warmed++;
		return PACE_NONE;
	}
	pace->samples[pace->cnt % ARRAY_SIZE(pace->samples)] = sample;
	pace->cnt++;
	if (is_long(pace, sample))
		note_pause(pace);
	renew_median(pace);
	if (pace->cnt < pace->config.window_cnt)
		return PACE_NONE;
	pace->now = compute_stats(pace, pace->config.window_cnt);
	if (pace->record_cnt == 0)
		record(pace);
	if (pace->cnt <= PACE_EARLY_WINDOWS * pace->config.window_cnt)
		pace->early_var = fmax(pace->early_var, early_var(pace));
	pace->threshold = threshold_of(pace, &pace->now, pace->config.window_cnt);
	return pace->slow ? watch_slow(pace) : watch(pace);
}

void pace_look(const struct pace *pace, struct pace_view *ret)
{
	*ret = (struct pace_view){
		.ready = pace->record_cnt > 0,
		.slow = pace->slow,
		.mean_ns = (int64_t)pace->now.mean,
		.baseline_ns = (int64_t)pace->baseline.mean,
		.threshold_ns = (int64_t)(pace->baseline.mean + pace->threshold),
		.pauses = pace->pauses,
		.iterations = pace->iterations,
	};
}
