/* SPDX-License-Identifier: Apache-2.0 */
/* Who was late in which iteration: ranks by iterations. */
#include "base/vec.h"
#include "report/html/chart.h"
#include "report/html/markup.h"
#include "report/phrase.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#define WIDTH 1040.0
#define LEFT 150.0
#define TOP 34.0
#define ROWS_ALL 40u	/* workers with a row each */
#define FLAGGED_MAX 16u /* of more workers */
#define LATEST_MAX 8u
#define BANDS 16u
#define COLUMNS_MAX 60u

static const double level_pct[] = { 0.5, 1, 2, 4, 7, 11, 17, 26, 40, 60 };

int chart_heat_level(double ms, double iteration_ms)
{
	int level = -1;

	if (!isfinite(ms) || !(iteration_ms > 0.0))
		return -1;
	for (size_t i = 0; i < ARRAY_SIZE(level_pct); i++)
		level += 100.0 * ms >= level_pct[i] * iteration_ms;
	return level;
}

void figure_heat_legend(struct str *out, const char *what)
{
	str_printf(out, "<ul class=\"legend\"><li>%s, of an iteration:</li>", what);
	for (size_t i = 0; i < ARRAY_SIZE(level_pct); i += 3)
		str_printf(out, "<li><i class=\"h%zu\"></i>%g %%</li>", i, level_pct[i]);
	str_append(out, "</ul>\n");
}

/* A worker, or cnt neighbors of which the latest is shown. */
struct row {
	size_t first, cnt;
	bool flagged;
	double late_ms; /* sum over the window */
};

typedef VEC(struct row) row_vec;

struct heat {
	const struct report *report;
	struct str *out;
	row_vec rows;
	size_t iteration_cnt, per_column, column_cnt;
	int64_t first_step; /* of the first column; -1: columns are counted from 1 */
	double cell_width, cell_height;
};

/* Later workers first, then by rank. */
static int by_lateness(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->flagged != y->flagged)
		return x->flagged ? -1 : 1;
	if (x->late_ms != y->late_ms)
		return x->late_ms < y->late_ms ? 1 : -1;
	return (x->first > y->first) - (x->first < y->first);
}

static double sum_late(const struct report_worker *worker)
{
	double sum = 0.0;

	for (size_t i = 0; worker->late_ms != NULL && i < worker->iteration_cnt; i++)
		sum += isfinite(worker->late_ms[i]) ? worker->late_ms[i] : 0.0;
	return sum;
}

/* A rank that was recorded from a later step on has no cells in the columns before. */
static size_t missed_at_start(const struct heat *h, const struct report_worker *worker)
{
	return h->first_step >= 0 && worker->first_step > h->first_step
		       ? (size_t)(worker->first_step - h->first_step)
		       : 0;
}

/* Columns are steps where all workers know theirs, and are not further apart than they are many. */
static void find_steps(struct heat *h)
{
	int64_t first = INT64_MAX, last = -1;
	bool known = h->report->worker_cnt > 0;

	for (size_t i = 0; i < h->report->worker_cnt; i++) {
		const struct report_worker *worker = &h->report->workers[i];

		h->iteration_cnt = MAX(h->iteration_cnt, worker->iteration_cnt);
		known = known && worker->first_step >= 0;
		first = MIN(first, worker->first_step);
		last = MAX(last, worker->first_step);
	}
	h->first_step = -1;
	if (!known || last - first >= (int64_t)h->iteration_cnt)
		return;
	h->first_step = first;
	for (size_t i = 0; i < h->report->worker_cnt; i++) {
		const struct report_worker *worker = &h->report->workers[i];

		h->iteration_cnt =
			MAX(h->iteration_cnt, worker->iteration_cnt + missed_at_start(h, worker));
	}
}

static int add_workers(struct heat *h)
{
	for (size_t i = 0; i < h->report->worker_cnt; i++) {
		const struct report_worker *worker = &h->report->workers[i];
		int error = vec_push(&h->rows,
				     (struct row){ i, 1, chart_flagged(h->report, worker->rank),
						   sum_late(worker) });

		if (error < 0)
			return error;
	}
	return 0;
}

