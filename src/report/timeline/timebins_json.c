/* SPDX-License-Identifier: Apache-2.0 */
#include "report/jsonwriter.h"
#include "report/timeline/timebins_parts.h"

#include <errno.h>
#include <limits.h>
#include <math.h>

#define TOTALS_SHOWN 5u
#define LEVELS 4	    /* how full a column is */
#define ROWS_LOOKED_AT 256u /* of a rank */
#define OF_A_KIND 2u

/* Names get numbers as they are printed. */
struct printing {
	const struct timebins *bins;
	struct json_writer w;
	json_t *names;
	struct idmap number_of;
};

static json_t *name_number(struct printing *p, uint32_t name)
{
	uint32_t number = idmap_get(&p->number_of, name);

	if (number == IDMAP_NONE) {
		number = (uint32_t)p->number_of.cnt;
		if (idmap_set(&p->number_of, name, number) < 0)
			p->w.error = -ENOMEM;
		jsonwriter_push(&p->w, p->names,
				jsonwriter_text(strtab_text(&p->bins->names, name)));
	}
	return json_integer(number);
}

static json_t *ms_of(int64_t ns)
{
	return jsonwriter_number(round((double)ns / 1e3) / 1e3);
}

/* --- a row --- */

/* Consecutive columns that look alike. */
struct span {
	unsigned column, cnt;
	int level; /* 0: empty */
	struct bin_entry what;
};

static struct span look_at(const struct timebins *bins, const struct bin_row *row, unsigned column)
{
	const struct bin_entry *entries = &row->entries[(size_t)column * TIMEBINS_ENTRIES];
	int64_t width = timebins_column_ns(bins, column + 1) - timebins_column_ns(bins, column);
	struct span ret = { .column = column, .cnt = 1 };
	int64_t sum = 0;

	for (size_t i = 0; i < TIMEBINS_ENTRIES; i++) {
		sum += entries[i].ns;
		/* What a finding names is shown even where it is short. */
		if (entries[i].ns > 0 &&
		    (entries[i].flagged > ret.what.flagged ||
		     (entries[i].flagged == ret.what.flagged && entries[i].ns > ret.what.ns)))
			ret.what = entries[i];
	}
	if (sum > 0 && width > 0)
		ret.level =
			(int)MIN((__int128)LEVELS, ((__int128)sum * LEVELS + width - 1) / width);
	return ret;
}

static bool looks_alike(const struct span *a, const struct span *b)
{
	return a->level == b->level && a->what.name == b->what.name &&
	       a->what.category == b->what.category && a->what.flagged == b->what.flagged;
}

static void push_span(struct printing *p, json_t *list, const struct span *span)
{
	json_t *one = json_array();

	if (span->level == 0) {
		json_decref(one);
		return;
	}
	jsonwriter_push(&p->w, one, json_integer(span->column));
	jsonwriter_push(&p->w, one, json_integer(span->cnt));
	jsonwriter_push(&p->w, one, name_number(p, span->what.name));
	jsonwriter_push(&p->w, one, name_number(p, span->what.category));
	jsonwriter_push(&p->w, one, json_integer(span->level));
	jsonwriter_push(&p->w, one, json_boolean(span->what.flagged));
	jsonwriter_push(&p->w, list, one);
}

static json_t *spans_of(struct printing *p, const struct bin_row *row)
{
	json_t *list = json_array();
	struct span last = look_at(p->bins, row, 0);

	for (unsigned column = 1; column < p->bins->options.columns; column++) {
		struct span next = look_at(p->bins, row, column);

		if (looks_alike(&last, &next)) {
			last.cnt++;
			continue;
		}
		push_span(p, list, &last);
		last = next;
	}
	push_span(p, list, &last);
	return list;
}

static int longest_first(const void *a, const void *b)
{
	const struct bin_total *x = a, *y = b;

	if (x->flagged != y->flagged)
		return x->flagged ? -1 : 1;
	if (x->self_ns != y->self_ns)
		return x->self_ns > y->self_ns ? -1 : 1;
	return (x->name > y->name) - (x->name < y->name);
}

static json_t *totals_of(struct printing *p, const struct bin_row *row)
{
	json_t *list = json_array();
	size_t cnt = row->totals.cnt;

	if (cnt > 0)
		qsort(row->totals.data, cnt, sizeof(*row->totals.data), longest_first);
	for (size_t i = 0; i < MIN(cnt, (size_t)TOTALS_SHOWN); i++) {
		const struct bin_total *total = &row->totals.data[i];
		json_t *one = json_object();

		jsonwriter_put(&p->w, one, "name", name_number(p, total->name));
		jsonwriter_put(&p->w, one, "ms", ms_of(total->self_ns));
		jsonwriter_put(&p->w, one, "count", json_integer((json_int_t)total->cnt));
		jsonwriter_put(&p->w, one, "longest_ms", ms_of(total->longest_ns));
		jsonwriter_put(&p->w, one, "flagged", json_boolean(total->flagged));
		jsonwriter_push(&p->w, list, one);
	}
	return list;
}

static json_t *row_object(struct printing *p, const struct bin_row *row)
{
	json_t *ret = json_object();

	jsonwriter_put_text(&p->w, ret, "name", row->name);
	jsonwriter_put(&p->w, ret, "spans", spans_of(p, row));
	jsonwriter_put(&p->w, ret, "totals", totals_of(p, row));
	return ret;
}

/* --- a rank --- */

static int by_order(const void *a, const void *b)
{
	const struct bin_row *x = *(struct bin_row *const *)a, *y = *(struct bin_row *const *)b;

	if (x->idx != y->idx)
		return x->idx < y->idx ? -1 : 1;
	if (x->order != y->order)
		return x->order < y->order ? -1 : 1;
	if (x->busy_ns != y->busy_ns)
		return x->busy_ns > y->busy_ns ? -1 : 1;
	return (x->row > y->row) - (x->row < y->row);
}

