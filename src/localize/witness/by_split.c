/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Accuses the slower part of each peer group where its members fall into two: first, where
 * stages of a pipeline have different work, in the kernels that all of them run, then in all
 * functions of workers with the same work. Compared is what workers do beside communication;
 * time of devices and of hosts is compared apart. Joins an accusation in out of the same place;
 * leaves out workers accused of another place of the same kind.
 */
#include "base/stats.h"
#include "localize/late/work.h"
#include "localize/witness/split_parts.h"
#include "localize/witness/suspects.h"
#include "model/thresholds.h"

#include <errno.h>
#include <math.h>

#define GROUPS_MAX 16 /* process groups of a worker that are looked at */

static int split_alloc(struct split *p, size_t worker_cnt)
{
	struct arena *arena = &p->s.own;

	p->left = arena_calloc(arena, worker_cnt + 1, sizeof(*p->left));
	p->leader = arena_calloc(arena, worker_cnt + 1, sizeof(*p->leader));
	p->members = arena_calloc(arena, worker_cnt + 1, sizeof(*p->members));
	p->own_ns = arena_calloc(arena, worker_cnt + 1, sizeof(*p->own_ns));
	p->common_ns = arena_calloc(arena, worker_cnt + 1, sizeof(*p->common_ns));
	p->alike = arena_calloc(arena, worker_cnt + 1, sizeof(*p->alike));
	p->marked = arena_calloc(arena, worker_cnt + 1, sizeof(bool));
	p->common = arena_calloc(arena, p->s.job->functions.cnt + 1, sizeof(bool));
	p->typical_ns = arena_calloc(arena, p->s.job->functions.cnt + 1, sizeof(double));
	p->variance = arena_calloc(arena, worker_cnt + 1, sizeof(*p->variance));
	return p->left == NULL || p->leader == NULL || p->members == NULL || p->own_ns == NULL ||
			       p->common_ns == NULL || p->common == NULL || p->alike == NULL ||
			       p->marked == NULL || p->typical_ns == NULL || p->variance == NULL
		       ? -ENOMEM
		       : 0;
}

/* Of a function of the job. What strikes anybody is no work of a worker's own. */
static bool is_own(const struct split *p, uint32_t function)
{
	return split_compares(p, p->s.job->functions.data[function].class) &&
	       !(p->strikes != NULL && p->strikes[function]);
}

/* What is compared of worker w before a collective; functions that are not listed: host. */
static double lead_ns(const struct split *p, size_t w, const struct fp_collective *c)
{
	const struct job_worker *jw = &p->s.job->workers[w];
	double sum = 0;

	for (uint32_t i = 0; i < c->lead_cnt; i++) {
		const struct fp_share *share = &jw->fp->shares[c->lead_first + i];

		if (share->function == FRAME_NONE ? split_compares(p, CLASS_HOST)
						  : is_own(p, jw->function_of[share->function]))
			sum += (double)share->ns;
	}
	return sum;
}

/* The same before all collectives of a group, by iteration. Returns its sum. */
static double lead_by_iteration(const struct split *p, size_t w, uint64_t group, double *ret)
{
	const struct fingerprint *fp = p->s.job->workers[w].fp;
	double sum = 0;
	size_t at = 0;

	for (size_t i = 0; i < fp->iteration_cnt; i++)
		ret[i] = 0;
	for (size_t i = 0; i < fp->collective_cnt; i++) {
		const struct fp_collective *c = &fp->collectives[i];

		if (c->group != group)
			continue;
		while (at + 1 < fp->iteration_cnt && fp->iterations[at + 1].start_ns <= c->start_ns)
			at++;
		ret[at] += lead_ns(p, w, c);
	}
	for (size_t i = 0; i < fp->iteration_cnt; i++)
		sum += ret[i];
	return sum;
}

