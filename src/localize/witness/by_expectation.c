/* SPDX-License-Identifier: Apache-2.0 */
#include "base/stats.h"
#include "localize/late/work.h"
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

/* Part of worker w's window in which it waited for late workers, which blame handles. */
static double waited_frac(const struct job *job, const struct blame *blame, uint32_t w)
{
	double ns = 0;

	vec_foreach(wait, &blame->waits)
		ns += wait->to == w ? wait->ns : 0;
	return ns / (double)job->workers[w].fp->window_ns;
}

/* A share of the critical path, or the time of the thread, hidden behind the device or not. */
enum time { TIME_CRITICAL, TIME_THREAD };

static double share_of(const struct job *job, uint32_t frame, size_t w, enum time time)
{
	bool idle = excess_is_stretch(&job->frames.data[frame]);
	uint32_t idx = job_function_find(job, frame, idle ? CLASS_IDLE : CLASS_HOST);
	const struct fp_function *f = idx != FRAME_NONE ? job->functions.data[idx].of[w] : NULL;

	if (f == NULL)
		return 0;
	return (double)(time == TIME_THREAD ? f->thread_ns : f->share_ns) /
	       (double)job->workers[w].fp->window_ns;
}

/* What a function does itself: its own time and that of the built-ins it calls. */
static double own_beta(const struct job *job, uint32_t frame, size_t w, enum time time)
{
	double sum = share_of(job, frame, w, time);

	for (uint32_t i = frame + 1;
	     i < job->frames.cnt && !excess_is_builtin(&job->frames.data[frame]); i++) {
		if (job->frames.data[i].parent == frame && excess_is_builtin(&job->frames.data[i]))
			sum += share_of(job, i, w, time);
	}
	return sum;
}

/* Data loading counts with all that is below it on the host. */
static double loader_beta(const struct job *job, uint32_t frame, size_t w, enum time time)
{
	double ns = time == TIME_THREAD ? job_thread_ns(job, frame, w)
					: job_subtree_ns(job, frame, w, 1u << CLASS_HOST);

	return ns * job->workers[w].iterations / (double)job->workers[w].fp->window_ns;
}

