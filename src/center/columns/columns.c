/* SPDX-License-Identifier: Apache-2.0 */
#include "center/columns/columns.h"

#include "base/stats.h"
#include "model/code16.h"

#include <errno.h>
#include <string.h>

static void drop_added(struct columns *columns)
{
	vec_done(&columns->added_function);
	for (int c = 0; c < COLUMN_CNT; c++)
		vec_done(&columns->added[c]);
}

void columns_done(struct columns *columns)
{
	drop_added(columns);
	vec_done(&columns->workers);
	vec_done(&columns->frames);
	vec_done(&columns->functions);
	vec_done(&columns->group_first);
	idmap_done(&columns->frame_by_key);
	idmap_done(&columns->function_by_frame);
	for (int c = 0; c < COLUMN_CNT; c++)
		free(columns->codes[c]);
	free(columns->place);
	free(columns->worker_at);
	*columns = (struct columns){ 0 };
}

/* --- adding --- */

int columns_frame(struct columns *columns, struct job_frame frame, uint32_t *ret)
{
	uint32_t found = idmap_get(&columns->frame_by_key, frame.key.lo);

	if (found == IDMAP_NONE) {
		found = (uint32_t)columns->frames.cnt;
		if (vec_push(&columns->frames, frame) < 0 ||
		    idmap_set(&columns->frame_by_key, frame.key.lo, found) < 0)
			return -ENOMEM;
	}
	*ret = found;
	return 0;
}

static uint64_t function_key(uint32_t frame, uint8_t class)
{
	return (uint64_t)frame << 8 | class;
}

int columns_function(struct columns *columns, uint32_t frame, uint8_t class, uint32_t *ret)
{
	uint64_t key = function_key(frame, class);
	uint32_t found = idmap_get(&columns->function_by_frame, key);

	if (found == IDMAP_NONE) {
		found = (uint32_t)columns->functions.cnt;
		if (vec_push(&columns->functions,
			     (struct columns_function){ .frame = frame, .class = class }) < 0 ||
		    idmap_set(&columns->function_by_frame, key, found) < 0)
			return -ENOMEM;
	}
	*ret = found;
	return 0;
}

int columns_worker(struct columns *columns, struct columns_worker worker)
{
	worker.first = columns->added_function.cnt;
	worker.cnt = 0;
	return vec_push(&columns->workers, worker);
}

int columns_row(struct columns *columns, uint32_t function, const uint16_t codes[COLUMN_CNT])
{
	int error = vec_push(&columns->added_function, function);

	for (int c = 0; c < COLUMN_CNT && error == 0; c++)
		error = vec_push(&columns->added[c], codes[c]);
	if (error == 0)
		columns->workers.data[columns->workers.cnt - 1].cnt++;
	return error;
}

static int add_functions(struct columns *columns, const struct fingerprint *fp,
			 const uint32_t *frame_of)
{
	int error = 0;

	for (size_t i = 0; i < fp->function_cnt && error == 0; i++) {
		const struct fp_function *f = &fp->functions[i];
		const uint16_t codes[COLUMN_CNT] = { code16_of_frac(f->beta_frac),
						     code16_of_frac(f->mu_frac),
						     code16_of_frac(f->sigma_frac),
						     code16_of_ns(f->share_ns) };
		uint32_t idx;

		error = columns_function(columns,
					 f->frame == FRAME_NONE ? FRAME_NONE : frame_of[f->frame],
					 f->class, &idx);
		if (error == 0)
			error = columns_row(columns, idx, codes);
	}
	return error;
}

int columns_fingerprint(struct columns *columns, const struct fingerprint *fp, uint64_t tag)
{
	_cleanup_free_ uint32_t *frame_of = calloc(fp->frame_cnt + 1, sizeof(*frame_of));
	struct columns_worker worker = { .rank = fp->rank,
					 .world_size = fp->world_size,
					 .iterations = (uint32_t)MAX(fp->iteration_cnt, (size_t)1),
					 .window_ns = fp->window_ns,
					 .lost_frac = job_lost_frac(fp),
					 .host = fp->host,
					 .tag = tag };
	int error = frame_of != NULL ? columns_worker(columns, worker) : -ENOMEM;

	for (size_t i = 0; i < fp->frame_cnt && error == 0; i++) {
		const struct fp_frame *f = &fp->frames[i];
		uint32_t parent = f->parent == FRAME_NONE ? FRAME_NONE : frame_of[f->parent];

		error = columns_frame(columns,
				      (struct job_frame){ f->key, parent, f->kind, f->name },
				      &frame_of[i]);
	}
	return error == 0 ? add_functions(columns, fp, frame_of) : error;
}

