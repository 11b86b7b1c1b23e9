/* SPDX-License-Identifier: Apache-2.0 */
#include "base/stats.h"
#include "localize/excess.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define ALL_FRAC 0.8 /* so many of the workers alike: it is the job, not a worker */
#define OFTEN 0.5    /* of its time: what lies in a few long iterations is an occasion */
#define RARE_MIN 3   /* iterations that can show a long one among them */

static bool rule_applies(const struct job *job, const struct blame *blame,
			 const struct accuse_options *options, const struct job_function *f)
{
	if (f->class == CLASS_HOST)
		return excess_rule_applies(job->frames.data, f->frame);
	/* One member alone cannot tell waiting from transfer. */
	return f->class == CLASS_COMM && blame->matched_cnt > 0 && options->all_present;
}

/* Part of worker w's window in which it waited for somebody late: blame's business. */
static double waited_frac(const struct job *job, const struct blame *blame, uint32_t w)
{
	double ns = 0;

	vec_foreach(wait, &blame->waits)
		ns += wait->to == w ? wait->ns : 0;
	return ns / (double)job->workers[w].fp->window_ns;
}

static double share_of(const struct job *job, uint32_t frame, size_t w)
{
	uint32_t idx = job_function_find(job, frame, CLASS_HOST);
	const struct fp_function *f = idx != FRAME_NONE ? job->functions.data[idx].of[w] : NULL;

	return f != NULL ? (double)f->share_ns / (double)job->workers[w].fp->window_ns : 0;
}

/* What a function does itself: its own time and that of the built-ins it calls. */
static double own_beta(const struct job *job, uint32_t frame, size_t w)
{
	double sum = share_of(job, frame, w);

	for (uint32_t i = frame + 1;
	     i < job->frames.cnt && !excess_is_builtin(&job->frames.data[frame]); i++) {
		if (job->frames.data[i].parent == frame && excess_is_builtin(&job->frames.data[i]))
			sum += share_of(job, i, w);
	}
	return sum;
}

/* Data loading counts with all that is below it on the host. */
static double loader_beta(const struct job *job, uint32_t frame, size_t w)
{
	return job_subtree_ns(job, frame, w, 1u << CLASS_HOST) * job->workers[w].iterations /
	       (double)job->workers[w].fp->window_ns;
}

static double place_beta(const struct job *job, uint32_t frame, size_t w)
{
	return job->frames.data[frame].kind == KIND_ANNOTATION ? loader_beta(job, frame, w)
							       : own_beta(job, frame, w);
}

/* A built-in belongs to the Python function that calls it when that one does more such. */
static uint32_t place_of(const struct job *job, const struct job_function *f, size_t w)
{
	uint32_t loader = excess_loader(job->frames.data, f->frame);
	uint32_t caller = excess_caller(job->frames.data, f->frame);

	if (loader != FRAME_NONE)
		return loader;
	if (f->class != CLASS_HOST || caller == FRAME_NONE)
		return f->frame;
	return own_beta(job, caller, w) > EXCESS_CALLER_GROWS * own_beta(job, f->frame, w)
		       ? caller
		       : f->frame;
}

static size_t worst_worker(const struct job_function *f, size_t worker_cnt)
{
	size_t worst = 0;

	for (size_t w = 1; w < worker_cnt; w++) {
		double a = f->of[w] != NULL ? f->of[w]->beta_frac : 0;
		double b = f->of[worst] != NULL ? f->of[worst]->beta_frac : 0;

		if (a > b)
			worst = w;
	}
	return worst;
}

static int measure(const struct job *job, const struct blame *blame,
		   const struct accuse_options *options, uint32_t function, struct arena *arena,
		   struct excess *ret)
{
	const struct job_function *f = &job->functions.data[function];
	struct excess e = { .function = function, .class = f->class };

