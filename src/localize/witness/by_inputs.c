/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Accuses all members of the peer groups in which the time to compute follows the size of
 * the inputs, where the largest inputs rotate among workers. Runs after by_blame.c and by_split.c,
 * which accuse a worker that always has more.
 */
#include "localize/late/work.h"
#include "localize/witness/witness.h"
#include "model/thresholds.h"

#include <errno.h>
#include <math.h>

/* Workers with the same to do, and how time follows the size of their inputs. */
struct team {
	const struct job *job;
	uint32_t *members;
	size_t cnt;
	uint32_t *left; /* workers in no team yet, ascending */
	size_t left_cnt;
	double *waited_ns;    /* by worker: for workers with uneven inputs */
	bool *uneven;	      /* by worker: the verdict */
	double *weight;	      /* by worker: computing_frac() of uneven ones */
	double *late_ns;      /* by worker: lateness that functions explain */
	double *computing_ns; /* by worker: of it, by functions that compute */
};

static void gather(struct team *t, uint32_t first)
{
	size_t kept = 0;

	t->cnt = 0;
	for (size_t i = 0; i < t->left_cnt; i++) {
		uint32_t w = t->left[i];

		if (w < first)
			continue;
		if (work_is_same(t->job, first, w))
			t->members[t->cnt++] = w;
		else
			t->left[kept++] = w;
	}
	t->left_cnt = kept;
}

/* Of a member, relative to the first: NAN where unknown. */
static double relative(const struct team *t, size_t i,
		       double (*ratio)(const struct job *job, size_t a, size_t b))
{
	return ratio(t->job, t->members[i], t->members[0]);
}

static double mean(const struct team *t, double (*ratio)(const struct job *job, size_t a, size_t b))
{
	double sum = 0;

	for (size_t i = 0; i < t->cnt; i++)
		sum += relative(t, i, ratio);
	return sum / (double)t->cnt;
}

/* Whether time to compute grows with the size of inputs, about in proportion (least squares). */
static bool time_follows_inputs(const struct team *t)
{
	double elements = mean(t, work_elements_ratio), time = mean(t, work_compute_ratio);
	double xx = 0, yy = 0, xy = 0;
	size_t off = 0;

	if (t->cnt < INPUTS_MIN_PEERS || !isfinite(elements) || !isfinite(time))
		return false;
	for (size_t i = 0; i < t->cnt; i++) {
		double x = relative(t, i, work_elements_ratio) / elements - 1;
		double y = relative(t, i, work_compute_ratio) / time - 1;

		xx += x * x;
		yy += y * y;
		xy += x * y;
	}
	for (size_t i = 0; i < t->cnt; i++) {
		double x = relative(t, i, work_elements_ratio) / elements - 1;

		off += x * x * (double)t->cnt > INPUTS_OFF_MEAN * INPUTS_OFF_MEAN * xx;
	}
	return 2 * off >= t->cnt && xx > INPUTS_UNEVEN * INPUTS_UNEVEN * (double)t->cnt &&
	       xy * xy >= INPUTS_FOLLOWS * xx * yy && xy >= INPUTS_LIKE_TIME * xx &&
	       xy <= xx / INPUTS_LIKE_TIME;
}

static bool is_accused_of_work(const accusations *list, uint32_t w)
{
	vec_foreach(a, list) {
		if ((a->spread || a->class == CLASS_COMPUTE) && accusation_has(a, w))
			return true;
	}
	return false;
}

/* A worker that always has more input is accused of it; the others only wait for it. */
static bool no_member_is_accused(const struct team *t, const accusations *list)
{
	for (size_t i = 0; i < t->cnt; i++) {
		if (is_accused_of_work(list, t->members[i]))
			return false;
	}
	return true;
}

static void find_reasons(struct team *t, const struct blame *blame)
{
	vec_foreach(why, &blame->why) {
		if (why->function == FRAME_NONE)
			continue;
		t->late_ns[why->worker] += why->ns;
		if (t->job->functions.data[why->function].class == CLASS_COMPUTE)
			t->computing_ns[why->worker] += why->ns;
	}
}

