/* SPDX-License-Identifier: Apache-2.0 */
#include "localize/companions.h"

#include "base/stats.h"
#include "localize/cause.h"

#include <errno.h>
#include <string.h>

#define ALIKE 0.5    /* of the delay of the accused */
#define UNUSUAL 3.0  /* times that of the other hosts */
#define FRAC_MIN .01 /* of the window: less is nothing */

static double delay_of(const struct job *job, uint32_t w)
{
	double frac = job->workers[w].fp->host_stats.run_delay_frac;

	return frac > 0 ? frac : 0;
}

static bool is_accused(const struct accusation *a, uint32_t w)
{
	for (size_t i = 0; i < a->worker_cnt; i++) {
		if (a->workers[i] == w)
			return true;
	}
	return false;
}

static bool shares_host(const struct job *job, const struct accusation *a, uint32_t w)
{
	const char *host = job->workers[w].fp->host;

	for (size_t i = 0; i < a->worker_cnt && host != NULL && host[0] != '\0'; i++) {
		const char *other = job->workers[a->workers[i]].fp->host;

		if (other != NULL && strcmp(other, host) == 0)
			return true;
	}
	return false;
}

/* Delay from which on a worker of these hosts is a companion; 0: nobody to compare with. */
static double limit_of(const struct job *job, const struct accusation *a, double *scratch)
{
	double accused, usual;
	size_t cnt = 0;

	for (uint32_t w = 0; w < job->worker_cnt; w++) {
		if (!shares_host(job, a, w))
			scratch[cnt++] = delay_of(job, w);
	}
	if (cnt == 0)
		return 0;
	usual = stats_median(scratch, cnt);
	for (size_t i = 0; i < a->worker_cnt; i++)
		scratch[i] = delay_of(job, a->workers[i]);
	accused = stats_median(scratch, a->worker_cnt);
	return MAX(MAX(ALIKE * accused, UNUSUAL * usual), FRAC_MIN);
}

static int join(const struct job *job, struct arena *arena, struct accusation *a)
{
	uint32_t *workers = arena_calloc(arena, job->worker_cnt + 1, sizeof(*workers));
	double *scratch = arena_calloc(arena, job->worker_cnt + 1, sizeof(*scratch));
	size_t cnt = 0;
	double limit;

	if (workers == NULL || scratch == NULL)
		return -ENOMEM;
	limit = limit_of(job, a, scratch);
	if (limit <= 0)
		return 0;
	for (uint32_t w = 0; w < job->worker_cnt; w++) {
		if (is_accused(a, w) || (shares_host(job, a, w) && delay_of(job, w) >= limit))
			workers[cnt++] = w;
	}
	a->workers = workers;
	a->worker_cnt = cnt;
	return 0;
}

int companions_join(const struct job *job, struct arena *arena, accusations *list)
{
	vec_foreach(a, list) {
		struct cause_facts facts;
		int error;

		if (a->witness != WITNESS_BLAME || a->worker_cnt == 0)
			continue;
		error = cause_measure(job, a, &facts);
		if (error == 0 && cause_find(job, a, &facts) == CAUSE_CPU_STARVED)
			error = join(job, arena, a);
		if (error < 0)
			return error;
	}
	return 0;
}