/* Of many: the flagged, the latest of the others, and bands of neighbors. */
static int choose_rows(struct heat *h)
{
	size_t cnt = h->rows.cnt, flagged = 0, kept = 0, band = (cnt + BANDS - 1) / BANDS;

	if (cnt <= ROWS_ALL)
		return 0;
	qsort(h->rows.data, cnt, sizeof(*h->rows.data), by_lateness);
	while (flagged < cnt && h->rows.data[flagged].flagged)
		flagged++;
	kept = MIN(flagged, (size_t)FLAGGED_MAX);
	for (size_t i = flagged; i < MIN(flagged + LATEST_MAX, cnt) && h->rows.data[i].late_ms > 0;
	     i++)
		h->rows.data[kept++] = h->rows.data[i];
	h->rows.cnt = kept;
	for (size_t first = 0; first < cnt; first += band) {
		int error = vec_push(&h->rows,
				     (struct row){ first, MIN(band, cnt - first), false, 0.0 });

		if (error < 0)
			return error;
	}
	return 0;
}

/* The latest of the row's workers in the iterations of a column. */
static double cell_ms(const struct heat *h, const struct row *row, size_t column)
{
	double most = 0.0;

	for (size_t w = row->first; w < row->first + row->cnt; w++) {
		const struct report_worker *worker = &h->report->workers[w];
		size_t missed = missed_at_start(h, worker);
		size_t first = column * h->per_column, end = first + h->per_column;

		for (size_t i = MAX(first, missed); i < end && i - missed < worker->iteration_cnt;
		     i++) {
			if (worker->late_ms != NULL && isfinite(worker->late_ms[i - missed]))
				most = MAX(most, worker->late_ms[i - missed]);
		}
	}
	return most;
}

static void row_label(const struct heat *h, size_t i, double y)
{
	const struct row *row = &h->rows.data[i];
	const struct report_worker *workers = h->report->workers;
	_cleanup_(str_done) struct str label = { 0 };

	if (row->cnt > 1)
		str_printf(&label, "ranks %d-%d", workers[row->first].rank,
			   workers[row->first + row->cnt - 1].rank);
	else
		str_printf(&label, "%srank %d", row->flagged ? "\xe2\x97\x86 " : "",
			   workers[row->first].rank);
	svg_text(h->out, row->flagged ? "rank bad" : "rank", LEFT - 8, y + h->cell_height / 2 + 4,
		 SVG_END, markup_borrow(h->out, &label));
}

static const char *column_word(const struct heat *h)
{
	return h->first_step >= 0 ? "step" : "iteration";
}

static int64_t column_number(const struct heat *h, size_t column)
{
	return (int64_t)(column * h->per_column) + (h->first_step >= 0 ? h->first_step : 1);
}

static void draw_cell(const struct heat *h, const struct row *row, size_t column, double y)
{
	double ms = cell_ms(h, row, column);
	int level = chart_heat_level(ms, h->report->iteration_ms);
	struct svg_box box = { LEFT + 1 + h->cell_width * (double)column, y + 1, h->cell_width - 2,
			       h->cell_height - 2 };
	_cleanup_(str_done) struct str tip = { 0 }, value = { 0 };
	char class[24];

	if (level < 0)
		return;
	phrase_ms(&value, ms);
	str_printf(&tip, "%s %" PRId64 ": others waited %s", column_word(h),
		   column_number(h, column), markup_borrow(h->out, &value));
	(void)snprintf(class, sizeof(class), "heat h%d", level);
	svg_rect(h->out, class, box, markup_borrow(h->out, &tip));
	if (h->cell_width >= 64 && h->cell_height >= 16)
		svg_text(h->out, level > 4 ? "cell on" : "cell", box.x + box.width / 2,
			 box.y + box.height / 2 + 4, SVG_MIDDLE, markup_borrow(h->out, &value));
}

