/* SPDX-License-Identifier: Apache-2.0 */
#include "report/timeline/timebins.h"

#include "report/timeline/timebins_parts.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define ROWS_KEPT_MAX 4096u
#define NAMES_MAX 50000u
#define TOTALS_MAX 2000u /* of a row */
#define FLAGGED_FRAC 4	 /* of the ranks that are shown: one in so many */

/* --- the part --- */

/* What is asked for, as far as the timeline has it. */
static bool choose_asked(struct timebins *bins)
{
	const struct timebins_options *o = &bins->options;

	if (o->to_ns <= o->from_ns || o->from_ns >= bins->length_ns || o->to_ns <= 0)
		return false;
	bins->from_ns = MAX(o->from_ns, INT64_C(0));
	bins->to_ns = MIN(o->to_ns, bins->length_ns);
	return true;
}

static bool choose_window(struct timebins *bins)
{
	const int64_t *wall_ns = bins->options.window_wall_ns;
	int64_t from_ns = wall_ns[0] - bins->zero_wall_ns, to_ns = wall_ns[1] - bins->zero_wall_ns;

	if (wall_ns[0] == 0 || wall_ns[1] <= wall_ns[0] || to_ns <= 0 || from_ns >= bins->length_ns)
		return false;
	bins->has_window = true;
	if (bins->to_ns > 0)
		return true;
	bins->from_ns = MAX(from_ns, INT64_C(0));
	bins->to_ns = MIN(to_ns, bins->length_ns);
	return true;
}

static int begin(void *arg, int64_t zero_wall_ns, int64_t length_ns)
{
	struct timebins *bins = arg;
	bool asked;

	bins->zero_wall_ns = zero_wall_ns;
	bins->length_ns = MAX(length_ns, INT64_C(1));
	asked = choose_asked(bins);
	if (!choose_window(bins) && !asked) {
		bins->from_ns = MAX(bins->length_ns - TIMEBINS_PRESET_NS, INT64_C(0));
		bins->to_ns = bins->length_ns;
	}
	return 0;
}

/* --- rows --- */

static uint64_t row_key(uint32_t idx, uint32_t row)
{
	return (uint64_t)idx << 32 | row;
}

static void free_row(struct bin_row *row)
{
	if (row == NULL)
		return;
	vec_done(&row->open);
	vec_done(&row->totals);
	idmap_done(&row->total_of);
	free(row->entries);
	free(row);
}

static int add_row(struct timebins *bins, struct bin_row *row)
{
	int ret = vec_push(&bins->rows, row);

	if (ret < 0)
		free_row(row);
	return ret < 0 ? ret
		       : idmap_set(&bins->row_of, row_key(row->idx, row->row),
				   (uint32_t)bins->rows.cnt - 1);
}

static int take_row(void *arg, uint32_t idx, uint32_t row, const char *name)
{
	struct timebins *bins = arg;
	struct bin_row *ret;

	if (idx >= bins->options.rank_cnt || !bins->options.ranks[idx].shown)
		return 0;
	if (bins->rows.cnt >= ROWS_KEPT_MAX) {
		bins->row_left_out_cnt++;
		return 0;
	}
	ret = calloc(1, sizeof(*ret));
	if (ret == NULL)
		return -ENOMEM;
	ret->idx = idx;
	ret->row = row;
	ret->order = UINT_MAX;
	(void)snprintf(ret->name, sizeof(ret->name), "%s", name);
	ret->entries =
		calloc((size_t)bins->options.columns * TIMEBINS_ENTRIES, sizeof(*ret->entries));
	if (ret->entries != NULL)
		return add_row(bins, ret);
	free_row(ret);
	return -ENOMEM;
}

/* What a reader looks at first, by the first category in the row. */
static unsigned order_of(const struct bin_row *row, const char *category)
{
	static const char *const first[] = { "finding", "iteration", "collective",
					     "kernel",	"gpu",	     "gpu_memop",
					     "python",	"nccl",	     "annotation" };

	if (strstr(row->name, "training thread") != NULL)
		return 3;
	for (unsigned i = 0; i < ARRAY_SIZE(first); i++) {
		if (strcmp(category, first[i]) == 0)
			return i < 3 ? i : i + 1;
	}
	return ARRAY_SIZE(first) + 1;
}

/* --- columns --- */

static struct bin_entry *entry_of(struct bin_entry *entries, const struct bin_entry *what)
{
	struct bin_entry *least = &entries[0];

	for (size_t i = 0; i < TIMEBINS_ENTRIES; i++) {
		if (entries[i].ns > 0 && entries[i].name == what->name &&
		    entries[i].category == what->category && entries[i].flagged == what->flagged)
			return &entries[i];
		if (entries[i].ns < least->ns)
			least = &entries[i];
	}
	return least;
}

