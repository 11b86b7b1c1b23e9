/* SPDX-License-Identifier: Apache-2.0 */
#include "localize/usercode.h"

#include "base/stats.h"
#include "base/text/pythoncode.h"
#include "model/thresholds.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool usercode_is(const struct job_frame *frame)
{
	return frame->kind == KIND_PYTHON && pythoncode_is_users(frame->name);
}

uint32_t usercode_around(const struct job_frame *frames, uint32_t frame)
{
	uint32_t i = frame, outermost = frame;

	for (; i != FRAME_NONE && !frames[i].trains && frames[i].kind == KIND_PYTHON;
	     i = frames[i].parent) {
		if (usercode_is(&frames[i]))
			return i;
		outermost = i;
	}
	return frames[frame].name[0] == '<' ? outermost : frame;
}

/* Time per iteration below a frame that the typical accused has more than the typical other. */
static double excess_ns(const struct job *job, const struct accusation *a, uint32_t frame,
			double *scratch)
{
	double mine;
	size_t cnt = 0;

	for (size_t i = 0; i < a->worker_cnt; i++)
		scratch[i] = job_subtree_ns(job, frame, a->workers[i], ~0u);
	mine = stats_median(scratch, a->worker_cnt);
	for (uint32_t w = 0; w < job->worker_cnt && !a->rotates; w++) {
		if (!accusation_has(a, w))
			scratch[cnt++] = job_subtree_ns(job, frame, w, ~0u);
	}
	return cnt > 0 ? mine - stats_median(scratch, cnt) : mine;
}

static bool is_host_place(const struct accusation *a)
{
	return a->frame != FRAME_NONE && a->place_cnt == 0 && a->strikes == NULL &&
	       a->class == CLASS_HOST;
}

/* Whether a place is computed by the host: kernels of a device are named by themselves. */
static bool is_on_host(const struct job *job, const struct accusation *a)
{
	if (a->frame == FRAME_NONE || a->place_cnt > 0 || a->strikes != NULL || a->spread)
		return false;
	return a->class == CLASS_HOST || a->class == CLASS_IDLE ||
	       (a->class != CLASS_COMM && !job->workers[a->workers[0]].fp->has_device);
}

/*
 * The innermost function of the user below the place, on the way to the function that holds most
 * of it, that holds most of the excess itself; else the place.
 */
static uint32_t narrowed(const struct job *job, const struct accusation *a, double *scratch)
{
	const struct job_frame *place = &job->frames.data[a->frame];
	uint32_t i =
		a->function != FRAME_NONE ? job->functions.data[a->function].frame : FRAME_NONE;
	double excess = excess_ns(job, a, a->frame, scratch);

	if (usercode_is(place) && !place->trains)
		return a->frame; /* with what it does itself */
	for (; i != FRAME_NONE && i != a->frame && job_frame_below(job, i, a->frame);
	     i = job->frames.data[i].parent) {
		if (usercode_is(&job->frames.data[i]) && !job->frames.data[i].trains &&
		    excess_ns(job, a, i, scratch) >= LEDGER_MOST * excess)
			return i;
	}
	return a->frame;
}

/*
 * Whether a worker that is not accused launches work from the operator of the place: on the host it
 * takes too little time there to be listed.
 */
static bool peers_launch(const struct job *job, const struct accusation *a)
{
	uint32_t frame =
		a->function != FRAME_NONE ? job->functions.data[a->function].frame : a->frame;

	if (frame == FRAME_NONE || job->frames.data[frame].kind != KIND_OPERATOR)
		return false;
	for (uint32_t w = 0; w < job->worker_cnt; w++) {
		const struct fingerprint *fp = job->workers[w].fp;

		for (size_t i = 0; i < fp->function_cnt && !accusation_has(a, w); i++) {
			const char *by = fp->functions[i].launched_by;

			if (by != NULL && strstr(by, job->frames.data[frame].name) != NULL)
				return true;
		}
	}
	return false;
}

double usercode_extra_ns(const struct job *job, const struct accusation *a, double *scratch)
{
	double mine, most = 0;

	if (a->frame == FRAME_NONE || a->rotates || a->place_cnt > 0 || a->spread ||
	    a->worker_cnt >= job->worker_cnt)
		return 0;
	for (size_t i = 0; i < a->worker_cnt; i++)
		scratch[i] = job_subtree_ns(job, a->frame, a->workers[i], ~0u);
	mine = stats_median(scratch, a->worker_cnt);
	for (uint32_t w = 0; w < job->worker_cnt; w++) {
		if (!accusation_has(a, w))
			most = fmax(most, job_subtree_ns(job, a->frame, w, ~0u));
	}
	return most <= EXTRA_FRAC * mine && !peers_launch(job, a) ? mine : 0;
}

/* The user's function around an operator, if only the accused call that, too; else the place. */
static uint32_t caller_of(const struct job *job, const struct accusation *a, double *scratch)
{
	struct accusation caller = *a;

	while (caller.frame != FRAME_NONE && !job->frames.data[caller.frame].trains &&
	       !usercode_is(&job->frames.data[caller.frame]))
		caller.frame = job->frames.data[caller.frame].parent;
	if (caller.frame == FRAME_NONE || job->frames.data[caller.frame].trains ||
	    usercode_extra_ns(job, &caller, scratch) <= 0)
		return a->frame;
	return caller.frame;
}

int usercode_name(const struct job *job, accusations *list)
{
	_cleanup_free_ double *scratch = calloc(job->worker_cnt + 1, sizeof(*scratch));

	if (scratch == NULL)
		return -ENOMEM;
	vec_foreach(a, list) {
		uint32_t around;

		if (is_host_place(a)) {
			around = usercode_around(job->frames.data, a->frame);
			if (around != a->frame &&
			    excess_ns(job, a, a->frame, scratch) >=
				    LEDGER_MOST * excess_ns(job, a, around, scratch))
				a->frame = around;
		}
		if (is_on_host(job, a))
			a->frame = narrowed(job, a, scratch);
		if (is_on_host(job, a) && usercode_extra_ns(job, a, scratch) > 0)
			a->frame = caller_of(job, a, scratch);
	}
	return 0;
}
