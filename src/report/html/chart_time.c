/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures over the workers of a window: iteration times, shares by class. */
#include "base/stats.h"
#include "base/text/clean.h"
#include "report/html/chart.h"
#include "report/html/markup.h"
#include "report/html/plot.h"
#include "report/phrase.h"

#include <errno.h>
#include <math.h>

#define WIDTH 1040.0
#define BINS_MAX 400	/* iterations drawn apart */
#define FLAGGED_LINES 4 /* drawn over the band of many workers */
#define ROWS_MAX 40	/* workers with a bar and a name of their own */
#define COLUMNS_MAX 160

static const enum event_class class_order[CLASS_CNT] = {
	CLASS_COMPUTE, CLASS_MEMORY, CLASS_COMM, CLASS_HOST, CLASS_IDLE,
};

void figure_open(struct str *out, const char *caption)
{
	str_append(out, "<figure tabindex=\"0\"><figcaption>");
	markup_text(out, caption);
	str_append(out, "</figcaption>\n");
}

void figure_close(struct str *out, const char *note)
{
	if (note != NULL && note[0] != '\0') {
		str_append(out, "<p class=\"note\">");
		markup_text(out, note);
		str_append(out, "</p>");
	}
	str_append(out, "</figure>\n");
}

bool chart_flagged(const struct report *report, int rank)
{
	for (size_t i = 0; i < report->finding_cnt; i++) {
		if (!report->findings[i].all_workers &&
		    finding_names_rank(&report->findings[i], rank))
			return true;
	}
	return false;
}

/* Iterations per drawn point, points, and the extremes of all of them. */
struct series {
	size_t per_bin, bin_cnt;
	double max_ms;
};

/* Mean of the worker's iterations in a bin; NAN when it has none there. */
static double bin_ms(const struct report_worker *worker, const struct series *series, size_t bin)
{
	size_t end = MIN((bin + 1) * series->per_bin, worker->iteration_cnt), cnt = 0;
	double sum = 0.0;

	for (size_t i = bin * series->per_bin; i < end; i++) {
		if (isfinite(worker->iteration_ms[i])) {
			sum += worker->iteration_ms[i];
			cnt++;
		}
	}
	return cnt > 0 ? sum / (double)cnt : (double)NAN;
}

static struct series series_make(const struct report *report)
{
	struct series series = { .per_bin = 1 };
	size_t longest = 0;

	for (size_t i = 0; i < report->worker_cnt; i++)
		longest = MAX(longest, report->workers[i].iteration_cnt);
	series.per_bin = MAX((longest + BINS_MAX - 1) / BINS_MAX, (size_t)1);
	series.bin_cnt = (longest + series.per_bin - 1) / series.per_bin;
	for (size_t i = 0; i < report->worker_cnt; i++) {
		for (size_t bin = 0; bin < series.bin_cnt; bin++) {
			double ms = bin_ms(&report->workers[i], &series, bin);

			series.max_ms = isfinite(ms) ? MAX(series.max_ms, ms) : series.max_ms;
		}
	}
	return series;
}

static double bin_x(const struct plot *plot, const struct series *series, size_t bin)
{
	return plot_x(plot, (double)(bin * series->per_bin + 1));
}

static void worker_tip(struct str *tip, const struct report_worker *worker, bool flagged)
{
	str_printf(tip, "rank %d%s", worker->rank, flagged ? ", flagged" : "");
	if (worker->host == NULL || worker->host[0] == '\0')
		return;
	str_append(tip, ", ");
	clean_append_short(tip, worker->host, 64);
}

static void worker_line(const struct plot *plot, const struct series *series,
			const struct report_worker *worker, bool flagged)
{
	_cleanup_(str_done) struct str tip = { 0 };
	bool first = true;

	worker_tip(&tip, worker, flagged);
	svg_path_begin(plot->out, flagged ? "line bad" : "line peer");
	for (size_t bin = 0; bin < series->bin_cnt; bin++) {
		double ms = bin_ms(worker, series, bin);

		if (!isfinite(ms))
			continue;
		svg_path_point(plot->out, first, bin_x(plot, series, bin), plot_y(plot, ms));
		first = false;
	}
	svg_path_end(plot->out, false, markup_borrow(plot->out, &tip));
}

