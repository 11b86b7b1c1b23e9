/* SPDX-License-Identifier: Apache-2.0 */
#include "localize/occasions/beginning.h"

#include "localize/waits/waits.h"
#include "model/thresholds.h"

#include <string.h>

#define PROFILER "torch/profiler/profiler.py("

/* Whether the device had no work for as long as own_ns in the first iteration, but not later. */
static bool idles_first(const struct fingerprint *fp, double own_ns)
{
	double later_ns = 0, first_ns;

	if (fp->use_cnt < EXPECT_RARE_MIN)
		return false;
	first_ns = (double)(fp->iterations[0].dur_ns - fp->uses[0].busy_ns);
	for (size_t i = 1; i < fp->use_cnt; i++)
		later_ns += (double)(fp->iterations[i].dur_ns - fp->uses[i].busy_ns);
	own_ns *= (double)fp->use_cnt;
	return first_ns >= EXPECT_OFTEN * own_ns && later_ns < EXPECT_OFTEN * own_ns;
}

/* Whether most of it is where torch's profiler starts or ends: a window's own cost is no fault. */
static bool is_of_profiler(const struct job *job, const struct accusation *a)
{
	uint32_t frame = waits_frame(a, job);

	while (frame != FRAME_NONE &&
	       strncmp(job->frames.data[frame].name, PROFILER, strlen(PROFILER)) != 0)
		frame = job->frames.data[frame].parent;
	return frame != FRAME_NONE && a->class == CLASS_HOST;
}

static bool is_of_beginning(const struct job *job, const struct accusation *a)
{
	bool ret = a->worker_cnt > 0 && !a->usual && a->class == CLASS_HOST &&
		   job_waits_for_device(job, a->function);

	for (size_t i = 0; i < a->worker_cnt && ret; i++)
		ret = idles_first(job->workers[a->workers[i]].fp, a->own_ns);
	return ret;
}

void beginning_drop(const struct job *job, accusations *list)
{
	size_t kept = 0;

	for (size_t i = 0; i < list->cnt; i++) {
		struct accusation a = list->data[i];

		if (!is_of_beginning(job, &a) && !is_of_profiler(job, &a))
			list->data[kept++] = a;
	}
	list->cnt = kept;
}