/* Of the iterations but the first, whose begin lies before the first collective. */
static double variance_of(const double *by_iteration, size_t cnt)
{
	double mean = 0, squares = 0;

	if (cnt < 3)
		return (double)NAN;
	for (size_t i = 1; i < cnt; i++)
		mean += by_iteration[i] / (double)(cnt - 1);
	for (size_t i = 1; i < cnt; i++)
		squares += (by_iteration[i] - mean) * (by_iteration[i] - mean);
	return squares / (double)(cnt - 2);
}

/* The process groups of a worker, in order of their first collective. Returns how many. */
static size_t list_groups(const struct fingerprint *fp, uint64_t groups[static GROUPS_MAX])
{
	size_t cnt = 0;

	for (size_t i = 0; i < fp->collective_cnt && cnt < GROUPS_MAX; i++) {
		size_t k = 0;

		while (k < cnt && groups[k] != fp->collectives[i].group)
			k++;
		if (k == cnt)
			groups[cnt++] = fp->collectives[i].group;
	}
	return cnt;
}

/*
 * Variance over the iterations of what is compared of worker w, by the process group whose
 * collectives follow most of it. NAN: not known.
 */
static double own_variance(const struct split *p, size_t w, double *by_iteration)
{
	const struct fingerprint *fp = p->s.job->workers[w].fp;
	uint64_t groups[GROUPS_MAX];
	size_t cnt = list_groups(fp, groups);
	double most = 0, variance = (double)NAN;

	for (size_t i = 0; i < cnt; i++) {
		double sum = lead_by_iteration(p, w, groups[i], by_iteration);

		if (sum > most) {
			most = sum;
			variance = variance_of(by_iteration, fp->iteration_cnt);
		}
	}
	return variance;
}

/* What is compared of worker w, per iteration. */
static double own_ns(const struct split *p, size_t w)
{
	const struct job *job = p->s.job;
	const struct fingerprint *fp = job->workers[w].fp;
	double ns = 0;

	for (unsigned int c = 0; c < CLASS_CNT; c++)
		ns += split_compares(p, c) ? (double)fp->class_ns[c] : 0;
	ns /= job->workers[w].iterations;
	for (uint32_t f = 0; p->strikes != NULL && f < job->functions.cnt; f++) {
		if (split_compares(p, job->functions.data[f].class) && p->strikes[f])
			ns -= job_time_ns(job, &job->functions.data[f], w);
	}
	return ns;
}

/* classes is set. */
static int split_init(struct split *p, const struct job *job, const struct accuse_options *options,
		      struct arena *arena)
{
	int error = suspects_init(&p->s, job, options, arena);
	_cleanup_free_ double *scratch = NULL;
	size_t longest = 0;

	if (error == 0)
		error = split_alloc(p, job->worker_cnt);
	for (size_t w = 0; w < job->worker_cnt; w++)
		longest = MAX(longest, job->workers[w].fp->iteration_cnt);
	scratch = calloc(longest + 1, sizeof(*scratch));
	if (error < 0 || scratch == NULL)
		return -ENOMEM;
	for (size_t w = 0; w < job->worker_cnt; w++) {
		p->left[p->left_cnt++] = (uint32_t)w;
		p->own_ns[w] = own_ns(p, w);
		p->variance[w] = own_variance(p, w, scratch);
	}
	return 0;
}

/* By time, then by index. */
static int member_cmp(const void *a, const void *b, void *arg)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	const double *time_ns = ((const struct split *)arg)->time_ns;

	if (time_ns[x] < time_ns[y] || time_ns[x] > time_ns[y])
		return time_ns[x] < time_ns[y] ? -1 : 1;
	return (x > y) - (x < y);
}

static void sort_members(struct split *p)
{
	qsort_r(p->members, p->member_cnt, sizeof(*p->members), member_cmp, p);
}

