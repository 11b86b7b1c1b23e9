/* SPDX-License-Identifier: Apache-2.0 */
#include "localize/peers.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/*
 * What each worker computes: betas by the name of the function. Its callers are left
 * out: where stacks are sampled, one operator appears below several of them.
 */
struct work {
	size_t role_cnt, worker_cnt;
	double *beta; /* [worker * role_cnt + role] */
};

static const char *name_of(const struct job *job, const struct job_function *f)
{
	return f->frame != FRAME_NONE ? job->frames.data[f->frame].name : "";
}

/* Roles of the computing functions, one for each name. Returns their number. */
static size_t find_roles(const struct job *job, size_t *role_of)
{
	size_t cnt = 0;

	for (size_t i = 0; i < job->functions.cnt; i++) {
		size_t same = 0;

		if (job->functions.data[i].class != CLASS_COMPUTE)
			continue;
		while (same < i && (job->functions.data[same].class != CLASS_COMPUTE ||
				    strcmp(name_of(job, &job->functions.data[same]),
					   name_of(job, &job->functions.data[i])) != 0))
			same++;
		role_of[i] = same < i ? role_of[same] : cnt++;
	}
	return cnt;
}

static int measure_work(const struct job *job, struct work *ret)
{
	_cleanup_free_ size_t *role_of = calloc(job->functions.cnt + 1, sizeof(*role_of));

	if (role_of == NULL)
		return -ENOMEM;
	ret->role_cnt = find_roles(job, role_of);
	ret->worker_cnt = job->worker_cnt;
	ret->beta = calloc(ret->role_cnt * ret->worker_cnt + 1, sizeof(*ret->beta));
	if (ret->beta == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < job->functions.cnt; i++) {
		const struct job_function *f = &job->functions.data[i];

		/* Host functions come and go with faults; what is computed is the role. */
		if (f->class != CLASS_COMPUTE)
			continue;
		for (size_t w = 0; w < job->worker_cnt; w++) {
			if (f->of[w] != NULL)
				ret->beta[w * ret->role_cnt + role_of[i]] += f->of[w]->beta_frac;
		}
	}
	return 0;
}

static bool alike(const struct work *work, size_t a, size_t b)
{
	const double *betas_a = &work->beta[a * work->role_cnt];
	const double *betas_b = &work->beta[b * work->role_cnt];
	double both = 0, either = 0;

	for (size_t role = 0; role < work->role_cnt; role++) {
		double weight = fmax(betas_a[role], betas_b[role]);

		either += weight;
		if (betas_a[role] > 0 && betas_b[role] > 0)
			both += weight;
	}
	return peers_alike(both, either);
}

int peers_find(struct job *job)
{
	_cleanup_free_ size_t *leaders = calloc(job->worker_cnt + 1, sizeof(*leaders));

	struct work work = { 0 };

	if (leaders == NULL || measure_work(job, &work) < 0)
		return -ENOMEM;
	job->group_cnt = 0;
	for (size_t w = 0; w < job->worker_cnt; w++) {
		uint32_t group = 0;

		while (group < job->group_cnt && !alike(&work, leaders[group], w))
			group++;
		if (group == job->group_cnt)
			leaders[job->group_cnt++] = w;
		job->workers[w].group = group;
	}
	free(work.beta);
	return 0;
}
