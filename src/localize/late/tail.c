/* SPDX-License-Identifier: Apache-2.0 */
#include "localize/late/tail.h"

#include "base/stats.h"
#include "model/thresholds.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

struct longest {
	uint32_t worker;
	double ns; /* longer than the typical peer, over the window */
};

struct look {
	const struct job *job;
	uint32_t *by_group; /* workers with collectives, by peer group */
	size_t cnt;
	double *rest, *host, *scratch; /* by worker */
};

/* From the end of a worker's last collective to the end of its window. */
static double rest_ns(const struct fingerprint *fp)
{
	int64_t last = 0;

	for (size_t i = 0; i < fp->collective_cnt; i++)
		last = MAX(last, fp->collectives[i].start_ns + fp->collectives[i].dur_ns);
	return (double)(fp->window_ns - last);
}

/* Time of the window in which the device had no work. */
static double host_ns(const struct fingerprint *fp)
{
	return (double)(fp->class_ns[CLASS_HOST] + fp->class_ns[CLASS_IDLE]);
}

static int group_cmp(const void *a, const void *b, void *arg)
{
	const struct job_worker *workers = ((const struct look *)arg)->job->workers;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	if (workers[x].group != workers[y].group)
		return workers[x].group < workers[y].group ? -1 : 1;
	return (x > y) - (x < y);
}

static int look_init(struct look *look, const struct job *job)
{
	size_t cnt = job->worker_cnt + 1;

	look->job = job;
	look->by_group = calloc(cnt, sizeof(*look->by_group));
	look->rest = calloc(cnt, sizeof(*look->rest));
	look->host = calloc(cnt, sizeof(*look->host));
	look->scratch = calloc(cnt, sizeof(*look->scratch));
	if (look->by_group == NULL || look->rest == NULL || look->host == NULL ||
	    look->scratch == NULL)
		return -ENOMEM;
	for (uint32_t w = 0; w < job->worker_cnt; w++) {
		if (job->workers[w].fp->collective_cnt == 0)
			continue;
		look->by_group[look->cnt++] = w;
		look->rest[w] = rest_ns(job->workers[w].fp);
		look->host[w] = host_ns(job->workers[w].fp);
	}
	qsort_r(look->by_group, look->cnt, sizeof(*look->by_group), group_cmp, look);
	return 0;
}

static void look_done(struct look *look)
{
	free(look->by_group);
	free(look->rest);
	free(look->host);
	free(look->scratch);
}

/* Of the workers by_group[first] to by_group[end - 1]. */
static struct stats_others others_of(struct look *look, size_t first, size_t end, const double *of)
{
	for (size_t i = first; i < end; i++)
		look->scratch[i - first] = of[look->by_group[i]];
	return stats_others_of(look->scratch, end - first);
}

static void judge_group(struct look *look, size_t first, size_t end, struct longest *ret)
{
	struct stats_others rests = others_of(look, first, end, look->rest);
	struct stats_others hosts = others_of(look, first, end, look->host);

	for (size_t i = first; i < end && end - first > 1; i++) {
		uint32_t w = look->by_group[i];
		double rest = look->rest[w] - stats_others_median(&rests, look->rest[w]);
		double host = look->host[w] - stats_others_median(&hosts, look->host[w]);

		if (fmin(rest, host) > ret->ns)
			*ret = (struct longest){ w, fmin(rest, host) };
	}
}

/* Where the worker is longer than its peers by most while its device has no work. NULL: not known. */
static const char *main_place(struct look *look, uint32_t worker)
{
	const struct job *job = look->job;
	const char *ret = NULL;
	double most = 0;

	for (uint32_t f = 0; f < job->functions.cnt; f++) {
		const struct job_function *function = &job->functions.data[f];
		size_t cnt = 0;
		double ns;

		if (function->frame == FRAME_NONE || function->of[worker] == NULL ||
		    (function->class != CLASS_HOST && function->class != CLASS_IDLE))
			continue;
		for (uint32_t w = 0; w < job->worker_cnt; w++) {
			if (w != worker && job->workers[w].group == job->workers[worker].group)
				look->scratch[cnt++] = function->of[w] != NULL
							       ? (double)function->of[w]->share_ns
							       : 0;
		}
		ns = (double)function->of[worker]->share_ns - stats_middle(look->scratch, cnt);
		if (ns > most) {
			most = ns;
			ret = job->frames.data[function->frame].name;
		}
	}
	return ret;
}

static void judge(struct look *look, struct conclude_late *ret)
{
	const struct job *job = look->job;
	struct longest longest = { 0 };
	double window_ns;

	for (size_t first = 0, end; first < look->cnt; first = end) {
		uint32_t group = job->workers[look->by_group[first]].group;

		for (end = first; end < look->cnt; end++) {
			if (job->workers[look->by_group[end]].group != group)
				break;
		}
		judge_group(look, first, end, &longest);
	}
	window_ns = (double)job->workers[longest.worker].fp->window_ns;
	if (longest.ns > 0 && 100 * longest.ns >= CHANCE_PCT * window_ns)
		*ret = (struct conclude_late){ .rank = job->workers[longest.worker].fp->rank,
					       .ms = longest.ns / 1e6,
					       .pct = 100 * longest.ns / window_ns,
					       .name = main_place(look, longest.worker) };
}

int tail_find(const struct job *job, struct conclude_late *ret)
{
	struct look look = { 0 };
	int error = look_init(&look, job);

	*ret = (struct conclude_late){ .rank = -1 };
	if (error == 0 && look.cnt > 0)
		judge(&look, ret);
	look_done(&look);
	return error;
}

/* Whether two workers have the same iterations: one may have a checkpoint that the other has not. */
static bool are_same_iterations(const struct fingerprint *a, const struct fingerprint *b)
{
	return a->iterations_known && b->iterations_known && a->iteration_cnt > 0 &&
	       a->iteration_cnt == b->iteration_cnt &&
	       a->iterations[0].number == b->iterations[0].number;
}

int tail_find_pace(const struct job *job, const struct blame *blame, struct conclude_late *ret)
{
	_cleanup_free_ double *windows = calloc(job->worker_cnt + 1, sizeof(*windows));
	size_t cnt = 0, longest = 0;
	double typical, ns;

	*ret = (struct conclude_late){ .rank = -1 };
	if (windows == NULL)
		return -ENOMEM;
	for (size_t w = 1; w < job->worker_cnt; w++) {
		if (job->workers[w].fp->window_ns > job->workers[longest].fp->window_ns)
			longest = w;
	}
	for (size_t w = 0; w < job->worker_cnt; w++) {
		if (w != longest && blame->workers[w].matched &&
		    are_same_iterations(job->workers[w].fp, job->workers[longest].fp))
			windows[cnt++] = (double)job->workers[w].fp->window_ns;
	}
	/* Of most of the others. */
	if (2 * cnt + 1 < job->worker_cnt || cnt == 0 || !blame->workers[longest].matched)
		return 0;
	typical = stats_median(windows, cnt);
	ns = (double)job->workers[longest].fp->window_ns - typical;
	if (100 * ns >= CHANCE_PCT * typical)
		*ret = (struct conclude_late){ .rank = job->workers[longest].fp->rank,
					       .ms = ns / job->workers[longest].iterations / 1e6,
					       .pct = 100 * ns / typical };
	return 0;
}