static double place_beta(const struct job *job, uint32_t frame, size_t w, enum time time)
{
	return job->frames.data[frame].kind == KIND_ANNOTATION ? loader_beta(job, frame, w, time)
							       : own_beta(job, frame, w, time);
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
	return own_beta(job, caller, w, TIME_CRITICAL) >
			       EXCESS_CALLER_GROWS * own_beta(job, f->frame, w, TIME_CRITICAL)
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

static int measure(const struct job *job, const struct blame *blame,
		   const struct accuse_options *options, uint32_t function, struct arena *arena,
		   struct excess *ret)
{
	const struct job_function *f = &job->functions.data[function];
	struct excess e = { .function = function, .class = f->class };

	e.of = arena_calloc(arena, job->worker_cnt + 1, sizeof(double));
	e.alike = arena_calloc(arena, job->worker_cnt + 1, sizeof(bool));
	if (e.of == NULL || e.alike == NULL)
		return -ENOMEM;
	e.frame = place_of(job, f, worst_worker(f, job->worker_cnt));
	for (uint32_t w = 0; w < job->worker_cnt; w++) {
		struct fp_function probe = { .class = f->class,
					     .mu_frac = (double)NAN,
					     .sigma_frac = (double)NAN };
		double d;

		if (f->class == CLASS_COMM)
			probe.beta_frac = f->of[w] != NULL
						  ? f->of[w]->beta_frac - waited_frac(job, blame, w)
						  : 0;
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

static int compare_ns(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* The long iterations of a worker: those further from its median than half of the longest. */
struct long_ones {
	double mean_ns;		      /* by how much they make the mean longer than the median */
	size_t cnt, gap_min, gap_max; /* iterations from one to the next */
};

static int64_t median_ns(const struct fingerprint *fp, int64_t *scratch)
{
	for (size_t i = 0; i < fp->iteration_cnt; i++)
		scratch[i] = fp->iterations[i].dur_ns;
	qsort(scratch, fp->iteration_cnt, sizeof(*scratch), compare_ns);
	return scratch[fp->iteration_cnt / 2];
}

static struct long_ones find_long_ones(const struct fingerprint *fp, int64_t *scratch)
{
	struct long_ones ret = { .gap_min = SIZE_MAX };
	int64_t usual = median_ns(fp, scratch), longest = scratch[fp->iteration_cnt - 1];
	size_t last = 0;

	for (size_t i = 0; i < fp->iteration_cnt; i++) {
		int64_t more = fp->iterations[i].dur_ns - usual;

		ret.mean_ns += (double)more / (double)fp->iteration_cnt;
		if (2 * more <= longest - usual)
			continue;
		if (ret.cnt++ > 0) {
			ret.gap_min = MIN(ret.gap_min, i - last);
			ret.gap_max = MAX(ret.gap_max, i - last);
		}
		last = i;
	}
	return ret;
}

/* What comes again and again at equal distances is a part of the iterations' cost. */
static bool are_rare(const struct long_ones *ones, size_t iteration_cnt)
{
	bool regular = ones->cnt > 2 && ones->gap_max - ones->gap_min <= 1;

	return ones->cnt == 1 || (ones->cnt * EXPECT_RARE_ONE_IN <= iteration_cnt && !regular);
}

/* How much longer the mean iteration of a worker is because of rare long ones, ns. */
static int rare_ns(const struct fingerprint *fp, struct arena *arena, double *ret)
{
	int64_t *scratch = arena_calloc(arena, fp->iteration_cnt + 1, sizeof(*scratch));
	struct long_ones ones;

	if (scratch == NULL)
		return -ENOMEM;
	*ret = 0;
	if (fp->iteration_cnt < EXPECT_RARE_MIN)
		return 0;
	ones = find_long_ones(fp, scratch);
	*ret = are_rare(&ones, fp->iteration_cnt) ? ones.mean_ns : 0;
	return 0;
}

/*
 * Part of the typical iteration in which the device had no work and no launch. A silence that lies in
 * few iterations is not in it. Nor is one that the device bridges in most of them, since the host
 * runs ahead: then the thread is there for longer than the device has no work.
 */
static double starved_ns(const struct fingerprint *fp, double *scratch)
{
	for (size_t i = 0; i < fp->use_cnt; i++)
		scratch[i] = (double)fp->uses[i].starved_ns;
	return stats_median(scratch, fp->use_cnt);
}

static double hidden_ns(const struct job *job, uint32_t frame, size_t w)
{
	return (place_beta(job, frame, w, TIME_THREAD) - place_beta(job, frame, w, TIME_CRITICAL)) *
	       job->iteration_ns;
}

static int is_in_few(const struct job *job, const struct accusation *a, struct arena *arena,
		     bool *ret)
{
	double *typical = arena_calloc(arena, job->worker_cnt + 1, sizeof(*typical));
	size_t cnt = 0;

	for (size_t w = 0; w < job->worker_cnt && typical != NULL; w++) {
		const struct fingerprint *fp = job->workers[w].fp;
		_cleanup_free_ double *scratch = calloc(fp->use_cnt + 1, sizeof(*scratch));

		if (scratch == NULL)
			return -ENOMEM;
		if (fp->use_cnt > 0)
			typical[cnt++] = fmax(starved_ns(fp, scratch), hidden_ns(job, a->frame, w));
	}
	if (typical == NULL)
		return -ENOMEM;
	*ret = a->class == CLASS_IDLE && cnt > 0 &&
	       stats_median(typical, cnt) < EXPECT_OFTEN * a->own_ns;
	return 0;
}

/*
 * A function that runs once in a window on all workers is a checkpoint or an evaluation: one
 * window does not show how often it runs, and so what it costs an iteration. Its sign: few
 * iterations are long, by as much as the accused place takes in all, and by more than the
 * known faults that rotate (known_ns). Garbage collections are excluded: their rate follows
 * the job's allocations. So is what holds most of a slowdown: that is no occasion.
 */
static int is_occasional(const struct job *job, double own_ns, double known_ns, struct arena *arena,
			 bool *ret)
{
	double *rare = arena_calloc(arena, job->worker_cnt + 1, sizeof(*rare));
	int error = rare == NULL ? -ENOMEM : 0;

	for (size_t w = 0; w < job->worker_cnt && error == 0; w++)
		error = rare_ns(job->workers[w].fp, arena, &rare[w]);
	if (error == 0)
		*ret = stats_median(rare, job->worker_cnt) - known_ns > EXPECT_OFTEN * own_ns;
	return error;
}

/* Mean cost per iteration of the accusations that rotate among workers. */
static double turns_ns(const accusations *list)
{
	double ns = 0;

	vec_foreach(a, list)
		ns += a->rotates ? a->gain_ns : 0;
	return ns;
}

/* Drops the last accusation if its function runs only occasionally. */
static int drop_occasion(const struct job *job, const struct accuse_options *options,
			 struct arena *arena, accusations *out)
{
	const struct accusation *last = &out->data[out->cnt - 1];
	bool occasional = false;
	int error;

	if (job_frame_collects(job, last->frame) || (options->slowdown_ns > 0 && !last->usual))
		return 0;
	error = is_in_few(job, last, arena, &occasional);
	if (error == 0 && !occasional)
		error = is_occasional(job, last->own_ns, turns_ns(out), arena, &occasional);
	out->cnt -= occasional;
	return error;
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
		error = drop_occasion(job, options, arena, out);
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

/* Whether blame covers the excess: only some workers have it, and they meet others. */
static int is_heard(const struct job *job, const struct blame *blame, const struct excess *e,
		    bool *ret)
{
	bool stages = false;
	int error = 0;

	if (e->class == CLASS_HOST && blame->matched_cnt > 0)
		error = find_stages(job, e, &stages);
	*ret = (double)e->cnt < fmax(1, EXPECT_ALL_FRAC * (double)job->worker_cnt) && !stages &&
	       (blame->matched_cnt > 0 || e->class == CLASS_COMM);
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
	error = drop_occasion(job, options, arena, out);
	return error == 0 && out->cnt > before ? recall_past(options->past, &out->data[before])
					       : error;
}

int accuse_by_expectation(const struct job *job, const struct blame *blame,
			  const struct accuse_options *options, struct arena *arena,
			  accusations *out)
{
	double limit = fmax(options->min_gain_frac, options->min_common_frac);

	for (uint32_t i = 0; i < job->functions.cnt; i++) {
		const struct job_function *f = &job->functions.data[i];
		struct excess e;
		bool heard;
		int error;

		if (f->frame == FRAME_NONE || !rule_applies(job, blame, options, f))
			continue;
		error = measure(job, blame, options, i, arena, &e);
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
