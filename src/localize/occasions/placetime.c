/* SPDX-License-Identifier: Apache-2.0 */
#include "localize/occasions/placetime.h"

#include "localize/witness/excess.h"

static double share_of(const struct job *job, uint32_t frame, size_t w, enum place_time time)
{
	bool idle = excess_is_stretch(&job->frames.data[frame]);
	uint32_t idx = job_function_find(job, frame, idle ? CLASS_IDLE : CLASS_HOST);
	const struct fp_function *f = idx != FRAME_NONE ? job->functions.data[idx].of[w] : NULL;

	if (f == NULL)
		return 0;
	return (double)(time == TIME_THREAD ? f->thread_ns : f->share_ns) /
	       (double)job->workers[w].fp->window_ns;
}

double place_own_beta(const struct job *job, uint32_t frame, size_t w, enum place_time time)
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
static double loader_beta(const struct job *job, uint32_t frame, size_t w, enum place_time time)
{
	double ns = time == TIME_THREAD ? job_thread_ns(job, frame, w)
					: job_subtree_ns(job, frame, w, 1u << CLASS_HOST);

	return ns * job->workers[w].iterations / (double)job->workers[w].fp->window_ns;
}

double place_beta(const struct job *job, uint32_t frame, size_t w, enum place_time time)
{
	return job->frames.data[frame].kind == KIND_ANNOTATION
		       ? loader_beta(job, frame, w, time)
		       : place_own_beta(job, frame, w, time);
}
