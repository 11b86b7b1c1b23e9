/* SPDX-License-Identifier: Apache-2.0 */
#include "localize/peers.h"

#include <errno.h>
#include <math.h>

static double beta_of(const struct job_function *f, size_t w)
{
	return f->of[w] != NULL ? f->of[w]->beta_frac : 0;
}

static double alike(const struct job *job, size_t a, size_t b)
{
	double both = 0, either = 0;

	vec_foreach(f, &job->functions) {
		double weight = fmax(beta_of(f, a), beta_of(f, b));

		/* Host functions come and go with faults; what is computed is the role. */
		if (f->class != CLASS_COMPUTE)
			continue;
		either += weight;
		if (f->of[a] != NULL && f->of[b] != NULL)
			both += weight;
	}
	return either > 0 ? both / either : 1;
}

int peers_find(struct job *job)
{
	_cleanup_free_ size_t *leaders = calloc(job->worker_cnt + 1, sizeof(*leaders));

	if (leaders == NULL)
		return -ENOMEM;
	job->group_cnt = 0;
	for (size_t w = 0; w < job->worker_cnt; w++) {
		uint32_t group = 0;

		while (group < job->group_cnt && alike(job, leaders[group], w) < PEERS_ALIKE)
			group++;
		if (group == job->group_cnt)
			leaders[job->group_cnt++] = w;
		job->workers[w].group = group;
	}
	return 0;
}
