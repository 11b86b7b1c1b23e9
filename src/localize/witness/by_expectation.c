/* SPDX-License-Identifier: Apache-2.0 */
#include "base/stats.h"
#include "localize/late/work.h"
#include "localize/occasions/occasions.h"
#include "localize/occasions/placetime.h"
#include "localize/past.h"
#include "localize/witness/excess.h"
#include "localize/witness/fabric.h"
#include "localize/witness/gil.h"
#include "model/thresholds.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/*
 * Whether the window shows that a stretch without any record comes in each iteration, while the
 * devices have nothing to do.
 */
static bool repeats(const struct job *job)
{
	for (size_t w = 0; w < job->worker_cnt; w++) {
		if (job->workers[w].fp->iteration_cnt < EXPECT_RARE_MIN ||
		    !job->workers[w].fp->has_device)
			return false;
	}
	return true;
}

/* A stage of a pipeline waits in messages for the others, which blame does not know. */
static bool are_messages(const struct job *job, const struct job_function *f)
{
	bool sends = false;

	for (size_t w = 0; w < job->worker_cnt && fabric_may_send(job, f); w++)
		sends |= f->of[w] != NULL && fabric_sends_messages(job->workers[w].fp);
	return sends;
}

static bool rule_applies(const struct job *job, const struct blame *blame,
			 const struct accuse_options *options, const struct job_function *f)
{
	/* The first batch of a profile takes longer: one iteration shows no loader. */
	if (f->class == CLASS_HOST)
		return excess_rule_applies(job->frames.data, f->frame) &&
		       !gil_is_wait(&job->frames.data[f->frame]) &&
		       (excess_loader(job->frames.data, f->frame) == FRAME_NONE ||
			job->workers[0].iterations > 1);
	if (f->class == CLASS_IDLE)
		return excess_is_stretch(&job->frames.data[f->frame]) && repeats(job);
	/* The times of one member do not distinguish waiting from transfer. */
	return f->class == CLASS_COMM && blame->matched_cnt > 0 && options->all_present &&
	       !are_messages(job, f);
}

/*
 * By worker: the part of its window in which it waited for late workers, which blame handles. NULL:
 * out of memory.
 */
static double *find_waited(const struct job *job, const struct blame *blame, struct arena *arena)
{
	_cleanup_free_ double *all = calloc(job->worker_cnt + 1, sizeof(*all));
	double *ret = arena_calloc(arena, job->worker_cnt + 1, sizeof(*ret));

	if (all == NULL || ret == NULL)
		return NULL;
	for (size_t w = 0; w < job->worker_cnt; w++)
		all[w] = 1;
	blame_sum_waits(blame, all, ret);
	for (size_t w = 0; w < job->worker_cnt; w++)
		ret[w] /= (double)job->workers[w].fp->window_ns;
	return ret;
}

/* A built-in belongs to the Python function that calls it when that one does more such. */
static uint32_t place_of(const struct job *job, const struct job_function *f, size_t w)
{
	uint32_t loader = excess_loader(job->frames.data, f->frame);
	uint32_t caller = excess_caller(job->frames.data, f->frame);

	if (loader != FRAME_NONE)
		return loader;
	if (f->class != CLASS_HOST || caller == FRAME_NONE)
		return f->frame;
	return place_own_beta(job, caller, w, TIME_CRITICAL) >
			       EXCESS_CALLER_GROWS * place_own_beta(job, f->frame, w, TIME_CRITICAL)
		       ? caller
		       : f->frame;
}

static size_t worst_worker(const struct job_function *f, size_t worker_cnt)
{
	size_t worst = 0;

	for (size_t w = 1; w < worker_cnt; w++) {
		double a = f->of[w] != NULL ? f->of[w]->beta_frac : 0;
		double b = f->of[worst] != NULL ? f->of[worst]->beta_frac : 0;

		if (a > b)
			worst = w;
	}
	return worst;
}

/* What tells whether a worker is as long there. */
static double length_of(const struct job *job, const struct excess *e, size_t w)
{
	return e->class == CLASS_HOST ? place_beta(job, e->frame, w, TIME_THREAD) : e->of[w];
}