void columns_renumber(struct columns *columns, const uint32_t *function_of)
{
	for (size_t row = 0; row < columns->added_function.cnt; row++)
		columns->added_function.data[row] = function_of[columns->added_function.data[row]];
}

/* --- joining --- */

static int rank_cmp(const void *a, const void *b)
{
	const struct columns_worker *x = a, *y = b;

	return (x->rank > y->rank) - (x->rank < y->rank);
}

struct ordered {
	uint64_t share_ns;
	struct funckey key;
	uint8_t class;
	uint32_t idx;
};

/* Largest first; the equal ones by key. */
static int ordered_cmp(const void *a, const void *b)
{
	const struct ordered *x = a, *y = b;

	if (x->share_ns != y->share_ns)
		return x->share_ns < y->share_ns ? 1 : -1;
	if (x->key.hi != y->key.hi)
		return x->key.hi < y->key.hi ? -1 : 1;
	if (x->key.lo != y->key.lo)
		return x->key.lo < y->key.lo ? -1 : 1;
	return (x->class > y->class) - (x->class < y->class);
}

static void count_rows(struct columns *columns)
{
	vec_foreach(w, &columns->workers) {
		for (size_t row = w->first; row < w->first + w->cnt; row++) {
			struct columns_function *f =
				&columns->functions.data[columns->added_function.data[row]];

			f->cnt++;
			f->share_ns += code16_count(columns->added[COLUMN_SHARE].data[row]);
		}
	}
}

/* Functions in an order that does not depend on the order of messages. */
static int order_functions(struct columns *columns)
{
	size_t cnt = columns->functions.cnt, first = 0;
	_cleanup_free_ struct ordered *order = calloc(cnt + 1, sizeof(*order));
	_cleanup_free_ struct columns_function *sorted = calloc(cnt + 1, sizeof(*sorted));
	_cleanup_free_ uint32_t *place_of = calloc(cnt + 1, sizeof(*place_of));
	int error = 0;

	if (order == NULL || sorted == NULL || place_of == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < cnt; i++) {
		const struct columns_function *f = &columns->functions.data[i];

		order[i] = (struct ordered){ .share_ns = f->share_ns, .class = f->class, .idx = i };
		if (f->frame != FRAME_NONE)
			order[i].key = columns->frames.data[f->frame].key;
	}
	qsort(order, cnt, sizeof(*order), ordered_cmp);
	for (uint32_t i = 0; i < cnt && error == 0; i++) {
		sorted[i] = columns->functions.data[order[i].idx];
		sorted[i].first = first;
		first += sorted[i].cnt;
		place_of[order[i].idx] = i;
		error = idmap_set(&columns->function_by_frame,
				  function_key(sorted[i].frame, sorted[i].class), i);
	}
	if (cnt > 0)
		memcpy(columns->functions.data, sorted, cnt * sizeof(*sorted));
	columns_renumber(columns, place_of);
	return error;
}

static int measure_iteration(struct columns *columns)
{
	_cleanup_free_ double *lengths = calloc(columns->workers.cnt + 1, sizeof(*lengths));

	if (lengths == NULL)
		return -ENOMEM;
	for (size_t w = 0; w < columns->workers.cnt; w++)
		lengths[w] = (double)columns->workers.data[w].window_ns /
			     (double)columns->workers.data[w].iterations;
	columns->iteration_ns = stats_middle(lengths, columns->workers.cnt);
	return 0;
}

static int allocate_rows(struct columns *columns)
{
	size_t cnt = columns->added_function.cnt + 1;

	columns->place = malloc(cnt * sizeof(*columns->place));
	columns->worker_at = malloc((columns->workers.cnt + 1) * sizeof(*columns->worker_at));
	if (columns->place == NULL || columns->worker_at == NULL)
		return -ENOMEM;
	for (int c = 0; c < COLUMN_CNT; c++) {
		columns->codes[c] = malloc(cnt * sizeof(uint16_t));
		if (columns->codes[c] == NULL)
			return -ENOMEM;
	}
	return 0;
}

