/* SPDX-License-Identifier: Apache-2.0 */
#include "center/columns/columns.h"

#include "base/stats.h"
#include "model/code16.h"

#include <errno.h>
#include <string.h>

static void drop_added(struct crowd *crowd)
{
	vec_done(&crowd->added_function);
	for (int c = 0; c < CROWD_COLUMN_CNT; c++)
		vec_done(&crowd->added[c]);
}

void crowd_done(struct crowd *crowd)
{
	drop_added(crowd);
	vec_done(&crowd->workers);
	vec_done(&crowd->frames);
	vec_done(&crowd->functions);
	vec_done(&crowd->group_first);
	idmap_done(&crowd->frame_by_key);
	idmap_done(&crowd->function_by_frame);
	for (int c = 0; c < CROWD_COLUMN_CNT; c++)
		free(crowd->columns[c]);
	free(crowd->place);
	free(crowd->worker_at);
	*crowd = (struct crowd){ 0 };
}

/* --- adding --- */

int crowd_frame(struct crowd *crowd, struct job_frame frame, uint32_t *ret)
{
	uint32_t found = idmap_get(&crowd->frame_by_key, frame.key.lo);

	if (found == IDMAP_NONE) {
		found = (uint32_t)crowd->frames.cnt;
		if (vec_push(&crowd->frames, frame) < 0 ||
		    idmap_set(&crowd->frame_by_key, frame.key.lo, found) < 0)
			return -ENOMEM;
	}
	*ret = found;
	return 0;
}

static uint64_t function_key(uint32_t frame, uint8_t class)
{
	return (uint64_t)frame << 8 | class;
}

int crowd_function(struct crowd *crowd, uint32_t frame, uint8_t class, uint32_t *ret)
{
	uint64_t key = function_key(frame, class);
	uint32_t found = idmap_get(&crowd->function_by_frame, key);

	if (found == IDMAP_NONE) {
		found = (uint32_t)crowd->functions.cnt;
		if (vec_push(&crowd->functions,
			     (struct crowd_function){ .frame = frame, .class = class }) < 0 ||
		    idmap_set(&crowd->function_by_frame, key, found) < 0)
			return -ENOMEM;
	}
	*ret = found;
	return 0;
}

uint32_t crowd_function_find(const struct crowd *crowd, uint32_t frame, uint8_t class)
{
	uint32_t found = idmap_get(&crowd->function_by_frame, function_key(frame, class));

	return found == IDMAP_NONE ? FRAME_NONE : found;
}

int crowd_worker(struct crowd *crowd, struct crowd_worker worker)
{
	worker.first = crowd->added_function.cnt;
	worker.cnt = 0;
	return vec_push(&crowd->workers, worker);
}

int crowd_row(struct crowd *crowd, uint32_t function, const uint16_t codes[CROWD_COLUMN_CNT])
{
	int error = vec_push(&crowd->added_function, function);

	for (int c = 0; c < CROWD_COLUMN_CNT && error == 0; c++)
		error = vec_push(&crowd->added[c], codes[c]);
	if (error == 0)
		crowd->workers.data[crowd->workers.cnt - 1].cnt++;
	return error;
}

static int add_functions(struct crowd *crowd, const struct fingerprint *fp,
			 const uint32_t *frame_of)
{
	int error = 0;

	for (size_t i = 0; i < fp->function_cnt && error == 0; i++) {
		const struct fp_function *f = &fp->functions[i];
		const uint16_t codes[CROWD_COLUMN_CNT] = { code16_of_frac(f->beta_frac),
							   code16_of_frac(f->mu_frac),
							   code16_of_frac(f->sigma_frac),
							   code16_of_ns(f->share_ns) };
		uint32_t idx;

		error = crowd_function(crowd,
				       f->frame == FRAME_NONE ? FRAME_NONE : frame_of[f->frame],
				       f->class, &idx);
		if (error == 0)
			error = crowd_row(crowd, idx, codes);
	}
	return error;
}