/* The part of a worker's lateness due to computing. A slow host's lateness has other reasons. */
static double computing_frac(const struct team *t, uint32_t w)
{
	return t->late_ns[w] > 0 ? t->computing_ns[w] / t->late_ns[w] : 1;
}

/* The gain of even inputs per iteration: the wait of the worker that waits most. */
static double turns_ns(const struct team *t, const struct blame *blame)
{
	double longest = 0, lost = 0;

	for (uint32_t w = 0; w < t->job->worker_cnt; w++)
		t->weight[w] = t->uneven[w] ? computing_frac(t, w) : 0;
	blame_sum_waits(blame, t->weight, t->waited_ns);
	for (uint32_t w = 0; w < t->job->worker_cnt; w++) {
		const struct blame_worker *b = &blame->workers[w];
		double iterations = t->job->workers[w].iterations;

		if (!t->uneven[w])
			continue;
		lost += fmax(0, b->lost_ns - b->explained_by_comm_ns) * t->weight[w] / iterations;
		longest = fmax(longest, t->waited_ns[w] / iterations);
	}
	return fmin(longest, lost);
}

/* The computing function that holds most of their time. */
static uint32_t main_function(const struct team *t, double *ret_frac)
{
	double most = 0, all = 0;
	uint32_t main = FRAME_NONE;

	for (uint32_t i = 0; i < t->job->functions.cnt; i++) {
		const struct job_function *f = &t->job->functions.data[i];
		double sum = 0;

		for (size_t w = 0; w < t->job->worker_cnt && f->class == CLASS_COMPUTE; w++)
			sum += t->uneven[w] ? job_time_ns(t->job, f, w) : 0;
		all += sum;
		if (sum > most) {
			most = sum;
			main = i;
		}
	}
	*ret_frac = all > 0 ? most / all : 0;
	return main;
}

static void find_uneven(struct team *t, const accusations *list)
{
	for (uint32_t w = 0; w < t->job->worker_cnt; w++)
		t->left[t->left_cnt++] = w;
	for (uint32_t w = 0; w < t->job->worker_cnt; w++) {
		gather(t, w);
		if (!time_follows_inputs(t) || !no_member_is_accused(t, list))
			continue;
		for (size_t i = 0; i < t->cnt; i++)
			t->uneven[t->members[i]] = true;
	}
}

int accuse_by_inputs(const struct job *job, const struct blame *blame,
		     const struct accuse_options *options, struct arena *arena, accusations *out)
{
	struct team t = {
		.job = job,
		.members = arena_calloc(arena, job->worker_cnt + 1, sizeof(*t.members)),
		.left = arena_calloc(arena, job->worker_cnt + 1, sizeof(*t.left)),
		.waited_ns = arena_calloc(arena, job->worker_cnt + 1, sizeof(double)),
		.uneven = arena_calloc(arena, job->worker_cnt + 1, sizeof(bool)),
		.weight = arena_calloc(arena, job->worker_cnt + 1, sizeof(double)),
		.late_ns = arena_calloc(arena, job->worker_cnt + 1, sizeof(double)),
		.computing_ns = arena_calloc(arena, job->worker_cnt + 1, sizeof(double)),
	};
	struct accusation a = { .witness = WITNESS_BLAME,
				.frame = FRAME_NONE,
				.class = CLASS_COMPUTE,
				.spread = true,
				.rotates = true };
	double frac;

	if (t.members == NULL || t.left == NULL || t.waited_ns == NULL || t.uneven == NULL ||
	    t.weight == NULL || t.late_ns == NULL || t.computing_ns == NULL)
		return -ENOMEM;
	find_uneven(&t, out);
	find_reasons(&t, blame);
	a.own_ns = a.gain_ns = turns_ns(&t, blame);
	if (a.gain_ns < options->min_gain_frac * job->iteration_ns)
		return 0;
	a.function = main_function(&t, &frac);
	a.main_ns = frac * a.own_ns;
	a.workers = t.members;
	for (uint32_t w = 0; w < job->worker_cnt; w++) {
		if (t.uneven[w])
			t.members[a.worker_cnt++] = w;
	}
	return vec_push(out, a);
}