	e.of = arena_calloc(arena, job->worker_cnt + 1, sizeof(double));
	if (e.of == NULL)
		return -ENOMEM;
	e.frame = place_of(job, f, worst_worker(f, job->worker_cnt));
	for (uint32_t w = 0; w < job->worker_cnt; w++) {
		struct fp_function probe = { .class = f->class,
					     .mu_frac = (double)NAN,
					     .sigma_frac = (double)NAN };
		double d;

		if (f->class == CLASS_COMM)
			probe.beta_frac = f->of[w] != NULL
						  ? f->of[w]->beta_frac - waited_frac(job, blame, w)
						  : 0;
		else
			probe.beta_frac = place_beta(job, e.frame, w);
		e.of[w] = probe.beta_frac;
		d = expect_distance(&options->expect, &probe);
		if (probe.beta_frac > EXCESS_MIN_BETA && d > 0)
			e.cnt++;
		e.distance = fmax(e.distance, d);
	}
	*ret = e;
	return 0;
}

static int compare_ns(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* How much longer the mean iteration of a worker is than its median one, ns. */
static int rare_ns(const struct fingerprint *fp, struct arena *arena, double *ret)
{
	int64_t *ns = arena_calloc(arena, fp->iteration_cnt + 1, sizeof(*ns));
	double sum = 0;

	if (ns == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < fp->iteration_cnt; i++) {
		ns[i] = fp->iterations[i].dur_ns;
		sum += (double)ns[i];
	}
	qsort(ns, fp->iteration_cnt, sizeof(*ns), compare_ns);
	*ret = fp->iteration_cnt < RARE_MIN
		       ? 0
		       : sum / (double)fp->iteration_cnt - (double)ns[fp->iteration_cnt / 2];
	return 0;
}

/*
 * What comes once in a window, everywhere, is a checkpoint or an evaluation: how often it
 * comes, and so what it costs an iteration, one window can't tell. It shows in iterations
 * of which few are long by as much as the accused place takes in all. Collections are no
 * such occasion: they come with what the job allocates.
 */
static int is_occasional(const struct job *job, double own_ns, struct arena *arena, bool *ret)
{
	double *rare = arena_calloc(arena, job->worker_cnt + 1, sizeof(*rare));
	int error = rare == NULL ? -ENOMEM : 0;

	for (size_t w = 0; w < job->worker_cnt && error == 0; w++)
		error = rare_ns(job->workers[w].fp, arena, &rare[w]);
	if (error == 0)
		*ret = stats_median(rare, job->worker_cnt) > OFTEN * own_ns;
	return error;
}

/* Takes the last accusation back when it is of an occasion. */
static int drop_occasion(const struct job *job, struct arena *arena, accusations *out)
{
	const struct accusation *last = &out->data[out->cnt - 1];
	bool occasional = false;
	int error;

	if (last->worker_cnt < job->worker_cnt || job_frame_collects(job, last->frame))
		return 0;
	error = is_occasional(job, last->own_ns, arena, &occasional);
	out->cnt -= occasional;
	return error;
}

int accuse_by_expectation(const struct job *job, const struct blame *blame,
			  const struct accuse_options *options, struct arena *arena,
			  accusations *out)
{
	double limit = fmax(options->min_gain_frac, options->min_common_frac);
	double all = fmax(1, ALL_FRAC * (double)job->worker_cnt);

	for (uint32_t i = 0; i < job->functions.cnt; i++) {
		const struct job_function *f = &job->functions.data[i];
		size_t before = out->cnt;
		struct excess e;
		int error;

		if (f->frame == FRAME_NONE || !rule_applies(job, blame, options, f))
			continue;
		error = measure(job, blame, options, i, arena, &e);
		if (error < 0)
			return error;
		if (e.distance < limit || excess_is_accused(job->frames.data, e.frame, out))
			continue;
		/* On some only: with collectives, blame has decided whether it cost anything. */
		if ((double)e.cnt < all && (blame->matched_cnt > 0 || f->class == CLASS_COMM))
			continue;
		error = excess_accuse(&e, job->worker_cnt, job->iteration_ns, options, arena, out);
		if (error == 0 && out->cnt > before)
			error = drop_occasion(job, arena, out);
		if (error < 0)
			return error;
	}
	return 0;
}