/*
 * The rows that are shown of rows[cnt], which are by kind and busy time: two of each kind, so that many streams of a
 * GPU do not hide the threads, and then more as there is room. Returns how many, in the order of rows.
 */
static size_t choose_rows(struct bin_row *const *rows, size_t cnt,
			  const struct bin_row *ret[static TIMEBINS_ROWS_MAX])
{
	bool chosen[ROWS_LOOKED_AT] = { false };
	size_t left = TIMEBINS_ROWS_MAX, shown = 0;

	cnt = MIN(cnt, (size_t)ROWS_LOOKED_AT);
	for (size_t i = 0; i < cnt && left > 0; i++) {
		chosen[i] = i < OF_A_KIND || rows[i - OF_A_KIND]->order != rows[i]->order;
		left -= chosen[i];
	}
	for (size_t i = 0; i < cnt && left > 0; i++) {
		left -= !chosen[i];
		chosen[i] = true;
	}
	for (size_t i = 0; i < cnt; i++) {
		if (chosen[i])
			ret[shown++] = rows[i];
	}
	return shown;
}

/* rows[cnt] are those of the rank that are not empty. */
static json_t *rank_object(struct printing *p, const struct timeline_rank *result,
			   struct bin_row *const *rows, size_t cnt)
{
	const struct timebins_rank *rank = &p->bins->options.ranks[rows[0]->idx];
	const struct bin_row *chosen[TIMEBINS_ROWS_MAX];
	size_t shown = choose_rows(rows, cnt, chosen);
	json_t *ret = json_object(), *list = json_array();

	jsonwriter_put(&p->w, ret, "rank", json_integer(rank->rank));
	jsonwriter_put_text(&p->w, ret, "host", rank->host);
	jsonwriter_put(&p->w, ret, "flagged", json_boolean(rank->flagged));
	jsonwriter_put_text(&p->w, ret, "clock", align_source_name(result->clock.source));
	jsonwriter_put(&p->w, ret, "clock_spread_ms", ms_of(result->clock.spread_ns));
	jsonwriter_put(&p->w, ret, "ends_before_all_ms", ms_of(result->last_ns));
	for (size_t i = 0; i < shown; i++)
		jsonwriter_push(&p->w, list, row_object(p, chosen[i]));
	jsonwriter_put(&p->w, ret, "rows", list);
	jsonwriter_put(&p->w, ret, "rows_left_out", json_integer((json_int_t)(cnt - shown)));
	return ret;
}

static size_t put_ranks(struct printing *p, const struct timeline_rank *results, json_t *list)
{
	struct bin_row **rows = p->bins->rows.data;
	size_t cnt = p->bins->rows.cnt, ret = 0;

	if (cnt > 0)
		qsort(rows, cnt, sizeof(struct bin_row *), by_order);
	for (size_t i = 0, end; i < cnt; i = end) {
		size_t used = 0;

		for (end = i; end < cnt && rows[end]->idx == rows[i]->idx; end++)
			used += rows[end]->order != UINT_MAX;
		if (used == 0)
			continue;
		jsonwriter_push(&p->w, list,
				rank_object(p, &results[rows[i]->idx], &rows[i], used));
		ret++;
	}
	return ret;
}

/* --- all --- */

static json_t *window_object(struct printing *p)
{
	const struct timebins *bins = p->bins;
	json_t *ret = json_object();

	jsonwriter_put(&p->w, ret, "from_ms",
		       ms_of(bins->options.window_wall_ns[0] - bins->zero_wall_ns));
	jsonwriter_put(&p->w, ret, "to_ms",
		       ms_of(bins->options.window_wall_ns[1] - bins->zero_wall_ns));
	return ret;
}

int timebins_print(const struct timebins *bins, const struct timeline_rank *results,
		   struct str *out)
{
	struct printing p = { .bins = bins, .names = json_array() };
	json_t *root = json_object(), *ranks = json_array();
	size_t cnt = put_ranks(&p, results, ranks), hidden = 0, silent = 0;
	int ret;

	for (size_t i = 0; i < bins->options.rank_cnt; i++)
		hidden += !bins->options.ranks[i].shown;
	silent = bins->options.rank_cnt - hidden - cnt;
	jsonwriter_put_text(&p.w, root, "schema", "perftracker.timebins.v1");
	jsonwriter_put(&p.w, root, "begin_unix_ms",
		       json_integer((json_int_t)(bins->zero_wall_ns / NSEC_PER_MSEC)));
	jsonwriter_put(&p.w, root, "length_ms", ms_of(bins->length_ns));
	jsonwriter_put(&p.w, root, "from_ms", ms_of(bins->from_ns));
	jsonwriter_put(&p.w, root, "to_ms", ms_of(bins->to_ns));
	jsonwriter_put(&p.w, root, "window", bins->has_window ? window_object(&p) : json_null());
	jsonwriter_put(&p.w, root, "columns", json_integer(bins->options.columns));
	jsonwriter_put(&p.w, root, "ranks", ranks);
	jsonwriter_put(&p.w, root, "ranks_hidden", json_integer((json_int_t)hidden));
	jsonwriter_put(&p.w, root, "ranks_silent", json_integer((json_int_t)silent));
	jsonwriter_put(&p.w, root, "rows_left_out",
		       json_integer((json_int_t)bins->row_left_out_cnt));
	jsonwriter_put(&p.w, root, "names_left_out",
		       json_integer((json_int_t)bins->name_left_out_cnt));
	jsonwriter_put(&p.w, root, "names", p.names);
	ret = jsonwriter_print(&p.w, root, out);
	idmap_done(&p.number_of);
	return ret;
}