/* The members: workers from first on with the same work as first, not gathered before. */
static void gather(struct split *p, uint32_t first)
{
	size_t kept = 0;

	p->member_cnt = 0;
	p->time_ns = p->own_ns;
	for (size_t i = 0; i < p->left_cnt; i++) {
		uint32_t w = p->left[i];

		if (p->marked[w] || w < first)
			continue;
		if (work_is_same(p->s.job, first, w))
			p->members[p->member_cnt++] = w;
		else
			p->left[kept++] = w;
	}
	p->left_cnt = kept;
	sort_members(p);
}

/*
 * By how much means of devices differ by chance, as many faster ones show. INFINITY: too few. Their
 * times in one iteration say nothing where work of one iteration counts in the next.
 */
static double peers_chance_ns(const struct split *p)
{
	double mean = 0, squares = 0;

	if (p->fast_cnt < SPLIT_PEERS_MIN || !split_compares(p, CLASS_COMPUTE) ||
	    split_compares(p, CLASS_HOST))
		return (double)INFINITY;
	for (size_t i = 0; i < p->fast_cnt; i++)
		mean += p->time_ns[p->members[i]] / (double)p->fast_cnt;
	for (size_t i = 0; i < p->fast_cnt; i++)
		squares += (p->time_ns[p->members[i]] - mean) * (p->time_ns[p->members[i]] - mean);
	return SPLIT_PEERS_SURE * sqrt(squares / (double)(p->fast_cnt - 1));
}

/*
 * By how much means of the fast_cnt fastest can differ by chance, from how much each of them
 * differs from iteration to iteration. INFINITY: not known.
 */
static double chance_ns(const struct split *p)
{
	double sum = 0, freedom = 0, iterations = 0;

	for (size_t i = 0; i < p->fast_cnt; i++) {
		uint32_t w = p->members[i];
		double cnt = (double)p->s.job->workers[w].fp->iteration_cnt;

		if (isnan(p->variance[w]))
			continue;
		sum += p->variance[w] * (cnt - 2);
		freedom += cnt - 2;
		iterations = fmax(iterations, cnt);
	}
	if (freedom < 1)
		return (double)INFINITY;
	/* Of few iterations the scatter itself is uncertain (Student's t). */
	return SPLIT_SURE * (1 + 16 / (freedom * freedom)) * sqrt(2 * sum / freedom / iterations);
}

/*
 * The first gap, from the fastest on, that is worth an accusation, and too wide for chance and
 * for what lies before it. Behind it may be several populations: faults come and go.
 */
static bool find_gap(struct split *p)
{
	double need = p->s.options->min_gain_frac * p->s.job->iteration_ns;
	double first = p->time_ns[p->members[0]];
	size_t at = MAX((size_t)2, (p->member_cnt + SPLIT_FAST_PART - 1) / SPLIT_FAST_PART);

	for (; at < p->member_cnt; at++) {
		double last = p->time_ns[p->members[at - 1]];
		double gap = p->time_ns[p->members[at]] - last;

		p->fast_cnt = at;
		if (gap >= need && gap >= SPLIT_GAP_SCATTER * (last - first) &&
		    gap >= fmin(chance_ns(p), peers_chance_ns(p)))
			return true;
	}
	return false;
}

/* --- what the slower part does longer --- */

/* Finds workers of the faster part with the same work as worker w. Returns how many. */
static size_t find_alike(struct split *p, uint32_t w)
{
	size_t cnt = 0;

	for (size_t i = 0; i < p->fast_cnt; i++) {
		if (work_is_same(p->s.job, w, p->members[i]))
			p->alike[cnt++] = p->members[i];
	}
	return cnt;
}

/* What these typically spend in each function, per iteration. */
static void find_typical(struct split *p, size_t alike_cnt)
{
	const struct job *job = p->s.job;

	for (uint32_t i = 0; i < job->functions.cnt; i++) {
		const struct job_function *f = &job->functions.data[i];

		for (size_t k = 0; k < alike_cnt; k++)
			p->s.scratch[k] = job_time_ns(job, f, p->alike[k]);
		p->typical_ns[i] = stats_median(p->s.scratch, alike_cnt);
	}
}

