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

/* Iterations whose window is longer than the baseline by a factor; shorter ones count back. */
struct clear_run {
	uint32_t cnt;
	double ns; /* how long they took */
};

struct pace {
	struct pace_config config;
	double samples[PACE_LONG * PACE_WINDOW_MAX]; /* by sample number, modulo */
	uint64_t cnt;				     /* samples since the reset, warm-up apart */
	uint32_t warmed;
	double median; /* of the last N, renewed each N/10 */

	struct record *history; /* of history_cnt, modulo */
	uint64_t record_cnt;
	double *scratch;	   /* history_cnt numbers */
	struct record recent;	   /* the least of the history */
	struct record best_era;	   /* the best of the eras before */
	struct record baseline;	   /* of these two, the one that the mean exceeds most */
	double eras[PACE_ERA_CNT]; /* their paces, modulo */
	uint64_t era_cnt;
	double era_sd;	  /* of the difference of two eras */
	double best_once; /* best before the latest pace_accept(); 0: none */

	double window_var; /* of a whole window's mean, from windows that don't overlap */
	bool calibrated;   /* there were enough of them; until then: */
	double early_var;  /* the greatest that single windows showed */

	uint64_t long_at, long_first; /* sample numbers of long iterations; 0: none */
	uint64_t distances[PACE_DISTANCE_CNT];
	uint32_t distance_cnt;
	uint64_t pause_period; /* 0: pauses are not periodic */

	struct window_stats now;
	double threshold; /* over the baseline, short window */
	uint32_t agree;	  /* iterations in a row that were over it */
	uint64_t
		long_since; /* end of the latest slowdown: samples before it show the next no more */
	uint64_t slow_at;
	uint64_t over_at;    /* newest sample at which the slow pace was over the threshold */
	uint64_t slow_since; /* of iterations: when the slowdown found at slow_at began */
	bool slow;
	struct clear_run clearly, lasting;
	double clear; /* times the baseline that no noise explains, until the slowdown is over; 0 */
	bool slow_by_era; /* slower than an earlier era, not than the history */
	bool slow_by_long; /* rare long iterations, or much noise: the short window misses their end */
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
	pace->scratch = calloc(config->history_cnt, sizeof(*pace->scratch));
	if (pace->history == NULL || pace->scratch == NULL)
		return pace_free(pace);
	return pace;
}

struct pace *pace_free(struct pace *pace)
{
	if (pace == NULL)
		return NULL;
	free(pace->history);
	free(pace->scratch);
	free(pace);
	return NULL;
}

