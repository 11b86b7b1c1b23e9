/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/jobfiles/jobfiles.h"

#include "cmd/jobfiles/jobfiles_parts.h"
#include "cmd/jobfiles/ranknames.h"
#include "model/thresholds.h"

#include <errno.h>
#include <string.h>

void jobfiles_done(struct jobfiles *jobfiles)
{
	free(jobfiles->files);
	*jobfiles = (struct jobfiles){ 0 };
}

/* A process that is alone in its world has rank 0, whatever its number in the job. */
int jobfiles_rank(const struct fingerprint *fp)
{
	int named = ranknames_of_file(fp->source);

	if (fp->rank >= 0 && (fp->world_size != 1 || named < 0))
		return fp->rank;
	return named >= 0 ? named : ranknames_of_folder(fp->source);
}

/* --- the worker of a file --- */

struct process {
	const char *host;
	size_t host_len;
	int64_t pid;
};

static struct process process_of(const struct fingerprint *fp)
{
	struct ranknames_process named = ranknames_process_of(fp->source);

	if (fp->host[0] == '\0' && named.host_len > 0)
		return (struct process){ named.host, named.host_len, named.pid };
	return (struct process){ fp->host, strlen(fp->host), fp->pid };
}

bool jobfiles_same_process(const struct fingerprint *a, const struct fingerprint *b)
{
	struct process x = process_of(a), y = process_of(b);

	if (x.pid > 0 && y.pid > 0 && x.pid != y.pid)
		return false;
	return x.host_len == 0 || y.host_len == 0 ||
	       (x.host_len == y.host_len && memcmp(x.host, y.host, x.host_len) == 0);
}

/* Without ranks: only a pid with its host identifies a process. */
static bool is_same_worker(const struct jobfile *a, const struct jobfile *b)
{
	if (a->rank >= 0 && b->rank >= 0)
		return a->rank == b->rank;
	return process_of(a->fp).host_len > 0 && process_of(b->fp).host_len > 0 &&
	       process_of(a->fp).pid > 0 && jobfiles_same_process(a->fp, b->fp);
}

static int by_rank(const void *a, const void *b)
{
	const struct jobfile *x = a, *y = b;
	int64_t x_ns = x->fp->window_start_wall_ns, y_ns = y->fp->window_start_wall_ns;

	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	if (x_ns != y_ns)
		return x_ns < y_ns ? -1 : 1;
	return strcmp(x->fp->source, y->fp->source);
}

/* Numbers the workers. Files of known ranks follow each other; the others are compared all. */
static uint32_t number_workers(struct jobfile *files, size_t cnt)
{
	uint32_t worker_cnt = 0;

	for (size_t i = 0; i < cnt; i++) {
		size_t first = files[i].rank >= 0 && i > 0 ? i - 1 : 0, k = first;

		while (k < i && !is_same_worker(&files[k], &files[i]))
			k++;
		files[i].worker = k < i ? files[k].worker : worker_cnt++;
	}
	return worker_cnt;
}

/* --- copies --- */

static int64_t iteration_at_ns(const struct fingerprint *fp, size_t i)
{
	return fp->window_start_wall_ns + fp->iterations[i].start_ns;
}

/* No two processes begin an iteration, or a window, at the same nanosecond. */
static bool begins_alike(const struct fingerprint *a, const struct fingerprint *b)
{
	size_t i = 0, k = 0;

	while (i < a->iteration_cnt && k < b->iteration_cnt) {
		int64_t x = iteration_at_ns(a, i), y = iteration_at_ns(b, k);

		if (x == y && a->iterations[i].dur_ns == b->iterations[k].dur_ns)
			return true;
		i += x <= y;
		k += y <= x;
	}
	return a->window_start_wall_ns == b->window_start_wall_ns && a->window_ns == b->window_ns &&
	       a->event_cnt == b->event_cnt;
}

static bool is_copy(const struct jobfile *a, const struct jobfile *b)
{
	return a->worker == b->worker && a->fp->pid == b->fp->pid && begins_alike(a->fp, b->fp);
}