/*
 * Enters what a slow member does longer than the typical fast one. Where none of these has the
 * same to do, all that it computes is as much slower as what the stages have in common.
 */
static void fill_ledger(struct split *p, uint32_t w, bool has_alike, double typical)
{
	const struct job *job = p->s.job;
	double saved = 1 - typical / p->time_ns[w];

	for (uint32_t i = 0; i < job->functions.cnt; i++) {
		const struct job_function *f = &job->functions.data[i];
		double ns = job_time_ns(job, f, w), more = ns - p->typical_ns[i];

		if (!has_alike)
			more = f->class == CLASS_COMPUTE ? ns * saved : 0;
		if (is_own(p, i) && more > 0)
			ledger_add(&p->s.of[w], i, more * job->workers[w].iterations);
	}
}

/* What worker w does beside communication, per iteration. */
static double busy_ns(const struct job *job, uint32_t w)
{
	const struct fingerprint *fp = job->workers[w].fp;

	return (double)(fp->window_ns - fp->class_ns[CLASS_COMM]) / job->workers[w].iterations;
}

/*
 * Whether worker w is busy longer than the less busy workers with the same work. If not, it
 * has less of other work: no worker waits for it.
 */
static bool is_busy_longer(const struct split *p, uint32_t w, size_t alike_cnt, double excess_ns)
{
	for (size_t k = 0; k < alike_cnt; k++)
		p->s.scratch[k] = busy_ns(p->s.job, p->alike[k]);
	return alike_cnt == 0 || busy_ns(p->s.job, w) - stats_quantile(p->s.scratch, alike_cnt,
								       1. / SPLIT_FAST_PART) >=
					 SPLIT_PASSED_ON * excess_ns;
}

/* Marks the members from index at on that have the same work as members[at]. */
static void mark_slow(struct split *p, size_t at, double typical)
{
	uint32_t first = p->members[at];
	size_t alike_cnt = find_alike(p, first);

	find_typical(p, alike_cnt);
	for (; at < p->member_cnt; at++) {
		uint32_t w = p->members[at];
		double excess = p->time_ns[w] - typical;

		if (p->marked[w] || !work_is_same(p->s.job, first, w))
			continue;
		p->marked[w] = true;
		p->leader[w] = p->members[0];
		fill_ledger(p, w, alike_cnt > 0, typical);
		p->s.stands_out[w] = is_busy_longer(p, w, alike_cnt, excess) &&
				     p->s.of[w].listed >= SPLIT_EXPLAINED * excess *
								  p->s.job->workers[w].iterations;
	}
}

/* Marks the slower part of the members at hand, if they have one. */
static void split_members(struct split *p)
{
	double typical;

	if (p->member_cnt < SPLIT_MIN_PEERS || !find_gap(p))
		return;
	typical = p->time_ns[p->members[p->fast_cnt / 2]];
	for (size_t i = p->fast_cnt; i < p->member_cnt; i++) {
		if (!p->marked[p->members[i]])
			mark_slow(p, i, typical);
	}
}

/* --- stages of a pipeline --- */

/*
 * The stages of a pipeline differ by what only the first or the last has to do, but run the
 * same kernels for the layers that all of them have; on devices of one kind these take as
 * long. So one stage can be compared with the others where all of its workers are slow.
 */
static void find_common(struct split *p, uint32_t first)
{
	const struct job *job = p->s.job;

	for (uint32_t i = 0; i < job->functions.cnt; i++) {
		const struct job_function *f = &job->functions.data[i];

		p->common[i] = f->class == CLASS_COMPUTE;
		for (uint32_t w = first; w < job->worker_cnt && p->common[i]; w++)
			p->common[i] = job->workers[w].group != job->workers[first].group ||
				       work_is_common(job, f, first, w);
	}
}