static void one_by_one(const struct report *report, const struct plot *plot,
		       const struct series *series)
{
	for (int flagged = 0; flagged < 2; flagged++) {
		for (size_t i = 0; i < report->worker_cnt; i++) {
			const struct report_worker *worker = &report->workers[i];

			if (chart_flagged(report, worker->rank) == flagged)
				worker_line(plot, series, worker, flagged != 0);
		}
	}
}

/* The workers that are not flagged, and room for one value of each. */
struct band {
	const struct report_worker **peers;
	double *values;
	size_t peer_cnt;
};

static int band_init(struct band *band, const struct report *report)
{
	band->peers = calloc(report->worker_cnt, sizeof(*band->peers));
	band->values = calloc(report->worker_cnt, sizeof(*band->values));
	if (band->peers == NULL || band->values == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < report->worker_cnt; i++) {
		if (!chart_flagged(report, report->workers[i].rank))
			band->peers[band->peer_cnt++] = &report->workers[i];
	}
	return 0;
}

static void band_done(struct band *band)
{
	free(band->peers);
	free(band->values);
}

static void band_edge(const struct band *band, const struct plot *plot, const struct series *series,
		      double quantile, bool reverse)
{
	for (size_t i = 0; i < series->bin_cnt; i++) {
		size_t bin = reverse ? series->bin_cnt - 1 - i : i, cnt = 0;

		for (size_t w = 0; w < band->peer_cnt; w++) {
			double ms = bin_ms(band->peers[w], series, bin);

			if (isfinite(ms))
				band->values[cnt++] = ms;
		}
		svg_path_point(plot->out, i == 0 && !reverse, bin_x(plot, series, bin),
			       plot_y(plot, stats_quantile(band->values, cnt, quantile)));
	}
}

static void draw_band(const struct band *band, const struct plot *plot, const struct series *series)
{
	svg_path_begin(plot->out, "band");
	band_edge(band, plot, series, 0.95, false);
	band_edge(band, plot, series, 0.05, true);
	svg_path_end(plot->out, true, "9 of 10 peers");
}

static void draw_median(const struct band *band, const struct plot *plot,
			const struct series *series)
{
	svg_path_begin(plot->out, "line peer strong");
	band_edge(band, plot, series, 0.5, false);
	svg_path_end(plot->out, false, "median of the peers");
}

static void band_of_many(const struct report *report, const struct plot *plot,
			 const struct series *series)
{
	_cleanup_(band_done) struct band band = { 0 };
	size_t drawn = 0;

	if (band_init(&band, report) < 0) {
		plot->out->error = -ENOMEM;
		return;
	}
	if (band.peer_cnt > 0)
		draw_band(&band, plot, series);
	for (size_t i = 0; i < report->worker_cnt && drawn < FLAGGED_LINES; i++) {
		if (chart_flagged(report, report->workers[i].rank)) {
			worker_line(plot, series, &report->workers[i], true);
			drawn++;
		}
	}
	if (band.peer_cnt > 0)
		draw_median(&band, plot, series);
}

/* For a window of one iteration: a dot per worker, over the ranks. */
static void dots_over_ranks(const struct report *report, const struct plot *plot,
			    const struct series *series)
{
	bool tips = report->worker_cnt <= CHART_POINTS_MAX;

	for (size_t i = 0; i < report->worker_cnt; i++) {
		const struct report_worker *worker = &report->workers[i];
		double ms = bin_ms(worker, series, 0), x = plot_x(plot, worker->rank);
		bool flagged = chart_flagged(report, worker->rank);
		_cleanup_(str_done) struct str tip = { 0 };

		if (!isfinite(ms))
			continue;
		worker_tip(&tip, worker, flagged);
		str_append(&tip, ": ");
		phrase_ms(&tip, ms);
		if (flagged)
			svg_diamond(plot->out, "dot bad", x, plot_y(plot, ms), 6.5,
				    tips ? markup_borrow(plot->out, &tip) : NULL);
		else
			svg_circle(plot->out, "dot peer", x, plot_y(plot, ms), tips ? 4.5 : 2.0,
				   tips ? markup_borrow(plot->out, &tip) : NULL);
	}
}

