/* SPDX-License-Identifier: Apache-2.0 */
#include "localize/late/gain.h"

#include "base/stats.h"
#include "localize/late/work.h"
#include "localize/witness/fabric.h"
#include "model/thresholds.h"

#include <errno.h>
#include <math.h>

enum side {
	SIDE_OTHERS,
	SIDE_ACCUSED,
	SIDE_NEITHER, /* accused of something else too: late for both */
};

/* How much later than all others the accused arrive. */
struct gain {
	const struct job *job;
	uint8_t *side; /* by worker */
	bool *meets;   /* by worker: one of the accused, and meets others */
	size_t iteration_cnt;
	double *lead_ns;  /* by worker and iteration, over all of the worker's groups */
	double *group_ns; /* by iteration, in the group at hand */
	double *scratch;  /* by worker */
};

static void gain_done(struct gain *g)
{
	free(g->side);
	free(g->meets);
	free(g->lead_ns);
	free(g->group_ns);
	free(g->scratch);
}

static int gain_init(struct gain *g, const struct job *job)
{
	size_t cnt = job->worker_cnt;

	*g = (struct gain){ .job = job, .iteration_cnt = 1 };
	for (size_t w = 0; w < cnt; w++)
		g->iteration_cnt = MAX(g->iteration_cnt, job->workers[w].fp->iteration_cnt);
	g->side = calloc(cnt + 1, sizeof(*g->side));
	g->meets = calloc(cnt + 1, sizeof(*g->meets));
	g->lead_ns = calloc((cnt + 1) * g->iteration_cnt, sizeof(*g->lead_ns));
	g->group_ns = calloc(g->iteration_cnt, sizeof(*g->group_ns));
	g->scratch = calloc(cnt + 1, sizeof(*g->scratch));
	return g->side == NULL || g->meets == NULL || g->lead_ns == NULL || g->group_ns == NULL ||
			       g->scratch == NULL
		       ? -ENOMEM
		       : 0;
}

static bool is_accused_elsewhere(const accusations *list, const struct accusation *a, uint32_t w)
{
	vec_foreach(other, list) {
		if (other != a && accusation_has(other, w))
			return true;
	}
	return false;
}

static void choose_sides(struct gain *g, const accusations *list, const struct accusation *a)
{
	size_t accused = 0, cnt = g->job->worker_cnt;

	for (size_t w = 0; w < cnt; w++) {
		g->side[w] = SIDE_OTHERS;
		g->meets[w] = false;
	}
	for (size_t i = 0; i < cnt * g->iteration_cnt; i++)
		g->lead_ns[i] = 0;
	for (size_t i = 0; i < a->worker_cnt; i++) {
		bool both = is_accused_elsewhere(list, a, a->workers[i]);

		g->side[a->workers[i]] = both ? SIDE_NEITHER : SIDE_ACCUSED;
		accused += !both;
	}
	for (size_t i = 0; i < a->worker_cnt && accused == 0; i++)
		g->side[a->workers[i]] = SIDE_ACCUSED;
}

/*
 * By how much the last of the accused arrives after the last of the others; all end together,
 * so the shortest execution arrived last. 0 where one side is not there.
 */
static double lead_at(const struct gain *g, const struct shift_group *group, int64_t instance,
		      size_t *ret_iteration)
{
	double shortest[] = { HUGE_VAL, HUGE_VAL, HUGE_VAL };

	for (size_t m = 0; m < group->member_cnt; m++) {
		uint32_t w = group->members[m].worker;
		const struct fp_collective *c = shift_borrow(&group->members[m], instance);
		int64_t iteration;

		if (c == NULL || (double)c->dur_ns >= shortest[g->side[w]])
			continue;
		shortest[g->side[w]] = (double)c->dur_ns;
		iteration = job_iteration_at(&g->job->workers[w], c->start_ns);
		if (g->side[w] == SIDE_ACCUSED)
			*ret_iteration = (size_t)MAX(iteration, 0);
	}
	if (isinf(shortest[SIDE_OTHERS]) || isinf(shortest[SIDE_ACCUSED]))
		return 0;
	return fmax(0, shortest[SIDE_OTHERS] - shortest[SIDE_ACCUSED]);
}