static void add_to(struct bin_entry *entries, const struct bin_entry *what, int64_t ns)
{
	struct bin_entry *entry = entry_of(entries, what);
	bool same = entry->ns > 0 && entry->name == what->name &&
		    entry->category == what->category && entry->flagged == what->flagged;

	if (same)
		entry->ns = MAX(entry->ns + ns, INT64_C(0));
	else if (ns > entry->ns) {
		*entry = *what;
		entry->ns = ns;
	}
}

/* Adds the interval to the columns it lies in; sign -1: takes it away. */
static void add_time(struct timebins *bins, struct bin_row *row, const struct bin_entry *what,
		     const int64_t span_ns[2], int sign)
{
	__int128 length = bins->to_ns - bins->from_ns;
	unsigned column =
		(unsigned)((__int128)(span_ns[0] - bins->from_ns) * bins->options.columns / length);

	/* Divisions round down: the column before may reach into the interval. */
	for (column = column > 0 ? column - 1 : 0; column < bins->options.columns; column++) {
		int64_t from = MAX(span_ns[0], timebins_column_ns(bins, column));
		int64_t to = MIN(span_ns[1], timebins_column_ns(bins, column + 1));

		if (timebins_column_ns(bins, column) >= span_ns[1])
			return;
		if (to > from)
			add_to(&row->entries[(size_t)column * TIMEBINS_ENTRIES], what,
			       sign * (to - from));
	}
}

/* --- slices --- */

/* "iteration 7": totals are of all iterations. */
static bool is_iteration(const struct timebins *bins, const struct bin_entry *what)
{
	return strncmp(strtab_text(&bins->names, what->name), "iteration ", 10) == 0 &&
	       strcmp(strtab_text(&bins->names, what->category), "iteration") == 0;
}

static int total_of(struct timebins *bins, struct bin_row *row, const struct bin_entry *what,
		    uint32_t *ret)
{
	uint32_t name = is_iteration(bins, what) ? what->category : what->name;
	uint64_t key = (uint64_t)name << 1 | what->flagged;
	int error;

	*ret = idmap_get(&row->total_of, key);
	if (*ret != IDMAP_NONE)
		return 0;
	if (row->totals.cnt >= TOTALS_MAX) {
		bins->name_left_out_cnt++;
		return 0;
	}
	error = vec_push(&row->totals, (struct bin_total){ .name = name,
							   .category = what->category,
							   .flagged = what->flagged });
	if (error < 0)
		return error;
	*ret = (uint32_t)row->totals.cnt - 1;
	return idmap_set(&row->total_of, key, *ret);
}

static bool ends_in(const char *name, const char *end)
{
	size_t len = strlen(name), end_len = strlen(end);

	return end_len > 0 && len >= end_len && strcmp(name + len - end_len, end) == 0 &&
	       (len == end_len || name[len - end_len - 1] == '/');
}

static bool names_rank(const struct timebins_finding *finding, int rank)
{
	for (size_t i = 0; i < finding->rank_cnt; i++) {
		if (finding->ranks[i] == rank)
			return true;
	}
	return finding->all_ranks;
}

static bool is_flagged(const struct timebins *bins, const struct sink_slice *slice)
{
	const struct timebins_options *o = &bins->options;

	if (slice->finding != NULL)
		return true;
	for (size_t i = 0; i < o->finding_cnt; i++) {
		if (o->findings[i].name != NULL && ends_in(slice->shown, o->findings[i].name) &&
		    names_rank(&o->findings[i], o->ranks[slice->idx].rank))
			return true;
	}
	return false;
}

/*
 * What a function does rather than calls: it belongs to the function that a finding names. Functions that it calls
 * have names of their own.
 */
static bool is_inner(const char *category)
{
	static const char *const inner[] = { "syscall", "gil", "gc", "runtime", "sync", "other" };

	for (size_t i = 0; i < ARRAY_SIZE(inner); i++) {
		if (strcmp(category, inner[i]) == 0)
			return true;
	}
	return false;
}

/* Names beyond the limit share one. */
static uint32_t intern(struct timebins *bins, const char *text)
{
	size_t len = strlen(text);
	uint32_t known = strtab_find(&bins->names, text, len);

	if (known != STRTAB_NONE)
		return known;
	if (bins->names.cnt >= NAMES_MAX) {
		bins->name_left_out_cnt++;
		return strtab_intern(&bins->names, "other", 5);
	}
	return strtab_intern(&bins->names, text, len);
}

/* The slice around one that begins at from_ns; NULL: none. Slices that ended before are closed. */
static const struct bin_open *find_outer(struct bin_row *row, int64_t from_ns)
{
	while (row->open.cnt > 0 && row->open.data[row->open.cnt - 1].end_ns <= from_ns)
		row->open.cnt--;
	return row->open.cnt > 0 ? &row->open.data[row->open.cnt - 1] : NULL;
}

