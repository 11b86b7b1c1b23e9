/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stages of a pipeline that are cut unevenly: one runs the same kernels as the others, as fast, but
 * more of them. The pipeline moves at the pace of that stage. Its devices are not slow: a kernel
 * takes as long there as elsewhere. With m microbatches and p stages, where c is the compute time
 * of a stage for one microbatch, an iteration takes m max(c) + sum(c) - max(c); with an even cut
 * (m + p - 1) mean(c). The difference is (m - 1) (max(c) - mean(c)). O(functions * workers).
 */
#include "base/stats.h"
#include "localize/groups/groups.h"
#include "localize/late/work.h"
#include "localize/witness/fabric.h"
#include "model/thresholds.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define STAGES_MAX 512u /* workers of more kinds are no pipeline */

struct stages {
	const struct job *job;
	const struct accuse_options *options;
	struct arena *arena;
	uint32_t *stage_of; /* by worker: the first worker of its stage */
	double *compute_ns; /* by that worker: of the stage, per iteration */
	double *scratch;
	uint32_t firsts[STAGES_MAX]; /* of each stage */
	size_t cnt;		     /* of different work */
	double mean_ns;		     /* over the workers */
	uint32_t heavy;		     /* the stage with most */
};

/* Messages of a worker per iteration, of each direction one for each microbatch. */
static double messages_of(const struct job *job, size_t w)
{
	double cnt = 0;

	if (!fabric_sends_messages(job->workers[w].fp))
		return 0; /* the same kernels exchange among all ranks */
	vec_foreach(f, &job->functions) {
		if (f->of[w] != NULL && fabric_may_send(job, f))
			cnt += (double)f->of[w]->executions / job->workers[w].iterations;
	}
	return cnt;
}

/*
 * The first and the last stage have one neighbor: one message forward and one back. A window's edges cut
 * some of them.
 */
static double microbatches_of(const struct stages *s)
{
	double fewest = (double)INFINITY;

	for (size_t w = 0; w < s->job->worker_cnt; w++)
		fewest = fmin(fewest, messages_of(s->job, w));
	return isinf(fewest) ? 0 : round(fewest / 2);
}

/*
 * Sorts workers into those with the same work. Stages with as many layers are one of them, so the
 * mean is over the workers: all stages have as many. False: no pipeline.
 */
static bool find_stages(struct stages *s)
{
	for (uint32_t w = 0; w < s->job->worker_cnt; w++) {
		size_t i = 0;

		if (s->job->workers[w].group != 0)
			return false;
		while (i < s->cnt && !work_is_same(s->job, s->firsts[i], w))
			i++;
		if (i == STAGES_MAX)
			return false;
		if (i == s->cnt)
			s->firsts[s->cnt++] = w;
		s->stage_of[w] = s->firsts[i];
	}
	return s->cnt > 1;
}

static void measure_stages(struct stages *s)
{
	for (size_t i = 0; i < s->cnt; i++) {
		uint32_t first = s->firsts[i];
		size_t cnt = 0;

		for (uint32_t w = 0; w < s->job->worker_cnt; w++) {
			if (s->stage_of[w] == first)
				s->scratch[cnt++] = work_compute_ns(s->job, w);
		}
		s->compute_ns[first] = stats_median(s->scratch, cnt);
		s->mean_ns += s->compute_ns[first] * (double)cnt / (double)s->job->worker_cnt;
		if (s->compute_ns[first] > s->compute_ns[s->heavy])
			s->heavy = first;
	}
}

/* A worker of another stage, the one nearest to the mean. */
static uint32_t find_typical(const struct stages *s)
{
	uint32_t found = s->heavy;
	double nearest = (double)INFINITY;

	for (uint32_t w = 0; w < s->job->worker_cnt; w++) {
		double off = fabs(s->compute_ns[w] - s->mean_ns);

		if (s->stage_of[w] != w || w == s->heavy || off >= nearest)
			continue;
		nearest = off;
		found = w;
	}
	return found;
}

static double per_execution(const struct job_function *f, size_t w)
{
	const struct fp_function *own = f->of[w];

	return own != NULL && own->executions > 0 ? (double)own->total_ns / (double)own->executions
						  : 0;
}

/* How much longer the kernels that both workers run take on the first; NAN: they share none. */
static double slower_by(const struct stages *s, uint32_t w, uint32_t other)
{
	double mine = 0, others = 0;

	vec_foreach(f, &s->job->functions) {
		double a = per_execution(f, w), b = per_execution(f, other);

		if (f->class != CLASS_COMPUTE || a <= 0 || b <= 0)
			continue;
		mine += a * (double)f->of[w]->executions;
		others += b * (double)f->of[w]->executions;
	}
	return others > 0 ? mine / others : (double)NAN;
}