/*
 * A function that all workers run is hidden on some of them: behind the device, or because
 * they wait for workers where it is not hidden, as the later stages of a pipeline do. Thread
 * time shows it. alike holds the workers above the expectation and those that take as long. Where
 * nearly all are above it in what is not the host's, the others are just below.
 */
static int find_alike(const struct job *job, struct excess *e)
{
	_cleanup_free_ double *above = calloc(job->worker_cnt + 1, sizeof(*above));
	double need;
	size_t cnt = 0;

	if (above == NULL)
		return -ENOMEM;
	if ((double)e->cnt < (e->class == CLASS_HOST ? EXPECT_SHOWS_FRAC : EXPECT_ALL_FRAC) *
				     (double)job->worker_cnt)
		return 0;
	for (size_t w = 0; w < job->worker_cnt; w++) {
		if (e->alike[w])
			above[cnt++] = length_of(job, e, w);
	}
	need = EXPECT_ALIKE * stats_median(above, cnt);
	for (size_t w = 0; w < job->worker_cnt && need > 0; w++) {
		if (!e->alike[w] && length_of(job, e, w) >= need) {
			e->alike[w] = true;
			e->cnt++;
		}
	}
	return 0;
}

/* ret: its arrays are used again where it has some. */
static int measure(const struct job *job, const double *waited_frac,
		   const struct accuse_options *options, uint32_t function, struct arena *arena,
		   struct excess *ret)
{
	const struct job_function *f = &job->functions.data[function];
	struct excess e = { .function = function, .class = f->class };

	e.of = ret->of != NULL ? ret->of : arena_calloc(arena, job->worker_cnt + 1, sizeof(double));
	e.alike = ret->alike != NULL ? ret->alike
				     : arena_calloc(arena, job->worker_cnt + 1, sizeof(bool));
	if (e.of == NULL || e.alike == NULL)
		return -ENOMEM;
	e.frame = place_of(job, f, worst_worker(f, job->worker_cnt));
	for (uint32_t w = 0; w < job->worker_cnt; w++) {
		struct fp_function probe = { .class = f->class,
					     .mu_frac = (double)NAN,
					     .sigma_frac = (double)NAN };
		double d;

		if (f->class == CLASS_COMM)
			probe.beta_frac =
				f->of[w] != NULL ? f->of[w]->beta_frac - waited_frac[w] : 0;
		else
			probe.beta_frac = place_beta(job, e.frame, w, TIME_CRITICAL);
		e.of[w] = probe.beta_frac;
		d = expect_distance(&options->expect, &probe);
		e.alike[w] = probe.beta_frac > EXCESS_MIN_BETA && d > 0;
		e.cnt += e.alike[w];
		e.distance = fmax(e.distance, d);
	}
	*ret = e;
	return find_alike(job, ret);
}

static double median_thread(const struct job *job, uint32_t frame, const struct accusation *a,
			    bool accused, double *scratch)
{
	size_t cnt = 0, next = 0;

	for (uint32_t w = 0; w < job->worker_cnt; w++) {
		bool is = next < a->worker_cnt && a->workers[next] == w;

		next += is;
		if (is == accused)
			scratch[cnt++] = place_beta(job, frame, w, TIME_THREAD);
	}
	return stats_median(scratch, cnt);
}

/*
 * Where the place takes as long on all workers, a worker late there has no fault of its
 * own: a pipeline waits for its first stage, and of many slow workers some are slower.
 */
static bool covers(const struct job *job, const struct excess *e, const struct accusation *a,
		   double *scratch)
{
	const struct job_frame *frames = job->frames.data;
	double mine, others, lost;

	if (a->witness != WITNESS_BLAME || a->class != e->class || a->frame == FRAME_NONE ||
	    a->place_cnt > 0 || a->worker_cnt == job->worker_cnt ||
	    !(frames_below(frames, a->frame, e->frame) || frames_below(frames, e->frame, a->frame)))
		return false;
	mine = median_thread(job, e->frame, a, true, scratch);
	others = median_thread(job, e->frame, a, false, scratch);
	lost = a->own_ns / (double)a->worker_cnt / job->iteration_ns;
	return EXPECT_ALIKE * mine <= others && (!a->rotates || lost <= EXPECT_JITTER * others);
}

