/* SPDX-License-Identifier: Apache-2.0 */
#include "localize/witness/companions.h"

#include "base/stats.h"
#include "localize/cause.h"
#include "model/thresholds.h"

#include <errno.h>
#include <math.h>
#include <string.h>

static double delay_of(const struct job *job, uint32_t w)
{
	double frac = job->workers[w].fp->host_stats.run_delay_frac;

	return frac > 0 ? frac : 0;
}

/* Sets ret[] by host: whether one of the accused runs there. A host without a name: false. */
static void mark_hosts(const struct job *job, const struct accusation *a, bool *ret)
{
	for (size_t i = 0; i < a->worker_cnt; i++) {
		const struct job_worker *worker = &job->workers[a->workers[i]];

		ret[worker->host] = worker->fp->host[0] != '\0';
	}
}

/* Delay from which on a worker of the marked hosts is a companion; 0: no other hosts. */
static double limit_of(const struct job *job, const struct accusation *a, const bool *marked,
		       double *scratch)
{
	double accused, usual;
	size_t cnt = 0;

	for (uint32_t w = 0; w < job->worker_cnt; w++) {
		if (!marked[job->workers[w].host])
			scratch[cnt++] = delay_of(job, w);
	}
	if (cnt == 0)
		return 0;
	usual = stats_median(scratch, cnt);
	for (size_t i = 0; i < a->worker_cnt; i++)
		scratch[i] = delay_of(job, a->workers[i]);
	accused = stats_median(scratch, a->worker_cnt);
	return fmax(fmax(COMPANION_ALIKE * accused, COMPANION_UNUSUAL * usual), COMPANION_FRAC_MIN);
}

/* What each worker would have to exceed to be a companion, and what it is measured in. */
struct measure {
	const double *of; /* by worker; NULL: unknown */
	double limit;
};

static bool fits(const struct measure *m, uint32_t w)
{
	return m->of != NULL && m->of[w] >= m->limit;
}

static int measure_delays(const struct job *job, const struct accusation *a, struct arena *arena,
			  double *scratch, struct measure *ret)
{
	double *of = arena_calloc(arena, job->worker_cnt + 1, sizeof(*of));
	_cleanup_free_ bool *marked = calloc(job->worker_cnt + 1, sizeof(*marked));

	if (of == NULL || marked == NULL)
		return -ENOMEM;
	mark_hosts(job, a, marked);
	for (uint32_t w = 0; w < job->worker_cnt; w++)
		of[w] = marked[job->workers[w].host] ? delay_of(job, w) : 0;
	ret->limit = limit_of(job, a, marked, scratch);
	ret->of = ret->limit > 0 ? of : NULL;
	return 0;
}

/*
 * What the worker's thread does on the host in the subtree of a frame, per iteration, also while its device
 * has work: the same pause is felt on one rank and hidden on another. Waits are left out.
 */
static double host_work_ns(const struct job *job, uint32_t frame, size_t w)
{
	double sum = 0;

	for (uint32_t i = 0; i < job->functions.cnt; i++) {
		const struct job_function *f = &job->functions.data[i];

		if (f->class == CLASS_HOST && f->of[w] != NULL && f->frame != FRAME_NONE &&
		    job_frame_below(job, f->frame, frame) && !job_waits_for_device(job, i))
			sum += (double)f->of[w]->thread_ns;
	}
	return sum / job->workers[w].iterations;
}

/* Time at the accused place beyond what the rest of the job takes there. */
static int measure_place(const struct job *job, const struct accusation *a, struct arena *arena,
			 double *scratch, struct measure *ret)
{
	const unsigned own = ~(1u << CLASS_COMM);
	double *of = arena_calloc(arena, job->worker_cnt + 1, sizeof(*of)), usual, excess;
	size_t cnt = 0;

	if (of == NULL)
		return -ENOMEM;
	for (uint32_t w = 0; w < job->worker_cnt; w++) {
		of[w] = job_subtree_ns(job, a->frame, w, own);
		if (a->class == CLASS_HOST)
			of[w] = fmax(of[w], host_work_ns(job, a->frame, w));
		if (!accusation_has(a, w))
			scratch[cnt++] = of[w];
	}
	usual = stats_median(scratch, cnt);
	for (size_t i = 0; i < a->worker_cnt; i++)
		scratch[i] = of[a->workers[i]];
	excess = stats_median(scratch, a->worker_cnt) - usual;
	ret->limit = usual + fmax(COMPANION_PLACE_ALIKE * excess, COMPANION_UNUSUAL * usual);
	ret->of =
		cnt > a->worker_cnt && excess > COMPANION_FRAC_MIN * job->iteration_ns ? of : NULL;
	return 0;
}

static int join(const struct job *job, const struct measure *m, struct arena *arena,
		struct accusation *a)
{
	uint32_t *workers = arena_calloc(arena, job->worker_cnt + 1, sizeof(*workers));
	size_t cnt = 0;

	if (workers == NULL)
		return -ENOMEM;
	for (uint32_t w = 0; w < job->worker_cnt; w++) {
		if (accusation_has(a, w) || fits(m, w))
			workers[cnt++] = w;
	}
	a->workers = workers;
	a->worker_cnt = cnt;
	return 0;
}

static int join_all(const struct job *job, struct arena *arena, double *scratch,
		    struct accusation *a)
{
	struct cause_facts facts;
	struct measure m = { 0 };
	int error = cause_measure(job, a, &facts);

	if (error == 0 && cause_find(job, a, &facts) == CAUSE_CPU_STARVED)
		error = measure_delays(job, a, arena, scratch, &m);
	else if (error == 0 && a->frame != FRAME_NONE && a->class != CLASS_COMM)
		error = measure_place(job, a, arena, scratch, &m);
	return error == 0 ? join(job, &m, arena, a) : error;
}

int companions_join(const struct job *job, struct arena *arena, accusations *list)
{
	double *scratch = arena_calloc(arena, job->worker_cnt + 1, sizeof(*scratch));

	if (scratch == NULL)
		return -ENOMEM;
	vec_foreach(a, list) {
		int error;

		if (a->witness != WITNESS_BLAME || a->worker_cnt == 0)
			continue;
		error = join_all(job, arena, scratch, a);
		if (error < 0)
			return error;
	}
	return 0;
}