/* How many times as often the first worker runs the kernels that both run; NAN: they share none. */
static double as_often(const struct stages *s, uint32_t w, uint32_t other)
{
	double mine = 0, others = 0;

	vec_foreach(f, &s->job->functions) {
		double each = per_execution(f, other);

		if (f->class != CLASS_COMPUTE || each <= 0 || per_execution(f, w) <= 0)
			continue;
		mine += each * (double)f->of[w]->executions / s->job->workers[w].iterations;
		others +=
			each * (double)f->of[other]->executions / s->job->workers[other].iterations;
	}
	return others > 0 ? mine / others : (double)NAN;
}

/*
 * Layers are more of the same kernels; a loss, or an embedding, are other kernels, and by design. Where most
 * workers have more, one stage has less: the window's edge may cut its work.
 */
static double least_gain(const struct stages *s, uint32_t typical)
{
	double frac = s->options->min_common_frac;
	size_t heavy = 0;

	for (size_t w = 0; w < s->job->worker_cnt; w++)
		heavy += s->stage_of[w] == s->heavy;
	if (2 * heavy <= s->job->worker_cnt && as_often(s, s->heavy, typical) >= STAGES_MORE)
		frac = STAGES_GAIN;
	return fmax(s->options->min_gain_frac, frac) * s->job->iteration_ns;
}

/* The computing function of which the heavy stage has most more, in time. */
static uint32_t main_function(const struct stages *s, uint32_t typical)
{
	uint32_t found = FRAME_NONE;
	double most = 0;

	for (uint32_t i = 0; i < s->job->functions.cnt; i++) {
		const struct job_function *f = &s->job->functions.data[i];
		double more = job_time_ns(s->job, f, s->heavy) - job_time_ns(s->job, f, typical);

		if (f->class == CLASS_COMPUTE && f->frame != FRAME_NONE && more > most) {
			most = more;
			found = i;
		}
	}
	return found;
}

/* An accusation of slow devices in that stage is refuted where their kernels take as long. */
static void drop_slower(const struct stages *s, uint32_t typical, accusations *list)
{
	size_t kept = 0;

	for (size_t i = 0; i < list->cnt; i++) {
		const struct accusation *a = &list->data[i];
		bool refuted = a->class == CLASS_COMPUTE && a->worker_cnt > 0;

		for (size_t k = 0; k < a->worker_cnt && refuted; k++)
			refuted = s->stage_of[a->workers[k]] == s->heavy &&
				  slower_by(s, a->workers[k], typical) < STAGES_SLOWER;
		if (!refuted)
			list->data[kept++] = *a;
	}
	list->cnt = kept;
}

static int accuse(struct stages *s, uint32_t typical, double gain_ns, accusations *out)
{
	uint32_t *workers = arena_calloc(s->arena, s->job->worker_cnt + 1, sizeof(*workers));
	struct accusation a = {
		.witness = WITNESS_DIFFERENCE,
		.workers = workers,
		.function = main_function(s, typical),
		.class = CLASS_COMPUTE,
		.spread = true,
		.own_ns = s->compute_ns[s->heavy] - s->mean_ns,
		.gain_ns = gain_ns,
		.groups = { .uneven_stages = true,
			    .stage_ns = s->compute_ns[s->heavy],
			    .stage_mean_ns = s->mean_ns },
	};

	if (workers == NULL)
		return -ENOMEM;
	if (a.function == FRAME_NONE)
		return 0;
	a.frame = s->job->functions.data[a.function].frame;
	for (uint32_t w = 0; w < s->job->worker_cnt; w++) {
		if (s->stage_of[w] == s->heavy)
			workers[a.worker_cnt++] = w;
	}
	drop_slower(s, typical, out);
	return vec_push(out, a);
}

int accuse_by_stages(const struct job *job, const struct accuse_options *options,
		     struct arena *arena, accusations *out)
{
	struct stages s = {
		.job = job,
		.options = options,
		.arena = arena,
		.stage_of = arena_calloc(arena, job->worker_cnt + 1, sizeof(*s.stage_of)),
		.compute_ns = arena_calloc(arena, job->worker_cnt + 1, sizeof(*s.compute_ns)),
		.scratch = arena_calloc(arena, job->worker_cnt + 1, sizeof(*s.scratch)),
	};
	double microbatches, gain_ns;
	uint32_t typical;

	if (s.stage_of == NULL || s.compute_ns == NULL || s.scratch == NULL)
		return -ENOMEM;
	if (job->worker_cnt < 2)
		return 0;
	microbatches = microbatches_of(&s); /* cheap, and less than 2 in most jobs */
	if (microbatches < 2 || !find_stages(&s))
		return 0;
	measure_stages(&s);
	typical = find_typical(&s);
	gain_ns = (1 - 1 / microbatches) * (s.compute_ns[s.heavy] - s.mean_ns);
	if (gain_ns < least_gain(&s, typical) || !(slower_by(&s, s.heavy, typical) < STAGES_SLOWER))
		return 0;
	return accuse(&s, typical, gain_ns, out);
}