int crowd_fingerprint(struct crowd *crowd, const struct fingerprint *fp, uint64_t tag)
{
	_cleanup_free_ uint32_t *frame_of = calloc(fp->frame_cnt + 1, sizeof(*frame_of));
	struct crowd_worker worker = { .rank = fp->rank,
				       .world_size = fp->world_size,
				       .iterations = (uint32_t)MAX(fp->iteration_cnt, (size_t)1),
				       .window_ns = fp->window_ns,
				       .host = fp->host,
				       .tag = tag };
	int error = frame_of != NULL ? crowd_worker(crowd, worker) : -ENOMEM;

	for (size_t i = 0; i < fp->frame_cnt && error == 0; i++) {
		const struct fp_frame *f = &fp->frames[i];
		uint32_t parent = f->parent == FRAME_NONE ? FRAME_NONE : frame_of[f->parent];

		error = crowd_frame(crowd, (struct job_frame){ f->key, parent, f->kind, f->name },
				    &frame_of[i]);
	}
	return error == 0 ? add_functions(crowd, fp, frame_of) : error;
}

void crowd_renumber(struct crowd *crowd, const uint32_t *function_of)
{
	for (size_t row = 0; row < crowd->added_function.cnt; row++)
		crowd->added_function.data[row] = function_of[crowd->added_function.data[row]];
}

/* --- joining --- */

