/* SPDX-License-Identifier: Apache-2.0 */
#include "localize/late/collections.h"

#include <errno.h>
#include <math.h>

struct cost {
	const struct job *job;
	const struct accusation *a;
	size_t iteration_cnt;
	double *group_ns; /* by iteration, in the group at hand */
	double *most_ns;  /* by iteration, of all groups */
};

static bool collects(const struct job *job, uint32_t frame)
{
	for (; frame != FRAME_NONE; frame = job->frames.data[frame].parent) {
		if (job_frame_collects(job, frame))
			return true;
	}
	return false;
}

/* Time in collections between the previous collective and this one. */
static double collected_ns(const struct cost *cost, uint32_t w, const struct fp_collective *c)
{
	const struct job_worker *worker = &cost->job->workers[w];
	uint32_t first = c->host_gated ? c->host_first : c->lead_first;
	uint32_t cnt = c->host_gated ? c->host_cnt : c->lead_cnt;
	double ns = 0;

	for (uint32_t i = first; i < first + cnt; i++) {
		const struct fp_share *share = &worker->fp->shares[i];
		uint32_t f = share->function;

		if (f == FRAME_NONE)
			continue;
		f = worker->function_of[f];
		if (collects(cost->job, cost->job->functions.data[f].frame))
			ns += (double)share->ns;
	}
	return ns;
}

/* What the collections of the accused cost at one collective, and in which iteration. */
static double cost_at(const struct cost *cost, const struct shift_group *group, int64_t instance,
		      size_t *ret_iteration)
{
	double shortest = HUGE_VAL, without = HUGE_VAL;

	for (size_t m = 0; m < group->member_cnt; m++) {
		const struct fp_collective *c = shift_borrow(&group->members[m], instance);
		uint32_t w = group->members[m].worker;
		double ns;

		if (c == NULL)
			continue;
		ns = accusation_has(cost->a, w) ? collected_ns(cost, w, c) : 0;
		without = fmin(without, (double)c->dur_ns + ns);
		if ((double)c->dur_ns < shortest) {
			int64_t at = job_iteration_at(&cost->job->workers[w], c->start_ns);

			shortest = (double)c->dur_ns;
			*ret_iteration = (size_t)MAX(at, 0);
		}
	}
	return isinf(shortest) ? 0 : without - shortest;
}

static void add_group(struct cost *cost, const struct shift_group *group)
{
	double counted = 0;

	for (size_t i = 0; i < cost->iteration_cnt; i++)
		cost->group_ns[i] = 0;
	for (int64_t k = group->first; k <= group->last; k++) {
		size_t iteration = 0;
		double ns = cost_at(cost, group, k, &iteration);

		/* Of a batch without a common end between them, it is counted where it grows. */
		if (!shift_overlaps(group, k))
			counted = 0;
		cost->group_ns[iteration] += fmax(0, ns - counted);
		counted = fmax(counted, ns);
	}
	for (size_t i = 0; i < cost->iteration_cnt; i++)
		cost->most_ns[i] = fmax(cost->most_ns[i], cost->group_ns[i]);
}

/* Per iteration; groups that meet beside each other lose the same time. */
static double cost_of(struct cost *cost, const struct blame *blame)
{
	double sum = 0;

	for (size_t i = 0; i < cost->iteration_cnt; i++)
		cost->most_ns[i] = 0;
	vec_foreach(group, &blame->groups)
		add_group(cost, group);
	for (size_t i = 0; i < cost->iteration_cnt; i++)
		sum += cost->most_ns[i];
	return sum / (double)cost->iteration_cnt;
}

static bool is_of_collections(const struct job *job, const struct accusation *a)
{
	uint32_t frame = a->frame;

	if (a->function != FRAME_NONE)
		frame = job->functions.data[a->function].frame;
	return a->witness != WITNESS_DIFFERENCE && a->frame != FRAME_NONE && a->place_cnt == 0 &&
	       frame != FRAME_NONE && collects(job, frame);
}

int collections_weigh(const struct job *job, const struct blame *blame, accusations *list)
{
	struct cost cost = { .job = job, .iteration_cnt = 1 };
	int error = 0;

	for (size_t w = 0; w < job->worker_cnt; w++)
		cost.iteration_cnt = MAX(cost.iteration_cnt, job->workers[w].fp->iteration_cnt);
	cost.group_ns = calloc(cost.iteration_cnt, sizeof(double));
	cost.most_ns = calloc(cost.iteration_cnt, sizeof(double));
	if (cost.group_ns == NULL || cost.most_ns == NULL)
		error = -ENOMEM;
	vec_foreach(a, list) {
		if (error < 0 || !is_of_collections(job, a))
			continue;
		cost.a = a;
		a->gain_ns = fmax(a->gain_ns, cost_of(&cost, blame));
	}
	free(cost.group_ns);
	free(cost.most_ns);
	return error;
}
