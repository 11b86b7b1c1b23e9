/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How GPUs were used, what took most time on them, collectives by kind, and late ranks: the part of
 * the text report that does not depend on findings. With findings only the first lines are printed.
 */
#include "base/stats.h"
#include "base/text/clean.h"
#include "base/text/number.h"
#include "report/phrase.h"
#include "report/text_parts.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define NAME_CELLS 60
#define CELLS 23	/* as in the list of functions */
#define TOTALS_SHOWN 10 /* of each kind */
#define CALLS_SHOWN 5
#define COLLECTIVES_SHOWN 10
#define LATE_SHOWN 4
#define LATE_LEAST 0.01 /* of an iteration */

static void heading(struct text_writer *w, const char *text)
{
	str_append_char(w->page.out, '\n');
	page_wrap(&w->page, PAGE_BOLD, 0, 0, text);
}

/* A row whose first cells are formatted; frees words. */
static void row(struct text_writer *w, const char *cells, struct str *words)
{
	page_paragraph(&w->page, 4, cells, CELLS, words);
}

/* --- use of GPUs --- */

typedef double (*use_value)(const struct report_use *use);

#define VALUE(field)                                            \
	static double use_##field(const struct report_use *use) \
	{                                                       \
		return use->field;                              \
	}

VALUE(busy_frac)
VALUE(compute_frac)
VALUE(comm_frac)
VALUE(comm_alone_frac)
VALUE(memory_frac)
VALUE(memory_alone_frac)
VALUE(starved_frac)
VALUE(kernels)
VALUE(short_frac)
VALUE(launch_delay_us)
VALUE(alloc_calls)
VALUE(alloc_ms)

/* Median over the workers with GPUs; values: room for all. */
static double median_use(const struct text_writer *w, double *values, use_value of)
{
	size_t cnt = 0;

	for (size_t i = 0; i < w->report->worker_cnt; i++) {
		double value = of(&w->report->workers[i].use);

		if (w->report->workers[i].use.known && !isnan(value))
			values[cnt++] = value;
	}
	return cnt > 0 ? stats_median(values, cnt) : (double)NAN;
}

static void pct_row(struct text_writer *w, double frac, const char *words, double alone_frac)
{
	struct str cells = { 0 }, text = { 0 };

	phrase_pct(&cells, 100 * frac);
	str_append(&text, words);
	if (alone_frac > 0) {
		str_append(&text, "; ");
		phrase_pct(&text, 100 * alone_frac);
		str_append(&text, " with nothing else on the GPU");
	}
	row(w, str_borrow(&cells), &text);
	page_finish_text(&w->page, &cells);
}

static void launch_row(struct text_writer *w, double *values)
{
	double kernels = median_use(w, values, use_kernels);
	double delay_us = median_use(w, values, use_launch_delay_us);
	double calls = median_use(w, values, use_alloc_calls);
	struct str text = { 0 };

	str_printf(&text, "%.0f per iteration, ", kernels);
	phrase_pct(&text, 100 * median_use(w, values, use_short_frac));
	str_append(&text, " of them shorter than 10 us");
	if (delay_us > 0) {
		str_append(&text, "; a kernel begins ");
		phrase_ms(&text, delay_us / 1000);
		str_append(&text, " after its launch (median)");
	}
	row(w, "kernels", &text);
	if (!(calls > 0))
		return;
	str_append(&text, number_text(calls).text);
	str_append(&text, " calls per iteration that allocate, pin or free memory, ");
	phrase_ms(&text, median_use(w, values, use_alloc_ms));
	row(w, "allocator", &text);
}

static void use_part(struct text_writer *w, double *values)
{
	double busy = median_use(w, values, use_busy_frac);
	double comm = median_use(w, values, use_comm_frac);
	double memory = median_use(w, values, use_memory_frac);
	struct str idle = { 0 };

	if (isnan(busy))
		return;
	heading(w, "What the GPUs do, share of the window, median of the ranks");
	pct_row(w, median_use(w, values, use_compute_frac), "compute", 0);
	if (comm > 0)
		pct_row(w, comm, "communication, waiting for other ranks included",
			median_use(w, values, use_comm_alone_frac));
	if (memory > 0)
		pct_row(w, memory, "copies and sets", median_use(w, values, use_memory_alone_frac));
	str_append(&idle, "no work; for ");
	phrase_pct(&idle, 100 * median_use(w, values, use_starved_frac));
	str_append(&idle, " the host had launched none");
	pct_row(w, fmax(0, 1 - busy), str_borrow(&idle), 0);
	page_finish_text(&w->page, &idle);
	launch_row(w, values);
}

/* --- totals --- */

static void total_row(struct text_writer *w, const struct report_total *total)
{
	struct str cells = { 0 }, text = { 0 };

	phrase_ms(&cells, total->ms);
	str_append(&cells, "  x ");
	str_append(&cells, number_text(total->cnt).text);
	clean_append_short(&text, total->name, NAME_CELLS);
	if (isfinite(total->gbytes_per_s)) {
		str_append(&text, ", ");
		str_append(&text, number_text(total->gbytes_per_s).text);
		str_append(&text, " GB/s");
	}
	if (total->kind == KIND_RUNTIME && total->idle_ms > 0) {
		str_append(&text, ", ");
		phrase_ms(&text, total->idle_ms);
		str_append(&text, " of it without work on the GPU");
	}
	row(w, str_borrow(&cells), &text);
	page_finish_text(&w->page, &cells);
}

