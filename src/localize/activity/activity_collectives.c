/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives by operation, size of group and class of payload. */
#include "base/stats.h"
#include "localize/activity/activity.h"
#include "localize/parts.h"
#include "model/collective.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WORKERS_LOOKED_AT 256u /* of more, every second, third or so */
#define LISTED_MAX 32u

/* Payloads below these bytes are of one class; larger ones are of the last. */
static const int64_t class_ends[] = { 1 << 16, 1 << 20, 1 << 24, 1 << 28 };

/* One execution. */
struct row {
	const char *operation;
	int group_size, class; /* class -1: payload unknown */
	int64_t bytes, dur_ns, best_ns;
	double iterations; /* of its worker */
	bool matched;
};

struct look {
	const struct job *job;
	int64_t *
		*best; /* by worker: by collective, the shortest duration of a member; 0: unknown */
	struct row *rows;
	size_t row_cnt, worker_cnt;
};

static int class_of(int64_t bytes)
{
	int class = 0;

	while (class < (int)ARRAY_SIZE(class_ends) && bytes >= class_ends[class])
		class ++;
	return bytes >= 0 ? class : -1;
}

/* Notes the shortest duration of the members of one instance, if there are several. */
static void look_at_instance(struct look *look, const struct shift_group *group, int64_t instance)
{
	int64_t shortest = INT64_MAX;
	size_t cnt = 0;

	for (size_t m = 0; m < group->member_cnt; m++) {
		const struct fp_collective *c = shift_borrow(&group->members[m], instance);

		cnt += c != NULL;
		shortest = c != NULL ? MIN(shortest, c->dur_ns) : shortest;
	}
	for (size_t m = 0; m < group->member_cnt && cnt > 1; m++) {
		const struct shift_list *member = &group->members[m];
		const struct fp_collective *c = shift_borrow(member, instance);

		if (c != NULL && look->best[member->worker] != NULL)
			look->best[member->worker][c - member->all] = MAX(shortest, 1);
	}
}

static void add_rows(struct look *look, size_t w)
{
	const struct fingerprint *fp = look->job->workers[w].fp;

	for (size_t i = 0; i < fp->collective_cnt; i++) {
		const struct fp_collective *c = &fp->collectives[i];

		if (c->operation == 0 || c->operation > fp->operation_cnt)
			continue;
		look->rows[look->row_cnt++] = (struct row){
			.operation = fp->operations[c->operation - 1],
			.group_size = c->group_size,
			.class = class_of(c->bytes),
			.bytes = c->bytes,
			.dur_ns = c->dur_ns,
			.best_ns = look->best[w][i] > 0 ? look->best[w][i] : c->dur_ns,
			.iterations = look->job->workers[w].iterations,
			.matched = look->best[w][i] > 0,
		};
	}
}

static int by_kind(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	int order = strcmp(x->operation, y->operation);

	if (order != 0)
		return order;
	if (x->group_size != y->group_size)
		return x->group_size < y->group_size ? -1 : 1;
	return (x->class > y->class) - (x->class < y->class);
}

static double bus_rate(const struct row *row)
{
	double factor = row->group_size > 1
				? collective_bus_factor(row->operation, (uint32_t)row->group_size)
				: 0;

	if (row->bytes <= 0 || row->best_ns <= 0 || factor <= 0)
		return (double)NAN;
	return factor * (double)row->bytes / (double)row->best_ns;
}

static double bytes_of(const struct row *row)
{
	return row->bytes >= 0 ? (double)row->bytes : (double)NAN;
}

static double best_ms(const struct row *row)
{
	return (double)row->best_ns / 1e6;
}

/* Median over the matched rows, or over all; NAN: not known of any. scratch: room for all. */
static double median_row(const struct row *rows, size_t cnt, bool matched,
			 double (*of)(const struct row *row), double *scratch)
{
	size_t known = 0;

	for (size_t i = 0; i < cnt; i++) {
		double value = of(&rows[i]);

		if (!isnan(value) && (rows[i].matched || !matched))
			scratch[known++] = value;
	}
	return known > 0 ? stats_median(scratch, known) : (double)NAN;
}