static bool has_both(const struct gain *g, const struct shift_group *group)
{
	size_t of_side[] = { 0, 0, 0 };

	for (size_t m = 0; m < group->member_cnt; m++)
		of_side[g->side[group->members[m].worker]]++;
	return of_side[SIDE_OTHERS] > 0 && of_side[SIDE_ACCUSED] > 0;
}

static void judge_group(struct gain *g, const struct shift_group *group)
{
	double counted = 0;

	if (!has_both(g, group))
		return;
	for (size_t i = 0; i < g->iteration_cnt; i++)
		g->group_ns[i] = 0;
	for (int64_t k = group->first; k <= group->last; k++) {
		size_t iteration = 0;
		double lead = lead_at(g, group, k, &iteration);

		/* Of a batch without a common end between them, it is counted where it grows. */
		if (!shift_is_queued(group, k))
			counted = 0;
		g->group_ns[iteration] += fmax(0, lead - counted);
		counted = fmax(counted, lead);
	}
	for (size_t m = 0; m < group->member_cnt; m++) {
		uint32_t w = group->members[m].worker;

		if (g->side[w] != SIDE_ACCUSED)
			continue;
		g->meets[w] = true;
		for (size_t i = 0; i < g->iteration_cnt; i++)
			g->lead_ns[w * g->iteration_cnt + i] += g->group_ns[i];
	}
}

/* What repair gives back at most, per iteration; infinite where it is unknown. */
static double most_of(const struct gain *g)
{
	double sum = 0, iterations = 1;

	for (size_t w = 0; w < g->job->worker_cnt; w++) {
		const struct job_worker *jw = &g->job->workers[w];

		if (g->side[w] != SIDE_ACCUSED)
			continue;
		if (!g->meets[w] || jw->fp->collective_dropped > 0)
			return HUGE_VAL;
		iterations = fmax(iterations, jw->iterations);
	}
	for (size_t i = 0; i < g->iteration_cnt; i++) {
		double most = 0;

		for (size_t w = 0; w < g->job->worker_cnt; w++)
			most = fmax(most, g->lead_ns[w * g->iteration_cnt + i]);
		sum += most;
	}
	return sum / iterations;
}

/* Time per iteration in messages, which blame leaves out. */
static double messages_ns(const struct job *job, uint32_t w)
{
	double sum = 0;

	if (!fabric_sends_messages(job->workers[w].fp))
		return 0;
	vec_foreach(f, &job->functions) {
		if (fabric_may_send(job, f))
			sum += job_time_ns(job, f, w);
	}
	return sum;
}

/*
 * In a pipeline ranks wait for each other in messages, too: by how much longer those with the same work
 * are in messages than the accused, for whom they wait. Per iteration. A slow device is late with each
 * microbatch; what is late once an iteration the pipeline's pauses may take up.
 */
static double waits_in_messages(const struct job *job, const struct accusation *a, double *scratch)
{
	double of_accused = 0;
	size_t cnt = 0;

	if (a->class != CLASS_COMPUTE)
		return 0;
	for (size_t i = 0; i < a->worker_cnt; i++)
		of_accused = fmax(of_accused, messages_ns(job, a->workers[i]));
	for (uint32_t w = 0; w < job->worker_cnt; w++) {
		if (!accusation_has(a, w) && work_is_same(job, a->workers[0], w))
			scratch[cnt++] = messages_ns(job, w);
	}
	return cnt > 0 ? fmax(0, stats_median(scratch, cnt) - of_accused) : 0;
}

/* Who waits for the accused in messages is late because of it: it shows not when others arrive. */
static void excuse_waiting(struct gain *g, const struct accusation *a)
{
	double of_accused = 0;

	if (a->class != CLASS_COMPUTE)
		return;
	for (size_t i = 0; i < a->worker_cnt; i++)
		of_accused = fmax(of_accused, messages_ns(g->job, a->workers[i]));
	for (uint32_t w = 0; w < g->job->worker_cnt; w++) {
		if (g->side[w] == SIDE_OTHERS &&
		    messages_ns(g->job, w) - of_accused >= CAUSE_EXPLAINS * a->gain_ns)
			g->side[w] = SIDE_NEITHER;
	}
}

static void hide(struct gain *g, const struct blame *blame, const accusations *list, double least,
		 struct accusation *a)
{
	choose_sides(g, list, a);
	excuse_waiting(g, a);
	vec_foreach(group, &blame->groups)
		judge_group(g, group);
	a->hidden_ns = fmax(0, a->gain_ns - fmax(most_of(g), least));
}

