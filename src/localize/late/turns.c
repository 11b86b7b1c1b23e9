/* SPDX-License-Identifier: Apache-2.0 */
#include "localize/late/turns.h"

#include "model/thresholds.h"

/* Whether one of the shares is of the function and as long. */
static bool has_long(const struct job_worker *w, uint32_t first, uint32_t cnt, uint32_t function,
		     double least_ns)
{
	for (uint32_t i = first; i < first + cnt; i++) {
		const struct fp_share *s = &w->fp->shares[i];

		if (s->function != FRAME_NONE && w->function_of[s->function] == function &&
		    (double)s->ns >= least_ns)
			return true;
	}
	return false;
}

size_t turns_count(const struct job *job, uint32_t worker, uint32_t function, double least_ns,
		   uint32_t *by_iteration)
{
	const struct job_worker *w = &job->workers[worker];
	int64_t last = -1;
	size_t ret = 0;

	for (size_t i = 0; i < w->fp->collective_cnt; i++) {
		const struct fp_collective *c = &w->fp->collectives[i];
		int64_t at = job_iteration_at(w, c->start_ns);

		if (at <= last || !(has_long(w, c->lead_first, c->lead_cnt, function, least_ns) ||
				    has_long(w, c->host_first, c->host_cnt, function, least_ns)))
			continue;
		last = at;
		ret++;
		if (by_iteration != NULL)
			by_iteration[at]++;
	}
	return ret;
}

bool turns_seldom(const struct job *job, uint32_t worker, uint32_t function, double longest_ns)
{
	size_t cnt = job->workers[worker].fp->iteration_cnt;

	/* Of an odd number of iterations every second one is more than half. */
	return cnt >= PAUSE_ITERATIONS &&
	       PAUSE_SELDOM * (double)turns_count(job, worker, function, longest_ns / 2, NULL) <=
		       (double)(cnt + cnt % 2);
}