/* Of several forms of a window the one with most events is used. files are by_rank(). */
static void mark_copies(struct jobfile *files, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++) {
		for (size_t k = i; k-- > 0 && files[k].rank == files[i].rank;) {
			bool more = files[i].fp->event_cnt > files[k].fp->event_cnt;
			struct jobfile *rest = more ? &files[k] : &files[i];

			if (files[k].copy_of != NULL || !is_copy(&files[i], &files[k]))
				continue;
			rest->copy_of = more ? files[i].fp : files[k].fp;
			if (!more)
				break;
		}
	}
}

/* --- which sets --- */

static bool is_complete_run(const struct jobfiles *j, bool *common)
{
	*common = false;
	for (size_t i = 0; i < j->used_cnt; i++) {
		for (size_t k = i + 1; k < j->used_cnt; k++) {
			const struct jobfile *a = &j->files[i], *b = &j->files[k];

			if (a->set == b->set || a->worker != b->worker)
				continue;
			if (!jobfiles_same_process(a->fp, b->fp))
				return false;
			*common = true;
		}
	}
	return true;
}

/* Whether each set shares a worker with an earlier one. */
static bool is_chained(const struct jobfiles *j)
{
	for (uint32_t set = 1; set < j->set_cnt; set++) {
		bool linked = false;

		for (size_t i = 0; i < j->used_cnt && !linked; i++) {
			for (size_t k = 0; k < i && j->files[i].set == set && !linked; k++)
				linked = j->files[k].set < set &&
					 j->files[k].worker == j->files[i].worker;
		}
		if (!linked)
			return false;
	}
	return true;
}

/* The window of most workers; of several the latest: warm-up is over. */
static uint32_t choose_window(const struct jobfiles *j)
{
	uint32_t best = 0;
	size_t most = 0;

	for (uint32_t set = 0; set < j->set_cnt; set++) {
		size_t cnt = 0;

		for (size_t i = 0; i < j->used_cnt; i++)
			cnt += j->files[i].set == set;
		if (cnt >= most) {
			most = cnt;
			best = set;
		}
	}
	return best;
}

static bool differ_in_world(const struct jobfiles *j)
{
	for (size_t i = 1; i < j->used_cnt; i++) {
		if (jobfiles_other_world(&j->files[0], &j->files[i]))
			return true;
	}
	return false;
}

static enum jobfiles_kind kind_of(const struct jobfiles *j, bool by_turn)
{
	bool common;

	if (j->set_cnt < 2)
		return JOBFILES_ONE;
	if (by_turn || differ_in_world(j) || !is_complete_run(j, &common) || !common ||
	    !is_chained(j))
		return JOBFILES_MIXED;
	return JOBFILES_WINDOWS;
}

static int by_set(const void *a, const void *b)
{
	const struct jobfile *x = a, *y = b;

	if ((x->copy_of != NULL) != (y->copy_of != NULL))
		return x->copy_of != NULL ? 1 : -1;
	if (x->set != y->set)
		return x->set < y->set ? -1 : 1;
	return by_rank(a, b);
}

int jobfiles_find(struct fingerprint *const *fps, size_t cnt, struct jobfiles *ret)
{
	struct jobfiles j = { .files = calloc(cnt + 1, sizeof(*j.files)), .cnt = cnt };
	bool by_turn = false;
	int error = j.files != NULL ? 0 : -ENOMEM;

	for (size_t i = 0; i < cnt && error == 0; i++)
		j.files[i] = (struct jobfile){ .fp = fps[i], .rank = jobfiles_rank(fps[i]) };
	if (error == 0) {
		qsort(j.files, cnt, sizeof(*j.files), by_rank);
		j.worker_cnt = number_workers(j.files, cnt);
		mark_copies(j.files, cnt);
		qsort(j.files, cnt, sizeof(*j.files), by_set);
		while (j.used_cnt < cnt && j.files[j.used_cnt].copy_of == NULL)
			j.used_cnt++;
		error = jobfiles_divide(&j, &by_turn);
	}
	if (error < 0) {
		jobfiles_done(&j);
		return error;
	}
	qsort(j.files, cnt, sizeof(*j.files), by_set);
	j.kind = kind_of(&j, by_turn);
	j.chosen = choose_window(&j);
	*ret = j;
	return 0;
}
