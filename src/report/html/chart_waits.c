/* SPDX-License-Identifier: Apache-2.0 */
/* Who waited for whom: a matrix of late ranks (rows) and those who waited (columns). */
#include "base/vec.h"
#include "report/html/chart.h"
#include "report/html/markup.h"
#include "report/phrase.h"

#include <math.h>
#include <stdio.h>

#define WIDTH 1040.0
#define LEFT 100.0
#define TOP 46.0
#define ALL_MAX 64 /* ranks that wait or are waited for, up to which all are shown */
#define ROWS_MAX 16
#define CELLS_MAX 48

struct total {
	int rank;
	bool flagged;
	double ms;
};

typedef VEC(struct total) total_vec;

static int by_rank(const void *a, const void *b)
{
	const struct total *x = a, *y = b;

	return (x->rank > y->rank) - (x->rank < y->rank);
}

/* Largest first, then by rank, so that the order is deterministic. */
static int by_ms(const void *a, const void *b)
{
	const struct total *x = a, *y = b;

	if (x->ms != y->ms)
		return x->ms < y->ms ? 1 : -1;
	return by_rank(a, b);
}

static void sort_totals(total_vec *totals, int (*compare)(const void *, const void *))
{
	if (totals->cnt > 1)
		qsort(totals->data, totals->cnt, sizeof(*totals->data), compare);
}

/* Adds up the entries of one rank. Leaves them by rank. */
static void merge_totals(total_vec *totals)
{
	size_t kept = 0;

	sort_totals(totals, by_rank);
	for (size_t i = 0; i < totals->cnt; i++) {
		if (kept > 0 && totals->data[kept - 1].rank == totals->data[i].rank)
			totals->data[kept - 1].ms += totals->data[i].ms;
		else
			totals->data[kept++] = totals->data[i];
	}
	totals->cnt = kept;
}

static int add_total(total_vec *totals, int rank, double ms)
{
	return vec_push(totals, (struct total){ rank, isfinite(ms) && ms > 0.0 ? ms : 0.0 });
}

static const struct total *find_total(const total_vec *totals, int rank)
{
	struct total key = { .rank = rank };

	return totals->cnt == 0 ? NULL
				: bsearch(&key, totals->data, totals->cnt, sizeof(key), by_rank);
}

/* Flagged ranks first, then those that made others wait longest. */
static int by_blame(const void *a, const void *b)
{
	const struct total *x = a, *y = b;

	if (x->flagged != y->flagged)
		return x->flagged ? -1 : 1;
	return by_ms(a, b);
}

/* Keeps the max largest entries, sorted by rank. Returns the number of removed entries. */
static size_t keep_largest(total_vec *totals, size_t max)
{
	size_t gone = totals->cnt > max ? totals->cnt - max : 0;

	sort_totals(totals, by_ms);
	totals->cnt -= gone;
	sort_totals(totals, by_rank);
	return gone;
}

/* Rows are few and in the order of blame. */
static const struct total *find_row(const total_vec *rows, int rank)
{
	vec_foreach(row, rows) {
		if (row->rank == rank)
			return row;
	}
	return NULL;
}

/* Keeps the first max rows in the order of blame. Returns the number of removed ones. */
static size_t keep_rows(const struct report *report, total_vec *rows, size_t max)
{
	size_t gone = rows->cnt > max ? rows->cnt - max : 0;

	vec_foreach(row, rows)
		row->flagged = chart_flagged(report, row->rank);
	sort_totals(rows, by_blame);
	rows->cnt -= gone;
	return gone;
}

static double per_iteration_ms(const struct report *report, const struct report_wait *wait)
{
	return wait->wait_ms / (report->iterations >= 1.0 ? report->iterations : 1.0);
}

/* The late ranks: by the wait they caused. One that is too short to be seen makes no row. */
static int collect_rows(const struct report *report, total_vec *rows)
{
	for (size_t i = 0; i < report->wait_cnt; i++) {
		const struct report_wait *wait = &report->waits[i];
		double ms = per_iteration_ms(report, wait);
		int error = chart_heat_level(ms, report->iteration_ms) < 0
				    ? 0
				    : add_total(rows, wait->from, wait->wait_ms);

		if (error < 0)
			return error;
	}
	merge_totals(rows);
	return 0;
}

/* Ranks that waited for the shown rows; all ranks when there are few. */
static int collect_columns(const struct report *report, const total_vec *rows, total_vec *columns)
{
	for (size_t i = 0; i < report->wait_cnt; i++) {
		const struct report_wait *wait = &report->waits[i];
		int error = find_row(rows, wait->from) == NULL
				    ? 0
				    : add_total(columns, wait->to, wait->wait_ms);

		if (error < 0)
			return error;
	}
	for (size_t i = 0; report->worker_cnt <= ALL_MAX && i < report->worker_cnt; i++) {
		int error = add_total(columns, report->workers[i].rank, 0.0);

		if (error < 0)
			return error;
	}
	merge_totals(columns);
	return 0;
}

struct matrix {
	const struct report *report;
	struct str *out;
	total_vec rows, columns;
	double cell_width, cell_height;
};

static void row_labels(const struct matrix *m)
{
	for (size_t i = 0; i < m->rows.cnt; i++) {
		bool flagged = chart_flagged(m->report, m->rows.data[i].rank);
		_cleanup_(str_done) struct str label = { 0 };

		str_printf(&label, "%srank %d", flagged ? "\xe2\x97\x86 " : "",
			   m->rows.data[i].rank);
		svg_text(m->out, flagged ? "rank bad" : "rank", LEFT - 8,
			 TOP + m->cell_height * ((double)i + 0.5) + 4, SVG_END,
			 markup_borrow(m->out, &label));
	}
}