/* The slice around another one loses that one's time by itself. */
static void take_from_outer(struct timebins *bins, struct bin_row *row,
			    const struct bin_open *outer, const int64_t span_ns[2])
{
	int64_t inside_ns[2] = { span_ns[0], span_ns[1] };

	inside_ns[1] = MIN(inside_ns[1], outer->end_ns);
	add_time(bins, row, &outer->what, inside_ns, -1);
	if (outer->total != IDMAP_NONE)
		row->totals.data[outer->total].self_ns -= inside_ns[1] - inside_ns[0];
}

static int take_slice(void *arg, const struct sink_slice *slice)
{
	struct timebins *bins = arg;
	uint32_t place = idmap_get(&bins->row_of, row_key(slice->idx, slice->row));
	int64_t span_ns[2] = { MAX(slice->start_ns, bins->from_ns),
			       MIN(slice->end_ns, bins->to_ns) };
	struct bin_open open = { .end_ns = span_ns[1] };
	const struct bin_open *outer;
	struct bin_row *row;
	int error;

	if (place == IDMAP_NONE || span_ns[1] <= span_ns[0])
		return 0;
	row = bins->rows.data[place];
	outer = find_outer(row, span_ns[0]);
	open.what.name = intern(bins, slice->shown);
	open.what.category = intern(bins, slice->category);
	open.what.flagged = is_flagged(bins, slice) ||
			    (outer != NULL && outer->what.flagged && is_inner(slice->category));
	if (open.what.name == STRTAB_NONE || open.what.category == STRTAB_NONE)
		return -ENOMEM;
	error = total_of(bins, row, &open.what, &open.total);
	if (error < 0)
		return error;
	row->order = MIN(row->order, order_of(row, slice->category));
	if (outer != NULL)
		take_from_outer(bins, row, outer, span_ns);
	add_time(bins, row, &open.what, span_ns, 1);
	if (open.total != IDMAP_NONE) {
		struct bin_total *total = &row->totals.data[open.total];

		row->busy_ns += outer == NULL ? span_ns[1] - span_ns[0] : 0;
		total->cnt++;
		total->self_ns += span_ns[1] - span_ns[0];
		total->longest_ns = MAX(total->longest_ns, slice->end_ns - slice->start_ns);
	}
	return vec_push(&row->open, open);
}

/* --- which ranks --- */

void timebins_choose(struct timebins_rank *ranks, size_t cnt,
		     const struct timebins_finding *findings, size_t finding_cnt)
{
	size_t left = TIMEBINS_RANKS_MAX;
	const bool all = cnt <= left;
	size_t flagged_left = left / FLAGGED_FRAC;

	for (size_t i = 0; i < cnt; i++) {
		ranks[i].flagged = false;
		for (size_t k = 0; k < finding_cnt; k++)
			ranks[i].flagged |=
				!findings[k].all_ranks && names_rank(&findings[k], ranks[i].rank);
		ranks[i].shown = all || (ranks[i].flagged && flagged_left > 0);
		if (!all && ranks[i].shown) {
			flagged_left--;
			left--;
		}
	}
	for (size_t i = 0, place = 0; !all && i < left; i++) {
		place = MAX(place, i * cnt / left);
		while (place < cnt && ranks[place].shown)
			place++;
		if (place < cnt)
			ranks[place].shown = true;
	}
}

/* --- life --- */

struct timebins *timebins_new(const struct timebins_options *options)
{
	struct timebins *bins = calloc(1, sizeof(*bins));

	if (bins == NULL)
		return NULL;
	bins->options = *options;
	bins->options.columns = MIN(MAX(options->columns, 1u), TIMEBINS_COLUMNS_MAX);
	bins->sink = (struct slice_sink){ begin, take_row, take_slice, bins, 0 };
	return strtab_init(&bins->names) == 0 ? bins : timebins_free(bins);
}

struct timebins *timebins_free(struct timebins *bins)
{
	if (bins == NULL)
		return NULL;
	vec_foreach(row, &bins->rows)
		free_row(*row);
	vec_done(&bins->rows);
	idmap_done(&bins->row_of);
	strtab_done(&bins->names);
	free(bins);
	return NULL;
}

struct slice_sink *timebins_sink(struct timebins *bins)
{
	return &bins->sink;
}

static ssize_t write_nothing(void *arg _unused_, const char *data _unused_, size_t len)
{
	return (ssize_t)len;
}

FILE *timebins_open_null(void)
{
	return fopencookie(NULL, "w", (cookie_io_functions_t){ .write = write_nothing });
}
