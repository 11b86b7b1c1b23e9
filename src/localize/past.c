/* SPDX-License-Identifier: Apache-2.0 */
#include "localize/past.h"

#include "base/stats.h"
#include "localize/parts.h"
#include "localize/witness/excess.h"
#include "model/thresholds.h"

#include <errno.h>
#include <math.h>
#include <string.h>

void past_done(struct past *past)
{
	job_done(&past->then);
	*past = (struct past){ 0 };
}

/* Waiting for other ranks that no collective shows: in the stores and pipes of torch.distributed. */
static bool waits_for_ranks(const struct job *job, uint32_t frame)
{
	for (; frame != FRAME_NONE; frame = job->frames.data[frame].parent) {
		const char *name = job->frames.data[frame].name;

		if (strncmp(name, "torch/distributed/", 18) == 0 ||
		    strstr(name, "/torch/distributed/") != NULL)
			return true;
	}
	return false;
}

/* Adds the time of worker w's functions to the frames of now, and the squares of their errors. */
static void add_functions(const struct job *job, size_t w, const uint32_t *frame_to, double *sums,
			  double *squares)
{
	double iterations = job->workers[w].iterations;

	vec_foreach(f, &job->functions) {
		const struct fp_function *of = f->of[w];
		uint32_t to;

		if (of == NULL || f->frame == FRAME_NONE || f->class == CLASS_COMM ||
		    waits_for_ranks(job, f->frame))
			continue;
		to = frame_to != NULL ? frame_to[f->frame] : f->frame;
		if (to == FRAME_NONE)
			continue;
		sums[to] += (double)of->share_ns / iterations;
		squares[to] += of->spread_ns * of->spread_ns / iterations;
	}
}

/* A frame that is gone counts for the nearest caller that still is. */
static int map_frames(struct past *p, struct arena *arena)
{
	const struct job *now = p->now, *then = &p->then;
	uint32_t *to = arena_calloc(arena, then->frames.cnt + 1, sizeof(*to));

	p->frame_of = arena_calloc(arena, now->frames.cnt + 1, sizeof(*p->frame_of));
	if (to == NULL || p->frame_of == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < now->frames.cnt; i++)
		p->frame_of[i] = idmap_get(&then->frame_by_key, now->frames.data[i].key.lo);
	for (size_t i = 0; i < then->frames.cnt; i++) {
		const struct job_frame *frame = &then->frames.data[i];

		to[i] = idmap_get(&now->frame_by_key, frame->key.lo);
		if (to[i] == IDMAP_NONE && frame->parent != FRAME_NONE)
			to[i] = to[frame->parent];
	}
	p->now_of = to;
	return 0;
}

/* now_ns, before_ns: of the frames themselves. Waits that did not grow are not like the rest. */
static void compare_totals(struct past_worker *pw, size_t frame_cnt)
{
	double alike_ns = 0, least;

	for (size_t i = 0; i < frame_cnt; i++) {
		pw->total_now_ns += pw->now_ns[i];
		pw->total_before_ns += pw->before_ns[i];
	}
	if (pw->total_before_ns <= 0)
		return;
	least = 1 + PAST_ALIKE * (pw->total_now_ns / pw->total_before_ns - 1);
	for (size_t i = 0; i < frame_cnt; i++) {
		if (pw->now_ns[i] >= least * pw->before_ns[i])
			alike_ns += pw->before_ns[i];
	}
	pw->alike_frac = alike_ns / pw->total_before_ns;
}

static double iteration_ns(const struct job *job, size_t w)
{
	return (double)job->workers[w].fp->window_ns / job->workers[w].iterations;
}

/* Time per iteration in which the training thread lacked a CPU; 0 unknown. */
static double delay_ns(const struct job *job, size_t w)
{
	return fmax(0, job->workers[w].fp->host_stats.run_delay_frac) * iteration_ns(job, w);
}

/* Time per iteration in which the training thread neither had a CPU nor lacked one. */
static double stood_ns(const struct job *job, size_t w)
{
	double cpu_frac = job->workers[w].fp->host_stats.cpu_frac;

	return cpu_frac >= 0 ? (1 - cpu_frac) * iteration_ns(job, w) - delay_ns(job, w)
			     : (double)NAN;
}

/* CPU time of the busiest other thread in an iteration of so many ns. */
static double other_ns(const struct job *job, size_t w, double ns)
{
	double frac = job->workers[w].fp->host_stats.other_cpu_frac;

	return frac >= 0 ? frac * ns : (double)NAN;
}

/* What is not measured in one of the windows is NAN there. */
static double known_growth(double now, double then)
{
	return isnan(now) || isnan(then) ? 0 : now - then;
}