static void column_labels(const struct matrix *m)
{
	size_t every = (size_t)ceil(34.0 / m->cell_width);

	for (size_t i = 0; i < m->columns.cnt; i += every) {
		_cleanup_(str_done) struct str label = { 0 };

		str_printf(&label, "%d", m->columns.data[i].rank);
		svg_text(m->out, "tick", LEFT + m->cell_width * ((double)i + 0.5), TOP - 8,
			 SVG_MIDDLE, markup_borrow(m->out, &label));
	}
	svg_text(m->out, "name", LEFT - 8, TOP - 28, SVG_END, "late");
	svg_text(m->out, "name", LEFT, TOP - 28, SVG_START, "waiting rank");
}

static void draw_wait(const struct matrix *m, const struct report_wait *wait)
{
	const struct total *row = find_row(&m->rows, wait->from);
	const struct total *column = find_total(&m->columns, wait->to);
	_cleanup_(str_done) struct str tip = { 0 }, value = { 0 };
	struct svg_box box = { .width = m->cell_width - 2, .height = m->cell_height - 2 };
	char class[24];
	int heat;

	heat = chart_heat_level(per_iteration_ms(m->report, wait), m->report->iteration_ms);
	if (row == NULL || column == NULL || heat < 0)
		return;
	box.x = LEFT + 1 + m->cell_width * (double)(column - m->columns.data);
	box.y = TOP + 1 + m->cell_height * (double)(row - m->rows.data);
	phrase_ms(&value, per_iteration_ms(m->report, wait));
	str_printf(&tip, "rank %d waited %s per iteration for rank %d, in %llu collectives",
		   wait->to, markup_borrow(m->out, &value), wait->from,
		   (unsigned long long)wait->collective_cnt);
	(void)snprintf(class, sizeof(class), "heat h%d", heat);
	svg_rect(m->out, class, box, markup_borrow(m->out, &tip));
	if (m->cell_width >= 64)
		svg_text(m->out, heat > 4 ? "cell on" : "cell", box.x + box.width / 2,
			 box.y + box.height / 2 + 4, SVG_MIDDLE, markup_borrow(m->out, &value));
}

static void draw_matrix(struct matrix *m)
{
	struct svg_box frame = { LEFT, TOP, 0, 0 };

	m->cell_width = MIN((WIDTH - LEFT - 10) / (double)m->columns.cnt, 110.0);
	m->cell_height = 28;
	frame.width = m->cell_width * (double)m->columns.cnt;
	frame.height = m->cell_height * (double)m->rows.cnt;
	svg_open(m->out, WIDTH, TOP + frame.height + 10, "waits", "Who waited for whom",
		 "Rows are late ranks, columns the ranks that waited for them; the stronger the "
		 "color, the longer.");
	svg_rect(m->out, "frame", frame, NULL);
	row_labels(m);
	column_labels(m);
	for (size_t i = 0; i < m->report->wait_cnt; i++)
		draw_wait(m, &m->report->waits[i]);
	svg_close(m->out);
}

static void waits_note(struct str *note, const struct matrix *m, size_t rows_gone,
		       size_t columns_gone)
{
	str_append(note, "Wait in collectives for the last rank to enter, per iteration. ");
	if (rows_gone > 0 || columns_gone > 0)
		str_printf(
			note,
			"Too many to show all: the flagged ranks and those that made others wait "
			"longest, together %zu (%zu left out), and the %zu that waited longest for "
			"them (%zu left out).",
			m->rows.cnt, rows_gone, m->columns.cnt, columns_gone);
}

static int build(struct matrix *m, size_t *ret_rows_gone, size_t *ret_columns_gone)
{
	int error = collect_rows(m->report, &m->rows);

	if (error < 0)
		return error;
	*ret_rows_gone = keep_rows(m->report, &m->rows,
				   m->report->worker_cnt > ALL_MAX ? ROWS_MAX : ALL_MAX);
	error = collect_columns(m->report, &m->rows, &m->columns);
	if (error < 0)
		return error;
	*ret_columns_gone =
		keep_largest(&m->columns, m->columns.cnt > ALL_MAX ? CELLS_MAX : ALL_MAX);
	return 0;
}

/* A matrix of empty cells shows nothing. */
static bool is_any_shown(const struct matrix *m)
{
	for (size_t i = 0; i < m->report->wait_cnt; i++) {
		const struct report_wait *wait = &m->report->waits[i];

		if (chart_heat_level(per_iteration_ms(m->report, wait), m->report->iteration_ms) >=
			    0 &&
		    find_row(&m->rows, wait->from) != NULL &&
		    find_total(&m->columns, wait->to) != NULL)
			return true;
	}
	return false;
}

void chart_waits(const struct report *report, struct str *out)
{
	struct matrix m = { .report = report, .out = out };
	_cleanup_(str_done) struct str note = { 0 };
	size_t rows_gone = 0, columns_gone = 0;
	int error = build(&m, &rows_gone, &columns_gone);

	if (error < 0) {
		out->error = error;
	} else if (is_any_shown(&m)) {
		figure_open(out, "Who waited for whom");
		figure_heat_legend(out, "wait");
		draw_matrix(&m);
		waits_note(&note, &m, rows_gone, columns_gone);
		figure_close(out, markup_borrow(out, &note));
	}
	vec_done(&m.rows);
	vec_done(&m.columns);
}
