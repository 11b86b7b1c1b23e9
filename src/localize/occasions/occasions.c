/* SPDX-License-Identifier: Apache-2.0 */
#include "localize/occasions/occasions.h"

#include "base/stats.h"
#include "localize/occasions/placetime.h"
#include "model/thresholds.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

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

/*
 * Whether some worker's device is out of work in most iterations, though each one's is in few: a
 * checkpoint or an evaluation is in the same iteration on all. *ret_ns: for how long, in the typical
 * iteration; left alone if not so, or if the workers do not have the same iterations.
 */
static int comes_by_turns(const struct job *job, struct arena *arena, double *ret_ns)
{
	const struct fingerprint *first = job->workers[0].fp;
	double *worst = arena_calloc(arena, first->use_cnt + 1, sizeof(*worst));
	double most = 0, usual;

	if (worst == NULL)
		return -ENOMEM;
	for (size_t w = 0; w < job->worker_cnt; w++) {
		const struct fingerprint *fp = job->workers[w].fp;

		if (fp->use_cnt != first->use_cnt)
			return 0;
		for (size_t i = 0; i < fp->use_cnt; i++) {
			if (fp->iterations[i].number != first->iterations[i].number)
				return 0;
			worst[i] = fmax(worst[i], (double)fp->uses[i].starved_ns);
			most = fmax(most, worst[i]);
		}
	}
	usual = stats_median(worst, first->use_cnt);
	if (first->use_cnt >= EXPECT_RARE_MIN && usual >= EXPECT_OFTEN * most)
		*ret_ns = usual;
	return 0;
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
 * Whether the training threads are there in most iterations, though the devices still have work
 * then: only the wait for it lies in few of them.
 */
static int is_hidden_often(const struct job *job, const struct accusation *a, struct arena *arena,
			   bool *ret)
{
	double *hidden = arena_calloc(arena, job->worker_cnt + 1, sizeof(*hidden));
	size_t cnt = 0;

	if (hidden == NULL)
		return -ENOMEM;
	for (size_t w = 0; w < job->worker_cnt; w++) {
		if (job->workers[w].fp->use_cnt > 0)
			hidden[cnt++] = hidden_ns(job, a->frame, w);
	}
	*ret = cnt > 0 && a->class == CLASS_HOST &&
	       stats_median(hidden, cnt) >= EXPECT_OFTEN * a->own_ns;
	return 0;
}

/*
 * A function that runs once in a window on all workers is a checkpoint or an evaluation: one
 * window does not show how often it runs, and so what it costs an iteration. Its sign: few
 * iterations of the accused are long, by as much as the accused place takes in all, and by more than the
 * known faults that rotate (known_ns). Garbage collections are excluded: their rate follows
 * the job's allocations. So is what holds most of a slowdown: that is no occasion.
 */
static int is_occasional(const struct job *job, const struct accusation *a, double known_ns,
			 struct arena *arena, bool *ret)
{
	double *rare = arena_calloc(arena, a->worker_cnt + 1, sizeof(*rare));
	int error = rare == NULL ? -ENOMEM : 0;

	for (size_t i = 0; i < a->worker_cnt && error == 0; i++)
		error = rare_ns(job->workers[a->workers[i]].fp, arena, &rare[i]);
	if (error == 0)
		*ret = stats_median(rare, a->worker_cnt) - known_ns > EXPECT_OFTEN * a->own_ns;
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

int occasions_drop(const struct job *job, const struct accuse_options *options, struct arena *arena,
		   accusations *out)
{
	struct accusation *last = &out->data[out->cnt - 1];
	bool occasional = false, often = false;
	double turns_each_ns = 0;
	int error;

	if (job_frame_collects(job, last->frame) || (options->slowdown_ns > 0 && !last->usual))
		return 0;
	error = is_in_few(job, last, arena, &occasional);
	if (error == 0 && occasional)
		error = comes_by_turns(job, arena, &turns_each_ns);
	if (turns_each_ns > 0) {
		occasional = false;
		last->rotates = true;
		/* What each lost, together: no iteration has the pauses of all. */
		last->own_ns = fmin(last->own_ns * (double)last->worker_cnt, turns_each_ns);
		last->gain_ns = last->own_ns;
	}
	if (error == 0)
		error = is_hidden_often(job, last, arena, &often);
	if (error == 0 && !occasional && !often)
		error = is_occasional(job, last, turns_ns(out), arena, &occasional);
	out->cnt -= occasional;
	return error;
}
