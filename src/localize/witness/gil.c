/* SPDX-License-Identifier: Apache-2.0 */
#include "localize/witness/gil.h"

#include <errno.h>
#include <math.h>
#include <string.h>

bool gil_is_wait(const struct job_frame *frame)
{
	return frame->kind == KIND_PYTHON && strcmp(frame->name, EVENT_GIL_WAIT) == 0;
}

static bool waits(const struct job *job, const struct job_function *f)
{
	return f->class == CLASS_HOST && f->frame != FRAME_NONE &&
	       gil_is_wait(&job->frames.data[f->frame]);
}

static double sum_ns(const struct job *job, const struct job_function *f)
{
	double ns = 0;

	for (size_t w = 0; w < job->worker_cnt; w++)
		ns += f->of[w] != NULL ? (double)f->of[w]->share_ns : 0;
	return ns;
}

/* The functions that wait, and the one among them with most of it; FRAME_NONE: none. */
static uint32_t find_waits(const struct job *job, bool *is_wait)
{
	uint32_t most = FRAME_NONE;

	for (uint32_t i = 0; i < job->functions.cnt; i++) {
		const struct job_function *f = &job->functions.data[i];

		is_wait[i] = waits(job, f);
		if (is_wait[i] && (most == FRAME_NONE ||
				   sum_ns(job, f) > sum_ns(job, &job->functions.data[most])))
			most = i;
	}
	return most;
}

static void sum_waits(const struct job *job, const bool *is_wait, double *of)
{
	for (uint32_t i = 0; i < job->functions.cnt; i++) {
		for (size_t w = 0; w < job->worker_cnt && is_wait[i]; w++) {
			const struct fp_function *f = job->functions.data[i].of[w];

			of[w] += f != NULL ? f->beta_frac : 0;
		}
	}
}

int gil_measure(const struct job *job, const struct expect_table *expect, struct arena *arena,
		struct excess *ret, const bool **ret_is_wait)
{
	bool *is_wait = arena_calloc(arena, job->functions.cnt + 1, sizeof(bool));
	struct excess e = { .class = CLASS_HOST };

	e.of = arena_calloc(arena, job->worker_cnt + 1, sizeof(double));
	e.alike = arena_calloc(arena, job->worker_cnt + 1, sizeof(bool));
	if (is_wait == NULL || e.of == NULL || e.alike == NULL)
		return -ENOMEM;
	*ret_is_wait = NULL;
	e.function = find_waits(job, is_wait);
	if (e.function == FRAME_NONE)
		return 0;
	e.frame = job->functions.data[e.function].frame;
	sum_waits(job, is_wait, e.of);
	for (size_t w = 0; w < job->worker_cnt; w++) {
		struct fp_function probe = { .class = CLASS_HOST,
					     .beta_frac = e.of[w],
					     .mu_frac = (double)NAN,
					     .sigma_frac = (double)NAN };
		double d = expect_distance(expect, &probe);

		e.alike[w] = e.of[w] > EXCESS_MIN_BETA && d > 0;
		e.cnt += e.alike[w];
		e.distance = fmax(e.distance, d);
	}
	*ret = e;
	*ret_is_wait = is_wait;
	return 0;
}

static double waited_ns(const struct job *job, size_t w)
{
	double ns = 0;

	vec_foreach(f, &job->functions)
		ns += waits(job, f) && f->of[w] != NULL ? job_time_ns(job, f, w) : 0;
	return ns;
}

double gil_growth_ns(const struct past *past, size_t w)
{
	return waited_ns(past->now, w) - waited_ns(&past->then, past->workers[w].then);
}
