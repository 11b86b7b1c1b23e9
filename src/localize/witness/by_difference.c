/* SPDX-License-Identifier: Apache-2.0 */
#include "base/stats.h"
#include "localize/late/randompauses.h"
#include "localize/witness/fabric.h"
#include "model/thresholds.h"

#include <errno.h>
#include <math.h>
#include <string.h>

/* One peer group's points in one function. */
struct comparison {
	const struct job *job;
	const struct job_function *f;
	uint32_t *workers; /* of the group */
	struct differ_point *points;
	double *delta, *scratch;
	size_t cnt;
	double threshold;
};

static struct differ_point point_of(const struct fp_function *f)
{
	if (f == NULL)
		return (struct differ_point){ 0, (double)NAN, (double)NAN };
	return (struct differ_point){ f->beta_frac, f->mu_frac, f->sigma_frac };
}

static int comparison_init(struct comparison *c, const struct job *job, struct arena *arena)
{
	c->job = job;
	c->workers = arena_calloc(arena, job->worker_cnt + 1, sizeof(*c->workers));
	c->points = arena_calloc(arena, job->worker_cnt + 1, sizeof(*c->points));
	c->delta = arena_calloc(arena, job->worker_cnt + 1, sizeof(*c->delta));
	c->scratch = arena_calloc(arena, job->worker_cnt + 1, sizeof(*c->scratch));
	return c->workers == NULL || c->points == NULL || c->delta == NULL || c->scratch == NULL
		       ? -ENOMEM
		       : 0;
}

/* Compares the members of a group. */
static int compare(struct comparison *c, const struct job_function *f, uint32_t group,
		   const struct differ_options *options)
{
	c->f = f;
	c->cnt = 0;
	for (uint32_t w = 0; w < c->job->worker_cnt; w++) {
		if (c->job->workers[w].group != group)
			continue;
		c->workers[c->cnt] = w;
		c->points[c->cnt++] = point_of(f->of[w]);
	}
	if (c->cnt < DIFFER_MIN_PEERS)
		return 0;
	return differ_find(c->points, c->cnt, options, c->delta, &c->threshold);
}

static double median_beta(struct comparison *c)
{
	for (size_t i = 0; i < c->cnt; i++)
		c->scratch[i] = c->points[i].beta;
	return stats_median(c->scratch, c->cnt);
}

/* Marks the abnormal (eq. 11); returns how many. */
static size_t mark_abnormal(const struct comparison *c, bool *ret_mark)
{
	size_t cnt = 0;

	if (c->cnt < DIFFER_MIN_PEERS)
		return 0;
	for (size_t i = 0; i < c->cnt; i++) {
		bool odd = c->points[i].beta > DIFFER_MIN_BETA && c->delta[i] > c->threshold;

		ret_mark[c->workers[i]] = odd;
		cnt += odd;
	}
	return cnt;
}

static size_t keep_marked(const struct job *job, bool *mark, double limit_ns, double normal_beta,
			  const struct job_function *f)
{
	size_t cnt = 0;

	for (size_t w = 0; w < job->worker_cnt; w++) {
		double excess;

		if (!mark[w])
			continue;
		excess = f->of[w] != NULL ? (f->of[w]->beta_frac - normal_beta) *
						    (double)job->workers[w].fp->window_ns /
						    job->workers[w].iterations
					  : 0;
		mark[w] = excess >= limit_ns;
		cnt += mark[w];
	}
	return cnt;
}

static int push_accusation(const struct comparison *c, const bool *mark, double normal_beta,
			   struct arena *arena, accusations *out)
{
	uint32_t *workers = arena_calloc(arena, c->cnt + 1, sizeof(*workers));
	struct accusation a = {
		.witness = WITNESS_DIFFERENCE,
		.workers = workers,
		.frame = c->f->frame,
		.function = (uint32_t)(c->f - c->job->functions.data),
		.class = c->f->class,
		.threshold = c->threshold,
	};
	double beta = 0;

	if (workers == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < c->cnt; i++) {
		uint32_t w = c->workers[i];

		if (!mark[w])
			continue;
		workers[a.worker_cnt++] = w;
		beta = fmax(beta, c->points[i].beta);
		a.differential_distance = fmax(a.differential_distance, c->delta[i]);
	}
	a.own_ns = (beta - normal_beta) * c->job->iteration_ns;
	a.gain_ns = fmax(a.own_ns, 0);
	return vec_push(out, a);
}

/* Blame covers these workers: a longer function that made no worker wait cost nothing. */
static bool blame_covers(const struct job *job, const struct blame *blame, uint32_t group)
{
	size_t members = 0, matched = 0;

	for (size_t w = 0; w < job->worker_cnt; w++) {
		if (job->workers[w].group != group)
			continue;
		members++;
		matched += blame->workers[w].matched;
	}
	return matched * 2 > members;
}

/* Kernels of one stage of a pipeline, such as that of the loss, are no slower there. */
static bool is_stage_work(const struct comparison *c, const bool *mark)
{
	for (uint32_t w = 0; w < c->job->worker_cnt && c->f->class == CLASS_COMPUTE; w++) {
		if (mark[w] && fabric_sends_messages(c->job->workers[w].fp))
			return true;
	}
	return false;
}

/* Of few peers one is often the longest by a little, in one function or another. */
static double least_frac(const struct job *job, uint32_t group,
			 const struct accuse_options *options)
{
	size_t members = 0;

	for (size_t w = 0; w < job->worker_cnt; w++)
		members += job->workers[w].group == group;
	return members < CONFIDENCE_WORKERS ? fmax(options->min_gain_frac, DIFFER_FEW_FRAC)
					    : options->min_gain_frac;
}

static int accuse_work(struct comparison *c, const struct job_function *f, uint32_t group,
		       const struct accuse_options *options, struct arena *arena, accusations *out)
{
	bool *mark = arena_calloc(arena, c->job->worker_cnt + 1, sizeof(bool));
	double normal, limit = least_frac(c->job, group, options) * c->job->iteration_ns;
	size_t cnt;
	int error;

	if (mark == NULL)
		return -ENOMEM;
	error = compare(c, f, group, &options->differ);
	if (error < 0 || mark_abnormal(c, mark) == 0)
		return error;
	normal = median_beta(c);
	if (normal <= 0 && is_stage_work(c, mark))
		return 0;
	cnt = keep_marked(c->job, mark, limit, normal, f);
	return cnt > 0 ? push_accusation(c, mark, normal, arena, out) : 0;
}

int accuse_by_difference(const struct job *job, const struct blame *blame,
			 const struct accuse_options *options, struct arena *arena,
			 accusations *out)
{
	struct comparison c;
	size_t first = out->cnt;
	int error = comparison_init(&c, job, arena);

	for (uint32_t group = 0; group < job->group_cnt && error == 0; group++) {
		bool covered = blame_covers(job, blame, group);

		for (size_t f = 0; f < job->functions.cnt && error == 0; f++) {
			const struct job_function *fn = &job->functions.data[f];

			if (!covered && fn->frame != FRAME_NONE && fn->class != CLASS_COMM)
				error = accuse_work(&c, fn, group, options, arena, out);
		}
	}
	if (error == 0)
		error = accuse_by_link(job, blame, options, arena, out);
	return error == 0 ? pauses_join(out, first, job->worker_cnt, arena) : error;
}