static int compare_worker(struct past *p, size_t w, size_t then_w, struct arena *arena)
{
	const struct job *now = p->now;
	struct past_worker *pw = &p->workers[w];
	size_t cnt = now->frames.cnt + 1;

	pw->now_ns = arena_calloc(arena, cnt, sizeof(double));
	pw->before_ns = arena_calloc(arena, cnt, sizeof(double));
	pw->error_ns = arena_calloc(arena, cnt, sizeof(double));
	if (pw->now_ns == NULL || pw->before_ns == NULL || pw->error_ns == NULL)
		return -ENOMEM;
	add_functions(now, w, NULL, pw->now_ns, pw->error_ns);
	add_functions(&p->then, then_w, p->now_of, pw->before_ns, pw->error_ns);
	compare_totals(pw, now->frames.cnt);
	job_sum_subtrees(now, pw->now_ns);
	job_sum_subtrees(now, pw->before_ns);
	job_sum_subtrees(now, pw->error_ns);
	for (size_t i = 0; i < now->frames.cnt; i++)
		pw->error_ns[i] = sqrt(pw->error_ns[i]);
	pw->growth_ns = iteration_ns(now, w) - iteration_ns(&p->then, then_w);
	pw->delay_growth_ns = delay_ns(now, w) - delay_ns(&p->then, then_w);
	pw->stood_growth_ns = known_growth(stood_ns(now, w), stood_ns(&p->then, then_w));
	/* A thread that always computes has more CPU time in a longer iteration: that is no growth. */
	pw->other_growth_ns = known_growth(other_ns(now, w, iteration_ns(now, w)),
					   other_ns(&p->then, then_w, iteration_ns(now, w)));
	pw->then = then_w;
	pw->known = true;
	p->known_cnt++;
	return 0;
}

static int compare_workers(struct past *p, struct arena *arena)
{
	int error = map_frames(p, arena);

	for (size_t w = 0, then = 0; w < p->now->worker_cnt && error == 0; w++) {
		int rank = p->now->workers[w].fp->rank;

		while (then < p->then.worker_cnt && p->then.workers[then].fp->rank < rank)
			then++;
		if (then < p->then.worker_cnt && p->then.workers[then].fp->rank == rank)
			error = compare_worker(p, w, then, arena);
	}
	return error;
}

int past_init(struct past *ret, const struct job *job, const struct fingerprint *const *fps,
	      size_t cnt, struct arena *arena)
{
	const struct fingerprint **sorted = NULL;
	int error;

	*ret = (struct past){ .now = job };
	ret->workers = arena_calloc(arena, job->worker_cnt + 1, sizeof(*ret->workers));
	if (ret->workers == NULL)
		return -ENOMEM;
	if (cnt == 0)
		return 0;
	error = parts_sort_workers(fps, cnt, &sorted, NULL);
	if (error == 0)
		error = job_init(&ret->then, sorted, cnt);
	if (error == 0)
		error = compare_workers(ret, arena);
	free(sorted);
	return error;
}

double past_growth_ns(const struct past *past, size_t w, uint32_t frame)
{
	const struct past_worker *pw = &past->workers[w];

	return pw->known ? pw->now_ns[frame] - pw->before_ns[frame] : 0;
}

double past_sure_growth_ns(const struct past *past, size_t w, uint32_t frame, double errors)
{
	double growth = past_growth_ns(past, w, frame);

	return growth > 0 && growth >= errors * past->workers[w].error_ns[frame] ? growth : 0;
}

double past_rest_factor(const struct past *past, size_t w, uint32_t frame)
{
	const struct past_worker *pw = &past->workers[w];
	double before = pw->known ? pw->total_before_ns - pw->before_ns[frame] : 0;

	if (before <= PAST_REST_FRAC * pw->total_before_ns)
		return 1;
	return fmax(1, (pw->total_now_ns - pw->now_ns[frame]) / before);
}

double past_growth_beyond_ns(const struct past *past, size_t w, uint32_t frame)
{
	const struct past_worker *pw = &past->workers[w];

	if (!pw->known)
		return 0;
	return pw->now_ns[frame] - past_rest_factor(past, w, frame) * pw->before_ns[frame];
}

int past_alike_factor(const struct past *past, double *ret)
{
	_cleanup_free_ double *factors = calloc(past->now->worker_cnt + 1, sizeof(*factors));
	size_t cnt = 0;

	*ret = 0;
	if (factors == NULL)
		return -ENOMEM;
	for (size_t w = 0; w < past->now->worker_cnt; w++) {
		const struct past_worker *pw = &past->workers[w];

		if (pw->known && pw->alike_frac >= PAST_ALIKE_FRAC)
			factors[cnt++] = pw->total_now_ns / pw->total_before_ns;
	}
	if (2 * cnt > past->known_cnt)
		*ret = stats_median(factors, cnt);
	if (*ret < 1 + PACE_SLOW_FRAC)
		*ret = 0;
	return 0;
}

double past_own_growth_ns(const struct past *past, size_t w, uint32_t frame)
{
	const struct job_frame *frames = past->now->frames.data;
	double ns = past_growth_ns(past, w, frame);

	if (excess_is_builtin(&frames[frame]) || frames[frame].kind != KIND_PYTHON)
		return ns;
	for (uint32_t i = frame + 1; i < past->now->frames.cnt; i++) {
		if (frames[i].parent == frame && !excess_is_builtin(&frames[i]))
			ns -= past_growth_ns(past, w, i);
	}
	return ns;
}

int past_slowdown(const struct past *past, double *ret_ns)
{
	_cleanup_free_ double *growths = calloc(past->now->worker_cnt + 1, sizeof(*growths));
	size_t cnt = 0;

	if (growths == NULL)
		return -ENOMEM;
	for (size_t w = 0; w < past->now->worker_cnt; w++) {
		if (past->workers[w].known)
			growths[cnt++] = past->workers[w].growth_ns;
	}
	*ret_ns = cnt > 0 ? stats_median(growths, cnt) : 0;
	return 0;
}