static struct report_collective collective_of(const struct row *rows, size_t cnt, size_t workers,
					      double *scratch)
{
	const struct row *fastest = &rows[0];
	struct report_collective ret = { .operation = rows[0].operation,
					 .group_size = rows[0].group_size };

	for (size_t i = 0; i < cnt; i++) {
		ret.matched |= rows[i].matched;
		ret.cnt += 1 / rows[i].iterations / (double)workers;
		ret.ms += (double)rows[i].dur_ns / 1e6 / rows[i].iterations / (double)workers;
		if (rows[i].best_ns < fastest->best_ns)
			fastest = &rows[i];
	}
	ret.bytes = median_row(rows, cnt, false, bytes_of, scratch);
	ret.latency_ms =
		ret.matched ? median_row(rows, cnt, true, best_ms, scratch) : best_ms(fastest);
	ret.bus_gbytes_per_s =
		ret.matched ? median_row(rows, cnt, true, bus_rate, scratch) : bus_rate(fastest);
	return ret;
}

static int longest_first(const void *a, const void *b)
{
	const struct report_collective *x = a, *y = b;

	if (x->ms != y->ms)
		return x->ms < y->ms ? 1 : -1;
	return strcmp(x->operation, y->operation);
}

/* Sums the rows of each kind into the report. */
static int list_kinds(struct look *look, struct report *out)
{
	_cleanup_free_ double *scratch = calloc(look->row_cnt + 1, sizeof(*scratch));
	struct report_collective *list;
	size_t kinds = 0, cnt = 0;

	if (scratch == NULL)
		return -ENOMEM;
	qsort(look->rows, look->row_cnt, sizeof(*look->rows), by_kind);
	for (size_t i = 0; i < look->row_cnt; i++)
		kinds += i == 0 || by_kind(&look->rows[i - 1], &look->rows[i]) != 0;
	list = arena_calloc(&out->arena, kinds + 1, sizeof(*list));
	if (list == NULL)
		return -ENOMEM;
	for (size_t i = 0, end; i < look->row_cnt; i = end) {
		for (end = i + 1; end < look->row_cnt; end++) {
			if (by_kind(&look->rows[i], &look->rows[end]) != 0)
				break;
		}
		list[cnt] = collective_of(&look->rows[i], end - i, look->worker_cnt, scratch);
		list[cnt].operation = parts_copy(out, list[cnt].operation);
		if (list[cnt++].operation == NULL)
			return -ENOMEM;
	}
	qsort(list, cnt, sizeof(*list), longest_first);
	out->collectives = list;
	out->collective_cnt = MIN(cnt, (size_t)LISTED_MAX);
	return 0;
}

static int find_kinds(struct look *look, const struct blame *blame, struct report *out)
{
	size_t step = 1 + look->job->worker_cnt / WORKERS_LOOKED_AT, cnt = 0;

	for (size_t w = 0; w < look->job->worker_cnt; w += step) {
		size_t mine = look->job->workers[w].fp->collective_cnt;

		look->best[w] = calloc(mine + 1, sizeof(**look->best));
		if (look->best[w] == NULL)
			return -ENOMEM;
		cnt += mine;
	}
	look->rows = calloc(cnt + 1, sizeof(*look->rows));
	if (look->rows == NULL)
		return -ENOMEM;
	vec_foreach(group, &blame->groups) {
		for (int64_t i = group->first; i <= group->last; i++)
			look_at_instance(look, group, i);
	}
	for (size_t w = 0; w < look->job->worker_cnt; w += step) {
		look->worker_cnt++;
		add_rows(look, w);
	}
	return list_kinds(look, out);
}

int activity_collectives(const struct job *job, const struct blame *blame, struct report *out)
{
	struct look look = { .job = job };
	int error = -ENOMEM;

	look.best = calloc(job->worker_cnt + 1, sizeof(*look.best));
	if (look.best != NULL)
		error = find_kinds(&look, blame, out);
	for (size_t w = 0; w < job->worker_cnt && look.best != NULL; w++)
		free(look.best[w]);
	free((void *)look.best);
	free(look.rows);
	return error;
}
