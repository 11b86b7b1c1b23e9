/* SPDX-License-Identifier: Apache-2.0 */
#include "report/breakdown.h"

#include "base/stats.h"
#include "report/phrase.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define ITERATIONS_SHOWN 10u /* one by one */
#define MOST_BEYOND_PCT 5.0  /* a worker with so much more than the median is named */

/* Median of what a worker has, of those where it is known; NAN: of none. values: room for all. */
static double median_of(const struct report *report, double *values,
			double (*get)(const struct report_worker *worker, size_t i), size_t i)
{
	size_t cnt = 0;

	for (size_t w = 0; w < report->worker_cnt; w++) {
		double value = get(&report->workers[w], i);

		if (isfinite(value))
			values[cnt++] = value;
	}
	return cnt > 0 ? stats_median(values, cnt) : (double)NAN;
}

static double share_pct(const struct report_worker *worker, size_t class)
{
	return 100.0 * worker->class_frac[class];
}

/* A worker that saw no iteration counts its whole window as one. */
static double per_iteration(const struct report_worker *worker)
{
	return worker->window_ms / (double)MAX(worker->iteration_cnt, (size_t)1);
}

static double class_ms(const struct report_worker *worker, size_t class)
{
	return worker->class_frac[class] * per_iteration(worker);
}

static double hidden_ms(const struct report_worker *worker, _unused_ size_t i)
{
	return worker->comm_hidden_frac * per_iteration(worker);
}

static double iteration_ms(const struct report_worker *worker, size_t i)
{
	return i < worker->iteration_cnt ? worker->iteration_ms[i] : (double)NAN;
}

static void fill_class(struct breakdown *b, const struct report *report, size_t class,
		       double *values)
{
	struct breakdown_class *of = &b->classes[class];

	of->ms = median_of(report, values, class_ms, class);
	of->pct = median_of(report, values, share_pct, class);
	for (size_t w = 0; w < report->worker_cnt; w++) {
		double pct = share_pct(&report->workers[w], class);

		if (isfinite(pct) && pct > of->most_pct) {
			of->most_pct = pct;
			of->most_rank = report->workers[w].rank;
		}
	}
}

int breakdown_init(struct breakdown *ret, const struct report *report)
{
	_cleanup_free_ double *values = calloc(report->worker_cnt + 1, sizeof(*values));
	size_t most = 0;

	*ret = (struct breakdown){ .hidden_ms = (double)NAN };
	for (size_t w = 0; w < report->worker_cnt; w++)
		most = MAX(most, report->workers[w].iteration_cnt);
	ret->iteration_ms = calloc(most + 1, sizeof(*ret->iteration_ms));
	if (values == NULL || ret->iteration_ms == NULL) {
		breakdown_done(ret);
		return -ENOMEM;
	}
	for (size_t class = 0; class < CLASS_CNT && report->worker_cnt > 0; class ++)
		fill_class(ret, report, class, values);
	ret->hidden_ms = median_of(report, values, hidden_ms, 0);
	for (size_t i = 0; i < most; i++)
		ret->iteration_ms[i] = median_of(report, values, iteration_ms, i);
	ret->iteration_cnt = most;
	return 0;
}

void breakdown_done(struct breakdown *breakdown)
{
	free(breakdown->iteration_ms);
	*breakdown = (struct breakdown){ 0 };
}

const char *breakdown_class_words(enum event_class class)
{
	static const char *const words[CLASS_CNT] = {
		[CLASS_IDLE] = "idle: nothing of the worker ran",
		[CLASS_HOST] = "host: Python, and operators that launch work",
		[CLASS_COMM] = "communication that no other work hides",
		[CLASS_MEMORY] = "memory: copies, sets, allocations",
		[CLASS_COMPUTE] = "compute",
	};

	return words[class];
}

void breakdown_phrase_class(struct str *out, const struct breakdown *breakdown,
			    const struct report *report, enum event_class class)
{
	const struct breakdown_class *of = &breakdown->classes[class];

	str_append(out, breakdown_class_words(class));
	if (class == CLASS_COMM && isfinite(breakdown->hidden_ms) &&
	    breakdown->hidden_ms > 0.01 * report->iteration_ms) {
		str_append(out, "; ");
		phrase_ms(out, breakdown->hidden_ms);
		str_append(out, " more behind other work");
	}
	if (of->most_pct >= of->pct + MOST_BEYOND_PCT) {
		str_append(out, "; ");
		phrase_pct(out, of->most_pct);
		str_printf(out, " on rank %d", of->most_rank);
	}
}

/* The extremes, of many iterations. */
static void phrase_extremes(struct str *out, const struct breakdown *breakdown)
{
	size_t longest = 0, shortest = 0;

	for (size_t i = 1; i < breakdown->iteration_cnt; i++) {
		double ms = breakdown->iteration_ms[i];

		/* The first may be unknown (NAN): then any other replaces it. */
		if (isfinite(ms) && !(ms <= breakdown->iteration_ms[longest]))
			longest = i;
		if (isfinite(ms) && !(ms >= breakdown->iteration_ms[shortest]))
			shortest = i;
	}
	str_printf(out, "%zu, from ", breakdown->iteration_cnt);
	phrase_ms(out, breakdown->iteration_ms[shortest]);
	str_printf(out, " (number %zu) to ", shortest + 1);
	phrase_ms(out, breakdown->iteration_ms[longest]);
	str_printf(out, " (number %zu)", longest + 1);
}

void breakdown_phrase_iterations(struct str *out, const struct breakdown *breakdown)
{
	if (breakdown->iteration_cnt > ITERATIONS_SHOWN) {
		phrase_extremes(out, breakdown);
		return;
	}
	for (size_t i = 0; i < breakdown->iteration_cnt; i++) {
		str_append(out, i > 0 ? ", " : "");
		phrase_ms(out, breakdown->iteration_ms[i]);
	}
}
