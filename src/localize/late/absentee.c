/* SPDX-License-Identifier: Apache-2.0 */
#include "localize/late/absentee.h"

#include "base/splitmix.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* The shortest execution of each kind of collective. */
struct floors {
	struct idmap of_kind; /* index in ns */
	VEC(int64_t) ns;
};

static uint64_t kind_of(const struct fp_collective *c)
{
	return splitmix_finish(splitmix_finish(c->group) ^ c->name) ^ (uint64_t)c->bytes;
}

static int lower_floor(struct floors *floors, const struct fp_collective *c)
{
	uint32_t idx = idmap_get(&floors->of_kind, kind_of(c));

	if (idx < floors->ns.cnt) {
		floors->ns.data[idx] = MIN(floors->ns.data[idx], c->dur_ns);
		return 0;
	}
	idx = (uint32_t)floors->ns.cnt;
	if (vec_push(&floors->ns, c->dur_ns) < 0)
		return -ENOMEM;
	return idmap_set(&floors->of_kind, kind_of(c), idx);
}

static int find_floors(const struct job *job, struct floors *ret)
{
	int error = 0;

	for (size_t w = 0; w < job->worker_cnt; w++) {
		const struct fingerprint *fp = job->workers[w].fp;

		for (size_t i = 0; i < fp->collective_cnt && error == 0; i++)
			error = lower_floor(ret, &fp->collectives[i]);
	}
	return error;
}

/* Time on the critical path beyond the shortest of the kind, over the window. */
static double excess_ns(const struct floors *floors, const struct fingerprint *fp)
{
	double sum = 0;

	for (size_t i = 0; i < fp->collective_cnt; i++) {
		const struct fp_collective *c = &fp->collectives[i];
		int64_t floor_ns = floors->ns.data[idmap_get(&floors->of_kind, kind_of(c))];

		sum += (double)MIN(c->critical_ns, c->dur_ns - floor_ns);
	}
	/* Collectives beside each other count the same time. */
	return fmin(sum, (double)fp->class_ns[CLASS_COMM]);
}

int absentee_wait(const struct job *job, const struct blame *blame, double *ret_ns)
{
	_cleanup_free_ double *known_ns = calloc(job->worker_cnt + 1, sizeof(*known_ns));
	_cleanup_free_ double *all = calloc(job->worker_cnt + 1, sizeof(*all));
	struct floors floors = { 0 };
	double longest = 0;
	int error;

	if (known_ns == NULL || all == NULL)
		return -ENOMEM;
	for (size_t w = 0; w < job->worker_cnt; w++)
		all[w] = 1;
	blame_sum_waits(blame, all, known_ns);
	error = find_floors(job, &floors);
	for (size_t w = 0; w < job->worker_cnt && error == 0; w++) {
		const struct job_worker *worker = &job->workers[w];
		double ns = excess_ns(&floors, worker->fp) - known_ns[w];

		longest = fmax(longest, ns / worker->iterations);
	}
	idmap_done(&floors.of_kind);
	vec_done(&floors.ns);
	if (error == 0)
		*ret_ns = longest;
	return error;
}

double absentee_comm_frac(const struct job *job, const struct blame *blame)
{
	double window = 0, comm = 0;

	for (size_t w = 0; w < job->worker_cnt; w++) {
		window += (double)job->workers[w].fp->window_ns;
		comm += (double)job->workers[w].fp->class_ns[CLASS_COMM];
	}
	vec_foreach(wait, &blame->waits)
		comm -= wait->ns;
	return window > 0 ? fmax(0, comm / window) : 0;
}