/* Time in the common kernels; 0: too little of what the worker computes to speak for all. */
static double common_ns(const struct split *p, uint32_t w)
{
	const struct job *job = p->s.job;
	double sum = 0;

	for (uint32_t i = 0; i < job->functions.cnt; i++)
		sum += p->common[i] ? job_time_ns(job, &job->functions.data[i], w) : 0;
	return SPLIT_COMMON * sum >= work_compute_ns(job, w) ? sum : 0;
}

/* Gathers the peer group of worker first; empty if the stages have too little in common. */
static void gather_stages(struct split *p, uint32_t first)
{
	const struct job *job = p->s.job;
	bool differ = false;

	p->member_cnt = 0;
	p->time_ns = p->common_ns;
	find_common(p, first);
	for (uint32_t w = first; w < job->worker_cnt; w++) {
		if (job->workers[w].group != job->workers[first].group)
			continue;
		p->common_ns[w] = common_ns(p, w);
		differ |= !work_is_same(job, first, w);
		if (p->common_ns[w] > 0)
			p->members[p->member_cnt++] = w;
	}
	sort_members(p);
	if (!differ)
		p->member_cnt = 0;
}

static void split_stages(struct split *p)
{
	uint32_t next = 0;

	for (uint32_t w = 0; w < p->s.job->worker_cnt; w++) {
		if (p->s.job->workers[w].group != next)
			continue;
		gather_stages(p, w);
		split_members(p);
		next++;
	}
}

/*
 * Keeps a spread loss only if it exceeds the usual difference of machines for at least one
 * of the workers that are slow together; for the others the gap rules out chance.
 */
static int drop_small(struct split *p)
{
	size_t cnt = p->s.job->worker_cnt;
	bool *matters = arena_calloc(&p->s.own, cnt + 1, sizeof(bool));

	if (matters == NULL)
		return -ENOMEM;
	for (uint32_t w = 0; w < cnt; w++) {
		if (p->s.stands_out[w] && p->s.place_cnt[w] == 0)
			matters[p->leader[w]] |=
				suspects_spread_matters(&p->s, w, p->s.of[w].listed);
	}
	for (uint32_t w = 0; w < cnt; w++) {
		if (p->s.place_cnt[w] == 0 && !matters[p->leader[w]])
			p->s.stands_out[w] = false;
	}
	return 0;
}

static int find_slower(struct split *p)
{
	if (split_compares(p, CLASS_COMPUTE))
		split_stages(p);
	for (uint32_t w = 0; w < p->s.job->worker_cnt; w++) {
		gather(p, w);
		split_members(p);
	}
	suspects_find_places(&p->s);
	return drop_small(p);
}

static int accuse_slower(const struct job *job, const struct accuse_options *options,
			 unsigned int classes, struct arena *arena, accusations *out)
{
	struct split p = { .classes = classes, .strikes = accusations_strikes(out) };
	accusations slow = { 0 };
	int error = split_init(&p, job, options, arena);

	if (error == 0)
		error = find_slower(&p);
	if (error == 0)
		error = suspects_accuse(&p.s, &slow);
	for (size_t i = 0; i < slow.cnt && error == 0; i++)
		error = split_add(&p, slow.data[i], out);
	suspects_done(&p.s);
	vec_done(&slow);
	return error;
}

static bool have_devices(const struct job *job)
{
	bool all = true;

	for (size_t w = 0; w < job->worker_cnt; w++)
		all &= job->workers[w].fp->has_device;
	return all;
}

int accuse_by_split(const struct job *job, const struct accuse_options *options,
		    struct arena *arena, accusations *out)
{
	const unsigned int device = 1u << CLASS_COMPUTE, own = ~(1u << CLASS_COMM);
	int error;

	if (!have_devices(job))
		return accuse_slower(job, options, own, arena, out);
	/* A slow device and a slow host are two faults, also of one worker. */
	error = accuse_slower(job, options, device, arena, out);
	return error == 0 ? accuse_slower(job, options, own & ~device, arena, out) : error;
}