static int place_workers(struct columns *columns)
{
	size_t groups = columns->group_first.cnt - 1;
	_cleanup_free_ size_t *next = calloc(groups + 1, sizeof(*next));

	if (next == NULL)
		return -ENOMEM;
	memcpy(next, columns->group_first.data, groups * sizeof(*next));
	for (uint32_t w = 0; w < columns->workers.cnt; w++)
		columns->worker_at[next[columns->workers.data[w].group]++] = w;
	return 0;
}

/* A worker that lists a function twice, as no honest one does, keeps its first row. */
static void turn_rows(struct columns *columns)
{
	vec_foreach(f, &columns->functions)
		f->cnt = 0;
	for (uint32_t place = 0; place < columns->workers.cnt; place++) {
		const struct columns_worker *w = &columns->workers.data[columns->worker_at[place]];

		for (size_t row = w->first; row < w->first + w->cnt; row++) {
			struct columns_function *f =
				&columns->functions.data[columns->added_function.data[row]];
			size_t to = f->first + f->cnt;

			if (f->cnt > 0 && columns->place[to - 1] == place)
				continue;
			columns->place[to] = place;
			for (int c = 0; c < COLUMN_CNT; c++)
				columns->codes[c][to] = columns->added[c].data[row];
			f->cnt++;
		}
	}
}

static bool is_by_rank(const struct columns *columns)
{
	for (size_t w = 1; w < columns->workers.cnt; w++) {
		if (columns->workers.data[w - 1].rank > columns->workers.data[w].rank)
			return false;
	}
	return true;
}

/* Ranks are mostly 0 to the number of workers: each goes where it belongs. */
static int sort_workers(struct columns *columns)
{
	size_t cnt = columns->workers.cnt, kept = 0;
	_cleanup_free_ struct columns_worker *sorted = NULL;
	_cleanup_free_ uint32_t *worker_of = NULL;
	int top = 0, bottom = 0;

	if (is_by_rank(columns))
		return 0;
	vec_foreach(w, &columns->workers) {
		top = MAX(top, w->rank);
		bottom = MIN(bottom, w->rank);
	}
	if (bottom < 0 || (size_t)top > 8 * cnt) {
		qsort(columns->workers.data, cnt, sizeof(*columns->workers.data), rank_cmp);
		return 0;
	}
	sorted = malloc(cnt * sizeof(*sorted));
	worker_of = calloc((size_t)top + 1, sizeof(*worker_of));
	if (sorted == NULL || worker_of == NULL)
		return -ENOMEM;
	for (uint32_t w = 0; w < cnt; w++)
		worker_of[columns->workers.data[w].rank] = w + 1;
	for (size_t rank = 0; rank <= (size_t)top; rank++) {
		if (worker_of[rank] != 0)
			sorted[kept++] = columns->workers.data[worker_of[rank] - 1];
	}
	memcpy(columns->workers.data, sorted, kept * sizeof(*sorted));
	columns->workers.cnt = kept;
	return 0;
}

int columns_join(struct columns *columns)
{
	int error = sort_workers(columns);

	if (error < 0)
		return error;
	count_rows(columns);
	error = order_functions(columns);
	if (error == 0)
		error = measure_iteration(columns);
	if (error == 0)
		error = columns_peers(columns);
	if (error == 0)
		error = allocate_rows(columns);
	if (error == 0)
		error = place_workers(columns);
	if (error == 0)
		turn_rows(columns);
	drop_added(columns);
	return error;
}

size_t columns_row_from(const struct columns *columns, const struct columns_function *f,
			size_t place)
{
	size_t low = f->first, high = f->first + f->cnt;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (columns->place[mid] < place)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

size_t columns_row_find(const struct columns *columns, const struct columns_function *f,
			uint32_t place)
{
	size_t row = columns_row_from(columns, f, place);

	return row < f->first + f->cnt && columns->place[row] == place ? row : SIZE_MAX;
}