void pace_reset(struct pace *pace)
{
	struct pace kept = { .config = pace->config,
			     .history = pace->history,
			     .scratch = pace->scratch,
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

static void renew_recent(struct pace *pace)
{
	uint64_t cnt = MIN(pace->record_cnt, (uint64_t)pace->config.history_cnt);

	pace->recent = pace->history[0];
	for (uint64_t i = 1; i < cnt; i++) {
		if (pace->history[i].mean < pace->recent.mean)
			pace->recent = pace->history[i];
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

/* As renew_window_var(), of eras: how the pace of a healthy job wanders. */
static void renew_era_sd(struct pace *pace)
{
	uint64_t cnt = MIN(pace->era_cnt, (uint64_t)PACE_ERA_CNT) - 1;
	double diffs[PACE_ERA_CNT];

	if (pace->era_cnt < PACE_ERA_MIN) {
		pace->era_sd = PACE_ERA_FRAC * pace->best_era.mean;
		return;
	}
	for (uint64_t i = 0; i < cnt; i++)
		diffs[i] = fabs(pace->eras[(pace->era_cnt - 1 - i) % PACE_ERA_CNT] -
				pace->eras[(pace->era_cnt - 2 - i) % PACE_ERA_CNT]);
	pace->era_sd = PACE_SD_MARGIN * STATS_MAD_TO_SD * stats_median(diffs, cnt);
}

/* The history is full of new records: an era has ended. */
static void end_era(struct pace *pace)
{
	struct record era = { 0 };

	for (uint32_t i = 0; i < pace->config.history_cnt; i++) {
		pace->scratch[i] = pace->history[i].mean;
		era.var += pace->history[i].var / pace->config.history_cnt;
	}
	era.mean = stats_quantile(pace->scratch, pace->config.history_cnt, PACE_ERA_QUANTILE);
	pace->eras[pace->era_cnt++ % PACE_ERA_CNT] = era.mean;
	if (pace->era_cnt == 1 || era.mean < pace->best_era.mean)
		pace->best_era = era;
	renew_era_sd(pace);
}

static void record(struct pace *pace)
{
	struct record *slot = &pace->history[pace->record_cnt % pace->config.history_cnt];

	*slot = (struct record){ .mean = pace->now.mean, .var = pace->now.var };
	pace->record_cnt++;
	renew_recent(pace);
	renew_window_var(pace);
	if (pace->record_cnt % pace->config.history_cnt == 0)
		end_era(pace);
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

/* How far over `from` a mean of `span` iterations must be. wander: deviation of `from` itself. */
static double threshold_over(const struct pace *pace, const struct record *from, double wander,
			     const struct window_stats *stats, uint32_t span)
{
	double window_cnt = pace->config.window_cnt;
	double jitter = stats->var / MAX(stats->cnt, 1u) + from->var / window_cnt;
	double window_var = pace->calibrated ? pace->window_var : pace->early_var;
	double slow_noise = window_var * (window_cnt / span + 1) + wander * wander;
	double z_frac = span > pace->config.window_cnt ? PACE_LONG_Z_FRAC : 1;
	double noise = pace->config.noise_z * fmax(z_frac * sqrt(jitter), sqrt(slow_noise));

	if (pace->clear > 0)
		noise = fmin(noise, (pace->clear - 1) * from->mean);
	return fmax(pace->config.slow_frac * from->mean, noise);
}

/* The mean of a window beside what it is compared with. */
struct comparison {
	const struct record *baseline;
	double threshold; /* over the baseline */
	double excess;	  /* of the mean over the baseline, in thresholds */
};

static struct comparison compare_with(const struct pace *pace, const struct record *from,
				      double wander, const struct window_stats *stats,
				      uint32_t span)
{
	struct comparison ret = { .baseline = from };

	ret.threshold = threshold_over(pace, from, wander, stats, span);
	ret.excess = (stats->mean - from->mean) / ret.threshold;
	return ret;
}

/* While the pace is slow, what it is compared with stays the same. */
static struct comparison compare(const struct pace *pace, const struct window_stats *stats,
				 uint32_t span)
{
	struct comparison recent = compare_with(pace, &pace->recent, 0, stats, span), era;

	if (pace->era_cnt == 0 || (pace->slow && !pace->slow_by_era))
		return recent;
	era = compare_with(pace, &pace->best_era, pace->era_sd, stats, span);
	return pace->slow || era.excess > recent.excess ? era : recent;
}

/* As compare(), of the long window; excess 0 while there are too few samples. */
static struct comparison compare_long(const struct pace *pace)
{
	uint32_t span = PACE_LONG * pace->config.window_cnt;
	struct window_stats stats;

	if (pace->cnt < pace->long_since + span)
		return (struct comparison){ .baseline = &pace->recent };
	stats = compute_stats(pace, span);
	return compare(pace, &stats, span);
}

/*
 * Over how many of the newest samples their sum exceeds the limit's most. Those of an earlier
 * slowdown are not looked at.
 */
static uint32_t find_span_over(const struct pace *pace, double limit)
{
	uint64_t all = MIN(pace->cnt - pace->long_since, (uint64_t)ARRAY_SIZE(pace->samples));
	uint32_t most = (uint32_t)all, ret = 1;
	double sum = 0, greatest = 0;

	for (uint32_t i = 0; i < most; i++) {
		sum += sample_at(pace, i);
		if (sum - limit * (i + 1) > greatest) {
			greatest = sum - limit * (i + 1);
			ret = i + 1;
		}
	}
	return ret;
}

/* Of the newest: a single pause among them does not move it. */
static double median_of(const struct pace *pace, uint32_t span)
{
	double sorted[ARRAY_SIZE(pace->samples)];

	for (uint32_t i = 0; i < span; i++)
		sorted[i] = sample_at(pace, i);
	return stats_median(sorted, span);
}

/*
 * How many of the newest samples the slowdown has lasted. The limit moves up to half way between
 * the baseline and the slow pace: a little noise before a large step is not part of it.
 */
static uint32_t find_slow_span(const struct pace *pace)
{
	double limit = pace->baseline.mean + pace->threshold;
	uint32_t span = find_span_over(pace, limit), before;

	do {
		before = span;
		limit = fmax(limit, (pace->baseline.mean + median_of(pace, span)) / 2);
		span = find_span_over(pace, limit);
	} while (span < before);
	return span;
}

static void set_baseline(struct pace *pace, const struct comparison *found)
{
	pace->baseline = *found->baseline;
	pace->threshold = found->threshold;
}

static enum pace_result become_slow(struct pace *pace, const struct comparison *found, bool by_long)
{
	set_baseline(pace, found);
	pace->slow = true;
	pace->slow_at = pace->over_at = pace->cnt;
	pace->slow_since = pace->iterations + 1 - find_slow_span(pace);
	pace->slow_by_long = by_long;
	pace->slow_by_era = found->baseline == &pace->best_era;
	return PACE_SLOW;
}

static void clear_run_add(struct clear_run *run, bool longer, double sample)
{
	uint32_t back = MIN(run->cnt, 2u);

	run->ns += longer ? sample : -run->ns * back / MAX(run->cnt, 1u);
	run->cnt = longer ? run->cnt + 1 : run->cnt - back;
}

/* Whether nearly all of the newest few iterations are longer, not only their mean. */
static bool few_are_longer(const struct pace *pace, double limit)
{
	uint32_t longer = 0;

	for (uint32_t i = 0; i < PACE_FEW_CNT; i++)
		longer += sample_at(pace, i) >= limit;
	return longer + 2 >= PACE_FEW_CNT;
}

/*
 * A first window on a busy machine shows so much noise that twice as long iterations would not
 * exceed it. Where each window is clearly longer for long enough, that is a slowdown, whatever its cause.
 */
static void note_clear(struct pace *pace, double sample)
{
	double factor = pace->config.clear_factor, lasting = fmin(factor, PACE_LASTING_FACTOR);
	double limit = factor * pace->recent.mean;
	struct clear_run *clearly = &pace->clearly, *run = &pace->lasting;
	bool many, few;

	if (!isfinite(factor))
		return;
	clear_run_add(clearly, pace->now.mean >= limit, sample);
	clear_run_add(run, pace->now.mean >= lasting * pace->recent.mean, sample);
	if (run->cnt == 0)
		pace->clear = 0;
	if (pace->clear == 0 && run->ns >= PACE_LASTING_NS &&
	    run->cnt >= PACE_LASTING_WINDOWS * pace->config.window_cnt)
		pace->clear = lasting;
	many = clearly->cnt >= pace->config.window_cnt && clearly->ns >= PACE_CLEAR_NS;
	few = clearly->cnt >= PACE_FEW_CNT && clearly->ns >= PACE_FEW_NS;
	if (pace->clear == 0 && (many || (few && few_are_longer(pace, limit))))
		pace->clear = factor;
}

static enum pace_result watch(struct pace *pace)
{
	struct comparison found = compare(pace, &pace->now, pace->config.window_cnt);
	bool over = found.excess > 1;
	struct comparison cause = over ? found : compare_long(pace);

	set_baseline(pace, &found);
	pace->agree = cause.excess > 1 ? pace->agree + 1 : 0;
	if (pace->agree >= pace->config.confirm_cnt)
		return become_slow(pace, &cause, !over || pace->clear > 0);
	if (pace->cnt % (pace->config.window_cnt / PACE_RECORDS_IN_WINDOW) == 0)
		record(pace);
	return PACE_NONE;
}

static void end_slow(struct pace *pace)
{
	pace->slow = false;
	pace->clear = 0;
	pace->clearly = pace->lasting = (struct clear_run){ 0 };
	pace->slow_since = 0;
	pace->agree = 0;
	pace->long_since = pace->cnt;
}

/* Nothing is recorded here: a slow pace must not become its own measure. */
static enum pace_result watch_slow(struct pace *pace)
{
	struct comparison found = compare(pace, &pace->now, pace->config.window_cnt);
	double excess = found.excess;

	set_baseline(pace, &found);
	if (pace->slow_by_long)
		excess = fmax(excess, compare_long(pace).excess);
	if (excess > 1)
		pace->over_at = pace->cnt;
	if (pace->cnt - pace->slow_at < pace->config.window_cnt)
		return PACE_NONE;
	if (excess > 0.5 &&
	    pace->cnt - pace->over_at < (uint64_t)PACE_BELOW_WINDOWS * pace->config.window_cnt)
		return PACE_NONE;
	end_slow(pace);
	return PACE_CLEARED;
}

/* Forgets all samples but the newest `cnt`, a window at most, and what was learned from the others. */
static void keep_newest(struct pace *pace, uint32_t cnt)
{
	double kept[PACE_WINDOW_MAX];

	for (uint32_t i = 0; i < cnt; i++)
		kept[cnt - 1 - i] = sample_at(pace, i);
	for (uint32_t i = 0; i < cnt; i++)
		pace->samples[i] = kept[i];
	pace->cnt = cnt;
	pace->long_at = pace->long_first = pace->distance_cnt = 0;
	pace->record_cnt = pace->era_cnt = 0;
	pace->calibrated = false;
	pace->early_var = 0;
}

static double find_best(const struct pace *pace)
{
	double best = pace->recent.mean;

	if (pace->era_cnt > 0)
		best = fmin(best, pace->best_era.mean);
	return pace->best_once > 0 ? fmin(best, pace->best_once) : best;
}

bool pace_accept(struct pace *pace)
{
	uint64_t lasted = MIN(pace->iterations + 1 - pace->slow_since, pace->cnt);
	uint32_t window_cnt = pace->config.window_cnt;
	uint64_t span = MIN(lasted, (uint64_t)window_cnt * (pace->slow_by_long ? PACE_LONG : 1));

	if (!pace->slow)
		return false;
	pace->best_once = find_best(pace);
	pace->now = compute_stats(pace, (uint32_t)span);
	keep_newest(pace, (uint32_t)MIN(span, (uint64_t)window_cnt));
	record(pace);
	pace->baseline = pace->recent;
	pace->threshold = threshold_over(pace, &pace->baseline, 0, &pace->now, window_cnt);
	end_slow(pace);
	return true;
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
	if (pace->slow)
		return watch_slow(pace);
	note_clear(pace, sample);
	return watch(pace);
}

void pace_look(const struct pace *pace, struct pace_view *ret)
{
	*ret = (struct pace_view){
		.ready = pace->record_cnt > 0,
		.slow = pace->slow,
		.mean_ns = (int64_t)pace->now.mean,
		.baseline_ns = (int64_t)pace->baseline.mean,
		.best_ns = (int64_t)find_best(pace),
		.threshold_ns = (int64_t)(pace->baseline.mean + pace->threshold),
		.pauses = pace->pauses,
		.iterations = pace->iterations,
		.slow_since = pace->slow_since,
	};
}
