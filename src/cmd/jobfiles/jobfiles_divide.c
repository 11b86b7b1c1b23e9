/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/jobfiles/jobfiles_parts.h"
#include "model/thresholds.h"

#include <errno.h>
#include <string.h>

/* Whether a file cannot be of the set that began with seed. */
typedef bool apart_fn(const struct jobfile *seed, const struct jobfile *file);

bool jobfiles_other_world(const struct jobfile *a, const struct jobfile *b)
{
	return a->fp->world_size > 0 && b->fp->world_size > 0 &&
	       a->fp->world_size != b->fp->world_size;
}

/* seed began first. */
static bool is_later(const struct jobfile *seed, const struct jobfile *file)
{
	return file->fp->window_start_wall_ns - jobfile_end_ns(seed) > JOBFILES_GAP_NS;
}

static bool has_steps(const struct fingerprint *fp)
{
	return fp->iterations_by == ITERATIONS_ANNOTATION && fp->iteration_cnt > 0 &&
	       fp->iterations[0].number >= 0;
}

/* Windows of one run: steps tell them apart; without them, when they began. */
static bool is_other_window(const struct jobfile *seed, const struct jobfile *file)
{
	const struct fingerprint *a = seed->fp, *b = file->fp;

	if (has_steps(a) && has_steps(b))
		return a->iterations[a->iteration_cnt - 1].number < b->iterations[0].number ||
		       b->iterations[b->iteration_cnt - 1].number < a->iterations[0].number;
	return b->window_start_wall_ns - a->window_start_wall_ns >= a->window_ns / 2;
}

static size_t folder_len(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash != NULL ? (size_t)(slash - path) : 0;
}

static bool is_elsewhere(const struct jobfile *seed, const struct jobfile *file)
{
	const char *a = seed->fp->source, *b = file->fp->source;

	return folder_len(a) != folder_len(b) || memcmp(a, b, folder_len(a)) != 0;
}

/* --- dividing --- */

struct division {
	struct jobfiles *j;
	VEC(const struct jobfile *) seeds; /* by set */
	bool *seen;			   /* by worker: scratch */
};

/* Whether a worker occurs twice in a set. seen: by worker. */
static bool has_twice(const struct jobfiles *j, uint32_t set, bool *seen)
{
	bool twice = false;

	memset(seen, 0, j->worker_cnt * sizeof(*seen));
	for (size_t i = 0; i < j->used_cnt; i++) {
		if (j->files[i].set != set)
			continue;
		twice |= seen[j->files[i].worker];
		seen[j->files[i].worker] = true;
	}
	return twice;
}

/* Files of a set that are apart from its seed get sets of their own. only_twice: if need be. */
static int divide(struct division *d, apart_fn *apart, bool only_twice)
{
	struct jobfiles *j = d->j;
	uint32_t cnt = j->set_cnt;

	for (uint32_t set = 0; set < cnt; set++) {
		uint32_t first_new = j->set_cnt;

		if (only_twice && !has_twice(j, set, d->seen))
			continue;
		for (size_t i = 0; i < j->used_cnt; i++) {
			struct jobfile *file = &j->files[i];
			uint32_t to = first_new;

			if (file->set != set || !apart(d->seeds.data[set], file))
				continue;
			while (to < j->set_cnt && apart(d->seeds.data[to], file))
				to++;
			if (to == j->set_cnt) {
				if (vec_push(&d->seeds, file) < 0)
					return -ENOMEM;
				j->set_cnt++;
			}
			file->set = to;
		}
	}
	return 0;
}

/* The k-th file of a worker goes to the k-th set: a guess, for a list to show. */
static void divide_by_turn(struct division *d, uint32_t set, bool *ret_any)
{
	struct jobfiles *j = d->j;
	uint32_t base = j->set_cnt, most = 0;

	if (!has_twice(j, set, d->seen))
		return;
	*ret_any = true;
	for (size_t i = j->used_cnt; i-- > 0;) {
		uint32_t before = 0;

		for (size_t k = 0; k < i && j->files[i].set == set; k++)
			before +=
				j->files[k].set == set && j->files[k].worker == j->files[i].worker;
		if (before > 0)
			j->files[i].set = base + before - 1;
		most = MAX(most, before);
	}
	j->set_cnt = base + most;
}

/* --- joining what only clocks divided --- */

static bool share_worker(const struct jobfiles *j, uint32_t a, uint32_t b)
{
	for (size_t i = 0; i < j->used_cnt; i++) {
		for (size_t k = 0; k < j->used_cnt && j->files[i].set == a; k++) {
			if (j->files[k].set == b && j->files[k].worker == j->files[i].worker)
				return true;
		}
	}
	return false;
}

static void rename_set(struct jobfiles *j, uint32_t from, uint32_t to)
{
	for (size_t i = 0; i < j->used_cnt; i++) {
		if (j->files[i].set == from)
			j->files[i].set = to;
	}
}

/*
 * Adds the collectives of pairs of files, one of each set. Ranks of two hosts need not be of one
 * process group: pairs that are come first, and some of them are enough. Where the traces do not say
 * which are, all pairs are tried until one fits.
 */