/* Whether each of the accused meets workers that are not, so that these show who waits for it. */
static bool all_meet_others(struct gain *g, const struct blame *blame, const struct accusation *a)
{
	for (size_t w = 0; w < g->job->worker_cnt; w++) {
		g->side[w] = accusation_has(a, (uint32_t)w) ? SIDE_ACCUSED : SIDE_OTHERS;
		g->meets[w] = false;
	}
	vec_foreach(group, &blame->groups) {
		bool both = has_both(g, group);

		for (size_t m = 0; m < group->member_cnt && both; m++)
			g->meets[group->members[m].worker] = true;
	}
	for (size_t i = 0; i < a->worker_cnt; i++) {
		if (!g->meets[a->workers[i]])
			return false;
	}
	return true;
}

/*
 * The longest wait of a worker for the accused, per iteration; infinite where not all waits are
 * known. waited_ns, weights: scratch, by worker.
 */
static double longest_wait(struct gain *g, const struct blame *blame, const struct accusation *a,
			   double *weights, double *waited_ns)
{
	double longest = 0;

	for (size_t w = 0; w < g->job->worker_cnt; w++) {
		if (g->job->workers[w].fp->collective_dropped > 0)
			return HUGE_VAL;
		weights[w] = accusation_has(a, (uint32_t)w);
		waited_ns[w] = 0;
	}
	blame_sum_waits(blame, weights, waited_ns);
	for (size_t w = 0; w < g->job->worker_cnt; w++) {
		if (a->rotates || weights[w] == 0)
			longest = fmax(longest, waited_ns[w] / g->job->workers[w].iterations);
	}
	return longest > 0 ? longest : HUGE_VAL;
}

/*
 * How much longer than those with the same work the accused compute, per iteration; infinite where
 * none has the same work. Where collectives run beside the work, each of them is late by the same.
 */
static double compute_excess(const struct job *job, const struct accusation *a, double *scratch)
{
	double most = 0;

	for (size_t i = 0; i < a->worker_cnt; i++) {
		size_t cnt = 0;

		for (uint32_t w = 0; w < job->worker_cnt; w++) {
			if (!accusation_has(a, w) && work_is_same(job, a->workers[i], w))
				scratch[cnt++] = work_compute_ns(job, w);
		}
		if (cnt == 0)
			return HUGE_VAL;
		most = fmax(most, work_compute_ns(job, a->workers[i]) - stats_median(scratch, cnt));
	}
	return most;
}

/* No repair saves more than an iteration, nor more than the others wait for the late. */
static int limit_gains(struct gain *g, const struct blame *blame, accusations *list)
{
	_cleanup_free_ double *weights = calloc(g->job->worker_cnt + 1, sizeof(*weights));
	_cleanup_free_ double *waited_ns = calloc(g->job->worker_cnt + 1, sizeof(*waited_ns));

	if (weights == NULL || waited_ns == NULL)
		return -ENOMEM;
	vec_foreach(a, list) {
		double most = job_iteration_of_ns(g->job, a->workers, a->worker_cnt);

		if (a->witness == WITNESS_BLAME && all_meet_others(g, blame, a))
			most = fmin(most, longest_wait(g, blame, a, weights, waited_ns) +
						  waits_in_messages(g->job, a, g->scratch));
		if (a->witness == WITNESS_BLAME && !a->rotates && a->place_cnt == 0 &&
		    a->class == CLASS_COMPUTE)
			most = fmin(most, compute_excess(g->job, a, waited_ns));
		a->hidden_ns = fmax(a->hidden_ns, a->gain_ns - most);
	}
	return 0;
}

int gain_find_hidden(const struct job *job, const struct blame *blame,
		     const struct accuse_options *options, accusations *list)
{
	double least = GAIN_LEAST * options->min_gain_frac * job->iteration_ns;
	struct gain g;
	int error = gain_init(&g, job);

	vec_foreach(a, list) {
		if (error == 0 && a->witness == WITNESS_BLAME && a->class != CLASS_COMM &&
		    !a->rotates && a->place_cnt == 0)
			hide(&g, blame, list, least, a);
	}
	if (error == 0)
		error = limit_gains(&g, blame, list);
	gain_done(&g);
	return error;
}