static void totals_part(struct text_writer *w, bool calls, size_t most, const char *title)
{
	size_t shown = 0;

	for (size_t i = 0; i < w->report->total_cnt && (shown < most || w->verbose); i++) {
		const struct report_total *total = &w->report->totals[i];

		if ((total->kind == KIND_RUNTIME) != calls)
			continue;
		if (shown++ == 0)
			heading(w, title);
		total_row(w, total);
	}
}

/* --- collectives --- */

static void phrase_bytes(struct str *out, double bytes)
{
	static const char *const units[] = { "B", "kB", "MB", "GB" };
	size_t unit = 0;

	for (; bytes >= 999.5 && unit + 1 < ARRAY_SIZE(units); unit++)
		bytes /= 1000;
	str_append(out, number_text(bytes).text);
	str_printf(out, " %s", units[unit]);
}

static void collective_row(struct text_writer *w, const struct report_collective *collective)
{
	struct str cells = { 0 }, text = { 0 };

	phrase_ms(&cells, collective->ms);
	str_append(&cells, "  x ");
	str_append(&cells, number_text(collective->cnt).text);
	clean_append_short(&text, collective->operation, NAME_CELLS);
	if (collective->group_size > 0)
		str_printf(&text, " of %d ranks", collective->group_size);
	if (isfinite(collective->bytes)) {
		str_append(&text, ", ");
		phrase_bytes(&text, collective->bytes);
	}
	str_append(&text, collective->matched ? "; without waiting " : "; at best ");
	phrase_ms(&text, collective->latency_ms);
	if (isfinite(collective->bus_gbytes_per_s)) {
		str_append(&text, ", bus bandwidth ");
		str_append(&text, number_text(collective->bus_gbytes_per_s).text);
		str_append(&text, " GB/s");
	}
	row(w, str_borrow(&cells), &text);
	page_finish_text(&w->page, &cells);
}

static void collectives_part(struct text_writer *w)
{
	size_t shown =
		MIN(w->report->collective_cnt, w->verbose ? SIZE_MAX : (size_t)COLLECTIVES_SHOWN);

	if (shown > 0)
		heading(w, "Collectives by kind and size, per iteration of a rank, with waiting");
	for (size_t i = 0; i < shown; i++)
		collective_row(w, &w->report->collectives[i]);
}

/* --- late ranks --- */

struct late {
	const struct report_worker *worker;
	double mean_ms, worst_ms;
};

static int latest_first(const void *a, const void *b)
{
	const struct late *x = a, *y = b;

	if (x->mean_ms != y->mean_ms)
		return x->mean_ms < y->mean_ms ? 1 : -1;
	return (x->worker->rank > y->worker->rank) - (x->worker->rank < y->worker->rank);
}

static struct late late_of(const struct report_worker *worker)
{
	struct late ret = { .worker = worker };

	for (size_t i = 0; i < worker->iteration_cnt && worker->late_ms != NULL; i++) {
		ret.mean_ms += worker->late_ms[i] / (double)worker->iteration_cnt;
		ret.worst_ms = fmax(ret.worst_ms, worker->late_ms[i]);
	}
	return ret;
}

static void late_part(struct text_writer *w)
{
	size_t cnt = w->report->worker_cnt;
	struct late *late = calloc(cnt + 1, sizeof(*late));

	if (late == NULL) {
		w->page.out->error = -ENOMEM;
		return;
	}
	for (size_t i = 0; i < cnt; i++)
		late[i] = late_of(&w->report->workers[i]);
	qsort(late, cnt, sizeof(*late), latest_first);
	for (size_t i = 0; i < MIN(cnt, (size_t)LATE_SHOWN); i++) {
		struct str cells = { 0 }, text = { 0 };

		if (!(late[i].mean_ms > LATE_LEAST * w->report->iteration_ms))
			break;
		if (i == 0)
			heading(w, "Ranks that others waited for, per iteration");
		phrase_ms(&cells, late[i].mean_ms);
		str_printf(&text, "rank %d, at most ", late[i].worker->rank);
		phrase_ms(&text, late[i].worst_ms);
		row(w, str_borrow(&cells), &text);
		page_finish_text(&w->page, &cells);
	}
	free(late);
}

void text_use(struct text_writer *w)
{
	double *values = calloc(w->report->worker_cnt + 1, sizeof(*values));

	if (values == NULL) {
		w->page.out->error = -ENOMEM;
		return;
	}
	use_part(w, values);
	free(values);
	if (!w->verbose && w->report->verdict == VERDICT_ABNORMAL)
		return;
	totals_part(w, false, TOTALS_SHOWN,
		    "Kernels and copies with most time, per iteration, mean of the ranks");
	totals_part(w, true, CALLS_SHOWN,
		    "Calls of the GPU's runtime with most time, per iteration, mean of the ranks");
	collectives_part(w);
	late_part(w);
}