static int add_pairs(const struct jobfiles *j, uint32_t a, uint32_t b, bool of_one_group,
		     struct jobfiles_meeting *meeting)
{
	size_t left = of_one_group ? JOBFILES_MEET_PAIRS : JOBFILES_MEET_GUESSES;

	for (size_t i = 0; i < j->used_cnt; i++) {
		for (size_t k = 0; k < j->used_cnt && j->files[i].set == a; k++) {
			const struct fingerprint *x = j->files[i].fp, *y = j->files[k].fp;

			if (j->files[k].set != b || (of_one_group && !jobfiles_share_group(x, y)))
				continue;
			if (jobfiles_meet(x, y, meeting) < 0)
				return -ENOMEM;
			if (--left == 0 || meeting->guess_fits)
				return 0;
			if (of_one_group)
				break;
		}
	}
	return 0;
}

/* Whether the ranks of two sets met. Returns 1, 0, or -ENOMEM. */
static int sets_meet(const struct jobfiles *j, uint32_t a, uint32_t b)
{
	struct jobfiles_meeting meeting = { 0 };
	int error = add_pairs(j, a, b, true, &meeting);

	if (error == 0 && meeting.cnt == 0)
		error = add_pairs(j, a, b, false, &meeting);
	return error < 0 ? error : jobfiles_met(&meeting);
}

/* Whether two sets look like hosts of one job, and no collective says otherwise. */
static int sets_look_alike(const struct jobfiles *j, uint32_t a, uint32_t b)
{
	struct jobfiles_meeting meeting = { 0 };
	int error;

	if (!jobfiles_complete(j) || !jobfiles_alike(j, a, b))
		return 0;
	error = add_pairs(j, a, b, true, &meeting);
	return error < 0 ? error : meeting.cnt < JOBFILES_MEET_CNT;
}

/* Whether two sets are of one job, by one sign. Returns 1, 0, or -ENOMEM. */
typedef int one_job_fn(const struct jobfiles *j, uint32_t a, uint32_t b);

/* Sets that share no worker, but are of one job by one_job(), are one: a host's clock is off. */
static int join_sets(struct division *d, one_job_fn *one_job, bool *ret_any)
{
	struct jobfiles *j = d->j;

	for (uint32_t a = 0; a < j->set_cnt; a++) {
		for (uint32_t b = a + 1; b < j->set_cnt; b++) {
			const struct jobfile *x = d->seeds.data[a], *y = d->seeds.data[b];
			int meet;

			if (jobfiles_other_world(x, y) || share_worker(j, a, b))
				continue;
			meet = one_job(j, a, b);
			if (meet < 0)
				return meet;
			if (meet == 0)
				continue;
			rename_set(j, b, a);
			rename_set(j, --j->set_cnt, b);
			d->seeds.data[b] = d->seeds.data[j->set_cnt];
			*ret_any = true;
			b--;
		}
	}
	return 0;
}

/* --- numbers by time --- */

static int by_start(const void *a, const void *b)
{
	const struct jobfile *x = a, *y = b;
	int64_t x_ns = x->fp->window_start_wall_ns, y_ns = y->fp->window_start_wall_ns;

	if (x_ns != y_ns)
		return x_ns < y_ns ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return strcmp(x->fp->source, y->fp->source);
}

/* Renumbers the sets by their first files, which are by_start(). */
static int number_sets(struct jobfiles *j)
{
	_cleanup_free_ uint32_t *to = calloc(j->set_cnt + 1, sizeof(*to));
	uint32_t cnt = 0;

	if (to == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < j->used_cnt; i++) {
		uint32_t *number = &to[j->files[i].set];

		if (*number == 0)
			*number = ++cnt;
		j->files[i].set = *number - 1;
	}
	j->set_cnt = cnt;
	return 0;
}

int jobfiles_divide(struct jobfiles *j, bool *ret_by_turn)
{
	static const struct {
		apart_fn *apart;
		bool only_twice;
	} ways[] = {
		{ jobfiles_other_world, false },
		{ is_later, false },
		{ is_other_window, true },
		{ is_elsewhere, true },
	};
	struct division d = { .j = j, .seen = calloc(j->worker_cnt + 1, sizeof(*d.seen)) };
	int error = 0;

	if (j->used_cnt == 0 || d.seen == NULL) {
		free(d.seen);
		return j->used_cnt == 0 ? 0 : -ENOMEM;
	}
	qsort(j->files, j->used_cnt, sizeof(*j->files), by_start);
	j->set_cnt = 1;
	error = vec_push(&d.seeds, &j->files[0]);
	for (size_t i = 0; i < ARRAY_SIZE(ways) && error == 0; i++)
		error = divide(&d, ways[i].apart, ways[i].only_twice);
	if (error == 0)
		error = join_sets(&d, sets_meet, &j->clocks_off);
	if (error == 0)
		error = join_sets(&d, sets_look_alike, &j->only_alike);
	for (uint32_t set = 0, cnt = j->set_cnt; set < cnt && error == 0; set++)
		divide_by_turn(&d, set, ret_by_turn);
	vec_done(&d.seeds);
	free(d.seen);
	return error == 0 ? number_sets(j) : error;
}