/* Takes out of the first cnt accusations those that e covers. */
static void drop_covered(const struct job *job, const struct excess *e, size_t cnt, double *scratch,
			 accusations *list)
{
	size_t kept = 0;

	for (size_t i = 0; i < list->cnt; i++) {
		if (i >= cnt || !covers(job, e, &list->data[i], scratch))
			list->data[kept++] = list->data[i];
	}
	list->cnt = kept;
}

/* Whether a is of all that its workers do, and one of them is the longest there: that explains it. */
static bool is_slow_everywhere(const struct job *job, const struct excess *e,
			       const struct accusation *a)
{
	uint32_t worst = 0;

	if (a->witness != WITNESS_PAST || a->frame != FRAME_NONE)
		return false;
	for (uint32_t w = 1; w < job->worker_cnt; w++)
		worst = e->of[w] > e->of[worst] ? w : worst;
	for (size_t i = 0; i < a->worker_cnt; i++) {
		if (a->workers[i] == worst)
			return true;
	}
	return false;
}

static bool is_accused(const struct job *job, const struct excess *e, double *scratch,
		       const accusations *list)
{
	vec_foreach(a, list) {
		accusations one = { .data = a, .cnt = 1 };

		if (a->usual && a->frame != e->frame)
			continue;
		if (is_slow_everywhere(job, e, a))
			return true;
		if (a->strikes != NULL ? a->strikes[e->function]
				       : excess_is_accused(job->frames.data, e->frame, &one) &&
						 !covers(job, e, a, scratch))
			return true;
	}
	return false;
}

/* What did not grow is usual, whatever the job's slowdown is. */
static int recall_past(const struct past *past, struct accusation *a)
{
	_cleanup_free_ double *grown = calloc(a->worker_cnt + 1, sizeof(*grown));
	size_t cnt = 0;

	if (grown == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < a->worker_cnt && past != NULL; i++) {
		if (past->workers[a->workers[i]].known)
			grown[cnt++] = a->strikes != NULL
					       ? gil_growth_ns(past, a->workers[i])
					       : past_own_growth_ns(past, a->workers[i], a->frame);
	}
	a->recalled = cnt > 0 && stats_median(grown, cnt) < EXCESS_SLOWDOWN * a->gain_ns;
	a->usual |= a->recalled;
	return 0;
}

static int accuse_place(const struct job *job, const struct excess *e,
			const struct accuse_options *options, struct arena *arena, accusations *out)
{
	double *scratch = arena_calloc(arena, job->worker_cnt + 1, sizeof(*scratch));
	size_t before = out->cnt;
	int error;

	if (scratch == NULL)
		return -ENOMEM;
	if (is_accused(job, e, scratch, out))
		return 0;
	error = excess_accuse(e, job->worker_cnt, job->iteration_ns, options, arena, out);
	if (error == 0 && out->cnt > before)
		error = occasions_drop(job, options, arena, out);
	if (error == 0 && out->cnt > before)
		error = recall_past(options->past, &out->data[before]);
	if (error == 0 && out->cnt > before && !out->data[before].usual)
		drop_covered(job, e, before, scratch, out);
	return error;
}

/*
 * Whether all workers with the same work as those above the expectation are above it too: a
 * stage of a pipeline. Blame finds no late worker among them: the members of their collectives
 * are as late. A worker whose work no other has meets workers of other stages.
 */