static int rank_cmp(const void *a, const void *b)
{
	const struct crowd_worker *x = a, *y = b;

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

static void count_rows(struct crowd *crowd)
{
	vec_foreach(w, &crowd->workers) {
		for (size_t row = w->first; row < w->first + w->cnt; row++) {
			struct crowd_function *f =
				&crowd->functions.data[crowd->added_function.data[row]];

			f->cnt++;
			f->share_ns += code16_count(crowd->added[CROWD_SHARE].data[row]);
		}
	}
}

/* Functions in an order that does not depend on who was heard first. */
static int order_functions(struct crowd *crowd)
{
	size_t cnt = crowd->functions.cnt, first = 0;
	_cleanup_free_ struct ordered *order = calloc(cnt + 1, sizeof(*order));
	_cleanup_free_ struct crowd_function *sorted = calloc(cnt + 1, sizeof(*sorted));
	_cleanup_free_ uint32_t *place_of = calloc(cnt + 1, sizeof(*place_of));
	int error = 0;

	if (order == NULL || sorted == NULL || place_of == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < cnt; i++) {
		const struct crowd_function *f = &crowd->functions.data[i];

		order[i] = (struct ordered){ .share_ns = f->share_ns, .class = f->class, .idx = i };
		if (f->frame != FRAME_NONE)
			order[i].key = crowd->frames.data[f->frame].key;
	}
	qsort(order, cnt, sizeof(*order), ordered_cmp);
	for (uint32_t i = 0; i < cnt && error == 0; i++) {
		sorted[i] = crowd->functions.data[order[i].idx];
		sorted[i].first = first;
		first += sorted[i].cnt;
		place_of[order[i].idx] = i;
		error = idmap_set(&crowd->function_by_frame,
				  function_key(sorted[i].frame, sorted[i].class), i);
	}
	if (cnt > 0)
		memcpy(crowd->functions.data, sorted, cnt * sizeof(*sorted));
	crowd_renumber(crowd, place_of);
	return error;
}

static int measure_iteration(struct crowd *crowd)
{
	_cleanup_free_ double *lengths = calloc(crowd->workers.cnt + 1, sizeof(*lengths));

	if (lengths == NULL)
		return -ENOMEM;
	for (size_t w = 0; w < crowd->workers.cnt; w++)
		lengths[w] = (double)crowd->workers.data[w].window_ns /
			     (double)crowd->workers.data[w].iterations;
	crowd->iteration_ns = stats_middle(lengths, crowd->workers.cnt);
	return 0;
}

static int allocate_rows(struct crowd *crowd)
{
	size_t cnt = crowd->added_function.cnt + 1;

	crowd->place = malloc(cnt * sizeof(*crowd->place));
	crowd->worker_at = malloc((crowd->workers.cnt + 1) * sizeof(*crowd->worker_at));
	if (crowd->place == NULL || crowd->worker_at == NULL)
		return -ENOMEM;
	for (int c = 0; c < CROWD_COLUMN_CNT; c++) {
		crowd->columns[c] = malloc(cnt * sizeof(uint16_t));
		if (crowd->columns[c] == NULL)
			return -ENOMEM;
	}
	return 0;
}

static int place_workers(struct crowd *crowd)
{
	size_t groups = crowd->group_first.cnt - 1;
	_cleanup_free_ size_t *next = calloc(groups + 1, sizeof(*next));

	if (next == NULL)
		return -ENOMEM;
	memcpy(next, crowd->group_first.data, groups * sizeof(*next));
	for (uint32_t w = 0; w < crowd->workers.cnt; w++)
		crowd->worker_at[next[crowd->workers.data[w].group]++] = w;
	return 0;
}

/* A worker that lists a function twice, as no honest one does, keeps its first row. */
static void turn_rows(struct crowd *crowd)
{
	vec_foreach(f, &crowd->functions)
		f->cnt = 0;
	for (uint32_t place = 0; place < crowd->workers.cnt; place++) {
		const struct crowd_worker *w = &crowd->workers.data[crowd->worker_at[place]];

		for (size_t row = w->first; row < w->first + w->cnt; row++) {
			struct crowd_function *f =
				&crowd->functions.data[crowd->added_function.data[row]];
			size_t to = f->first + f->cnt;

			if (f->cnt > 0 && crowd->place[to - 1] == place)
				continue;
			crowd->place[to] = place;
			for (int c = 0; c < CROWD_COLUMN_CNT; c++)
				crowd->columns[c][to] = crowd->added[c].data[row];
			f->cnt++;
		}
	}
}

static bool is_by_rank(const struct crowd *crowd)
{
	for (size_t w = 1; w < crowd->workers.cnt; w++) {
		if (crowd->workers.data[w - 1].rank > crowd->workers.data[w].rank)
			return false;
	}
	return true;
}

/* Ranks are mostly 0 to the number of workers: each goes where it belongs. */
static int sort_workers(struct crowd *crowd)
{
	size_t cnt = crowd->workers.cnt, kept = 0;
	_cleanup_free_ struct crowd_worker *sorted = NULL;
	_cleanup_free_ uint32_t *worker_of = NULL;
	int top = 0, bottom = 0;

	if (is_by_rank(crowd))
		return 0;
	vec_foreach(w, &crowd->workers) {
		top = MAX(top, w->rank);
		bottom = MIN(bottom, w->rank);
	}
	if (bottom < 0 || (size_t)top > 8 * cnt) {
		qsort(crowd->workers.data, cnt, sizeof(*crowd->workers.data), rank_cmp);
		return 0;
	}
	sorted = malloc(cnt * sizeof(*sorted));
	worker_of = calloc((size_t)top + 1, sizeof(*worker_of));
	if (sorted == NULL || worker_of == NULL)
		return -ENOMEM;
	for (uint32_t w = 0; w < cnt; w++)
		worker_of[crowd->workers.data[w].rank] = w + 1;
	for (size_t rank = 0; rank <= (size_t)top; rank++) {
		if (worker_of[rank] != 0)
			sorted[kept++] = crowd->workers.data[worker_of[rank] - 1];
	}
	memcpy(crowd->workers.data, sorted, kept * sizeof(*sorted));
	crowd->workers.cnt = kept;
	return 0;
}

int crowd_join(struct crowd *crowd)
{
	int error = sort_workers(crowd);

	if (error < 0)
		return error;
	count_rows(crowd);
	error = order_functions(crowd);
	if (error == 0)
		error = measure_iteration(crowd);
	if (error == 0)
		error = crowd_peers(crowd);
	if (error == 0)
		error = allocate_rows(crowd);
	if (error == 0)
		error = place_workers(crowd);
	if (error == 0)
		turn_rows(crowd);
	drop_added(crowd);
	return error;
}

size_t crowd_row_from(const struct crowd *crowd, const struct crowd_function *f, size_t place)
{
	size_t low = f->first, high = f->first + f->cnt;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (crowd->place[mid] < place)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

size_t crowd_row_find(const struct crowd *crowd, const struct crowd_function *f, uint32_t place)
{
	size_t row = crowd_row_from(crowd, f, place);

	return row < f->first + f->cnt && crowd->place[row] == place ? row : SIZE_MAX;
}