/* The row of one rank has its name: evidence links to it. */
static void draw_row(const struct heat *h, size_t i, double y)
{
	const struct row *row = &h->rows.data[i];

	if (row->cnt == 1 && h->report->worker_cnt <= ROWS_ALL)
		str_printf(h->out, "<g id=\"late-%d\">", h->report->workers[row->first].rank);
	else
		str_append(h->out, "<g>");
	row_label(h, i, y);
	for (size_t c = 0; c < h->column_cnt; c++)
		draw_cell(h, row, c, y);
	str_append(h->out, "</g>\n");
}

static void draw_axis(const struct heat *h)
{
	size_t every = (size_t)ceil(40.0 / h->cell_width);

	svg_text(h->out, "name", LEFT - 8, TOP - 12, SVG_END, column_word(h));
	for (size_t c = 0; c < h->column_cnt; c += every) {
		char label[24];

		(void)snprintf(label, sizeof(label), "%" PRId64, column_number(h, c));
		svg_text(h->out, "tick", LEFT + h->cell_width * ((double)c + 0.5), TOP - 12,
			 SVG_MIDDLE, label);
	}
}

static void draw(struct heat *h)
{
	struct svg_box frame = { .x = LEFT, .y = TOP };

	h->per_column = (h->iteration_cnt + COLUMNS_MAX - 1) / COLUMNS_MAX;
	h->column_cnt = (h->iteration_cnt + h->per_column - 1) / h->per_column;
	h->cell_width = MIN((WIDTH - LEFT - 10) / (double)h->column_cnt, 110.0);
	h->cell_height = h->rows.cnt > 16 ? 18 : 26;
	frame.width = h->cell_width * (double)h->column_cnt;
	frame.height = h->cell_height * (double)h->rows.cnt;
	svg_open(
		h->out, WIDTH, TOP + frame.height + 8, "lateness", "Who was late, and when",
		"Rows are ranks, columns are iterations; the stronger the color, the longer others "
		"waited.");
	svg_rect(h->out, "frame", frame, NULL);
	draw_axis(h);
	for (size_t i = 0; i < h->rows.cnt; i++) {
		double y = TOP + h->cell_height * (double)i;

		draw_row(h, i, y);
	}
	svg_close(h->out);
}

static void append_note(struct str *note, const struct heat *h)
{
	str_append(note,
		   "Time that others waited for the rank, the last one to enter a collective. "
		   "A full row is a lasting fault of that rank, single cells are pauses. ");
	if (h->per_column > 1)
		str_printf(note, "A column is %zu iterations, of which the latest is shown. ",
			   h->per_column);
	if (h->report->worker_cnt > ROWS_ALL)
		str_append(note,
			   "Flagged ranks and the latest of the others have rows; the rows of "
			   "many ranks show the latest of them. ");
}

/* Whether any rank was late at all: a matrix of empty cells shows nothing. */
static bool is_any_late(const struct report *report)
{
	for (size_t w = 0; w < report->worker_cnt; w++) {
		const struct report_worker *worker = &report->workers[w];

		for (size_t i = 0; worker->late_ms != NULL && i < worker->iteration_cnt; i++) {
			if (chart_heat_level(worker->late_ms[i], report->iteration_ms) >= 0)
				return true;
		}
	}
	return false;
}

bool chart_has_late_row(const struct report *report, int rank)
{
	if (report->worker_cnt < 2 || report->worker_cnt > ROWS_ALL || !is_any_late(report))
		return false;
	for (size_t i = 0; i < report->worker_cnt; i++) {
		if (report->workers[i].rank == rank)
			return true;
	}
	return false;
}

void chart_heat(const struct report *report, struct str *out)
{
	struct heat h = { .report = report, .out = out };
	_cleanup_(str_done) struct str note = { 0 };

	if (report->worker_cnt < 2 || !is_any_late(report))
		return;
	find_steps(&h);
	if (add_workers(&h) < 0 || choose_rows(&h) < 0) {
		out->error = -ENOMEM;
	} else {
		figure_open(out, "Who was late in which iteration");
		figure_heat_legend(out, "others waited");
		draw(&h);
		append_note(&note, &h);
		figure_close(out, markup_borrow(out, &note));
	}
	vec_done(&h.rows);
}