static int find_stages(const struct job *job, const struct excess *e, bool *ret_whole)
{
	_cleanup_free_ bool *seen = calloc(job->worker_cnt + 1, sizeof(*seen));
	bool whole = true;

	if (seen == NULL)
		return -ENOMEM;
	for (size_t w = 0; w < job->worker_cnt && whole; w++) {
		size_t cnt = 0;

		if (!e->alike[w] || seen[w])
			continue;
		for (size_t other = 0; other < job->worker_cnt && whole; other++) {
			if (seen[other] || !work_is_same(job, w, other))
				continue;
			seen[other] = true;
			whole = e->alike[other];
			cnt++;
		}
		whole &= cnt > 1;
	}
	*ret_whole = whole;
	return 0;
}

/* Whether those above the expectation meet others in half of their iterations at least. */
static bool meet_often(const struct job *job, const struct excess *e)
{
	for (size_t w = 0; w < job->worker_cnt; w++) {
		const struct job_worker *worker = &job->workers[w];
		int64_t last = -1;
		double cnt = 0;

		for (size_t i = 0; e->alike[w] && i < worker->fp->collective_cnt; i++) {
			int64_t at = job_iteration_at(worker, worker->fp->collectives[i].start_ns);

			cnt += at > last;
			last = MAX(last, at);
		}
		if (e->alike[w] && 2 * cnt < worker->iterations)
			return false;
	}
	return true;
}

/* Whether blame covers the excess: only some workers have it, and they meet others. */
static int is_heard(const struct job *job, const struct blame *blame, const struct excess *e,
		    bool *ret)
{
	bool stages = false;
	int error = 0;

	if (e->class == CLASS_HOST && blame->matched_cnt > 0)
		error = find_stages(job, e, &stages);
	*ret = (double)e->cnt < fmax(1, EXPECT_ALL_FRAC * (double)job->worker_cnt) && !stages &&
	       ((blame->matched_cnt > 0 && meet_often(job, e)) || e->class == CLASS_COMM);
	return error;
}

/* Whether another witness accuses a waiting worker of the wait or of a frame around it. */
static bool is_accused_of_waits(const struct job *job, const struct excess *e,
				const accusations *list)
{
	for (uint32_t w = 0; w < job->worker_cnt; w++) {
		vec_foreach(a, list) {
			if (e->alike[w] && accusation_has(a, w) &&
			    (a->frame == FRAME_NONE ||
			     frames_below(job->frames.data, e->frame, a->frame)))
				return true;
		}
	}
	return false;
}

int accuse_by_gil(const struct job *job, const struct blame *blame,
		  const struct accuse_options *options, struct arena *arena, accusations *out)
{
	size_t before = out->cnt;
	const bool *is_wait;
	struct excess e;
	bool heard;
	int error = gil_measure(job, &options->expect, arena, &e, &is_wait);

	if (error < 0 || is_wait == NULL ||
	    e.distance < fmax(options->min_gain_frac, options->min_common_frac))
		return error;
	error = is_heard(job, blame, &e, &heard);
	if (error < 0 || heard || is_accused_of_waits(job, &e, out))
		return error;
	error = excess_accuse(&e, job->worker_cnt, job->iteration_ns, options, arena, out);
	if (error < 0)
		return error;
	out->data[before].strikes = is_wait;
	error = occasions_drop(job, options, arena, out);
	return error == 0 && out->cnt > before ? recall_past(options->past, &out->data[before])
					       : error;
}

int accuse_by_expectation(const struct job *job, const struct blame *blame,
			  const struct accuse_options *options, struct arena *arena,
			  accusations *out)
{
	double limit = fmax(options->min_gain_frac, options->min_common_frac);
	const double *waited_frac = find_waited(job, blame, arena);
	struct excess e = { .of = NULL };

	if (waited_frac == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < job->functions.cnt; i++) {
		const struct job_function *f = &job->functions.data[i];
		bool heard;
		int error;

		if (f->frame == FRAME_NONE || !rule_applies(job, blame, options, f))
			continue;
		error = measure(job, waited_frac, options, i, arena, &e);
		if (error < 0)
			return error;
		if (e.distance < limit)
			continue;
		error = is_heard(job, blame, &e, &heard);
		if (error == 0 && !heard)
			error = accuse_place(job, &e, options, arena, out);
		if (error < 0)
			return error;
	}
	return 0;
}