static void draw_iterations(const struct report *report, struct plot *plot,
			    const struct series *series)
{
	if (series->bin_cnt == 1) {
		plot->x = scale_whole(report->workers[0].rank,
				      report->workers[report->worker_cnt - 1].rank, 10);
		plot_axes(plot, "rank", "ms per iteration");
		dots_over_ranks(report, plot, series);
		return;
	}
	plot->x = scale_whole(1.0, (double)(series->bin_cnt * series->per_bin), 10);
	plot_axes(plot, "iteration", "ms per iteration");
	if (report->worker_cnt <= CHART_LINES_MAX)
		one_by_one(report, plot, series);
	else
		band_of_many(report, plot, series);
}

/* Of a very large job only some workers are looked at in whole. */
static void note_sample(struct str *note, const struct report *report)
{
	if (report->worker_cnt < (size_t)MAX(report->workers_analyzed, 0))
		str_printf(note, "%zu of %d workers, by rank: the flagged ones and a sample. ",
			   report->worker_cnt, report->workers_analyzed);
}

static void iterations_note(struct str *note, const struct report *report,
			    const struct series *series)
{
	note_sample(note, report);
	if (series->bin_cnt == 1) {
		str_append(note,
			   "The window holds one iteration. \xe2\x97\x86 marks flagged ranks.");
		return;
	}
	if (report->worker_cnt > CHART_LINES_MAX)
		str_printf(note,
			   "%zu workers: the band holds 9 of 10 peers, the line in it is their "
			   "median; of the flagged the first %d are drawn. ",
			   report->worker_cnt, FLAGGED_LINES);
	if (series->per_bin > 1)
		str_printf(note, "Each point is the mean of %zu iterations. ", series->per_bin);
	if (report->worker_cnt <= CHART_LINES_MAX && report->worker_cnt > 1)
		str_append(note,
			   "Collectives make all workers wait for the slowest: lines that lie "
			   "on each other are normal. ");
}

void chart_iterations(const struct report *report, struct str *out)
{
	struct series series = series_make(report);
	struct plot plot = {
		.out = out, .left = 60, .top = 34, .width = WIDTH - 80, .height = 190
	};
	_cleanup_(str_done) struct str note = { 0 };

	/* One dot in empty axes is no picture. */
	if (series.bin_cnt == 0 || series.max_ms <= 0.0 || series.bin_cnt * report->worker_cnt < 2)
		return;
	plot.y = scale_make(0.0, series.max_ms, 4, true);
	figure_open(out, "Iteration times per rank");
	svg_open(out, WIDTH, 264, "iterations", "Iteration times per rank over the window",
		 "One mark or line per worker; those of flagged workers are red.");
	draw_iterations(report, &plot, &series);
	svg_close(out);
	iterations_note(&note, report, &series);
	figure_close(out, markup_borrow(out, &note));
}

void figure_legend(struct str *out)
{
	str_append(out, "<ul class=\"legend\">");
	for (size_t i = 0; i < CLASS_CNT; i++) {
		const char *name = event_class_name(class_order[i]);

		str_printf(out, "<li><i class=\"%s\"></i>%s</li>", name, name);
	}
	str_append(out, "</ul>\n");
}

/* Means over the workers [first, first + cnt), each class a stretch of the unit length. */
static void mean_shares(const struct report *report, size_t first, size_t cnt,
			double ret[static CLASS_CNT])
{
	double sum = 0.0;

	for (size_t i = 0; i < CLASS_CNT; i++) {
		ret[i] = 0.0;
		for (size_t w = first; w < first + cnt; w++) {
			double share = report->workers[w].class_frac[class_order[i]];

			ret[i] += isfinite(share) && share > 0.0 ? share / (double)cnt : 0.0;
		}
		sum += ret[i];
	}
	for (size_t i = 0; i < CLASS_CNT && sum > 1.0; i++)
		ret[i] /= sum; /* rounding of the sender must not draw past the end */
}

static void stack_bar(struct str *out, struct svg_box box, bool upright,
		      const double shares[static CLASS_CNT], const char *who)
{
	double at = 0.0;

	for (size_t i = 0; i < CLASS_CNT; i++) {
		_cleanup_(str_done) struct str tip = { 0 };
		struct svg_box part = box;

		if (shares[i] < 0.0005)
			continue;
		if (upright) {
			part.height = box.height * shares[i];
			part.y = box.y + box.height - at - part.height;
			at += part.height;
		} else {
			part.width = box.width * shares[i];
			part.x = box.x + at;
			at += part.width;
		}
		str_printf(&tip, "%s: %s ", who, event_class_name(class_order[i]));
		phrase_pct(&tip, shares[i] * 100.0);
		svg_rect(out, event_class_name(class_order[i]), part, markup_borrow(out, &tip));
	}
}

static void share_rows(const struct report *report, struct str *out)
{
	double row = report->worker_cnt > 16 ? 18 : 26;

	svg_open(out, WIDTH, row * (double)report->worker_cnt + 26, "shares",
		 "Shares of the window per worker", "One bar per worker, one color per class.");
	for (size_t i = 0; i < report->worker_cnt; i++) {
		const struct report_worker *worker = &report->workers[i];
		struct svg_box box = { 90, row * (double)i + 4, WIDTH - 110, row - 6 };
		bool flagged = chart_flagged(report, worker->rank);
		_cleanup_(str_done) struct str who = { 0 };
		double shares[CLASS_CNT];

		mean_shares(report, i, 1, shares);
		str_printf(&who, "%srank %d", flagged ? "\xe2\x97\x86 " : "", worker->rank);
		svg_text(out, flagged ? "rank bad" : "rank", 80, box.y + box.height / 2 + 4,
			 SVG_END, markup_borrow(out, &who));
		stack_bar(out, box, false, shares, markup_borrow(out, &who));
	}
	for (int pct = 0; pct <= 100; pct += 25) {
		_cleanup_(str_done) struct str label = { 0 };

		str_printf(&label, "%d %%", pct);
		svg_text(out, "tick", 90 + (WIDTH - 110) * pct / 100.0,
			 row * (double)report->worker_cnt + 18, SVG_MIDDLE,
			 markup_borrow(out, &label));
	}
	svg_close(out);
}

static bool any_flagged(const struct report *report, size_t first, size_t cnt)
{
	for (size_t i = first; i < first + cnt; i++) {
		if (chart_flagged(report, report->workers[i].rank))
			return true;
	}
	return false;
}

/* Workers side by side, per_column of them in a column; returns per_column. */
static size_t share_columns(const struct report *report, struct str *out)
{
	size_t per_column = (report->worker_cnt + COLUMNS_MAX - 1) / COLUMNS_MAX;
	size_t column_cnt = (report->worker_cnt + per_column - 1) / per_column;
	double width = (WIDTH - 80) / (double)column_cnt, filled = MAX(width - 1.0, width * 0.8);
	struct plot plot = {
		.out = out, .left = 60, .top = 44, .width = WIDTH - 80, .height = 180
	};

	plot.y = (struct scale){ 0.0, 100.0, 0.0, 25.0 };
	plot.x = scale_make(0.0, (double)report->worker_cnt, 10, false);
	plot.x.max = (double)report->worker_cnt;
	svg_open(out, WIDTH, 264, "shares", "Shares of the window per worker",
		 "Columns of workers by rank, one color per class.");
	plot_axes(&plot, "worker, by rank", "% of the window");
	for (size_t i = 0; i < column_cnt; i++) {
		size_t first = i * per_column, cnt = MIN(per_column, report->worker_cnt - first);
		struct svg_box box = { 60 + width * (double)i, 44, filled, 180 };
		_cleanup_(str_done) struct str who = { 0 };
		double shares[CLASS_CNT];

		mean_shares(report, first, cnt, shares);
		str_printf(&who, "rank %d", report->workers[first].rank);
		if (cnt > 1)
			str_printf(&who, " to %d", report->workers[first + cnt - 1].rank);
		stack_bar(out, box, true, shares, markup_borrow(out, &who));
		if (any_flagged(report, first, cnt))
			svg_diamond(out, "dot bad", box.x + width / 2, 36, 4, NULL);
	}
	svg_close(out);
	return per_column;
}

void chart_shares(const struct report *report, struct str *out)
{
	_cleanup_(str_done) struct str note = { 0 };
	size_t per_column = 1;

	if (report->worker_cnt == 0)
		return;
	figure_open(out, "Where the time of each worker goes");
	figure_legend(out);
	if (report->worker_cnt <= ROWS_MAX)
		share_rows(report, out);
	else
		per_column = share_columns(report, out);
	note_sample(&note, report);
	if (per_column > 1)
		str_printf(&note, "Each column is the mean of %zu workers. ", per_column);
	str_append(&note,
		   "Share of the window on the critical path. \xe2\x97\x86 marks flagged ranks.");
	figure_close(out, markup_borrow(out, &note));
}
