/* SPDX-License-Identifier: Apache-2.0 */
#include "localize/shares.h"

#include "localize/parts.h"

#include <errno.h>

/* Less of the window is not listed. */
#define SHARE_LEAST_FRAC 0.01

/* Share of the window, mean over the workers. */
static double mean_frac(const struct job *job, const struct job_function *f)
{
	double sum = 0;

	for (size_t w = 0; w < job->worker_cnt; w++)
		sum += job_time_ns(job, f, w) * job->workers[w].iterations /
		       (double)job->workers[w].fp->window_ns;
	return sum / (double)job->worker_cnt;
}

/* Inserts into the list, which is sorted and of at most SHARES_MAX. */
static void insert(struct report_share *list, size_t *cnt, const struct report_share *share)
{
	size_t at = *cnt;

	while (at > 0 && list[at - 1].frac < share->frac)
		at--;
	if (at == SHARES_MAX)
		return;
	*cnt = MIN(*cnt + 1, (size_t)SHARES_MAX);
	for (size_t i = *cnt - 1; i > at; i--)
		list[i] = list[i - 1];
	list[at] = *share;
}

static const char *caller_name(const struct job *job, uint32_t frame)
{
	uint32_t parent = frame != FRAME_NONE ? job->frames.data[frame].parent : FRAME_NONE;

	return parent != FRAME_NONE ? job->frames.data[parent].name : "";
}

int shares_list(const struct job *job, struct report *report)
{
	struct report_share *list = arena_calloc(&report->arena, SHARES_MAX, sizeof(*list));

	if (list == NULL)
		return -ENOMEM;
	vec_foreach(f, &job->functions) {
		struct report_share share = { .class = (enum event_class)f->class };

		share.frac = mean_frac(job, f);
		if (share.frac < SHARE_LEAST_FRAC)
			continue;
		share.ms_per_iteration = share.frac * job->iteration_ns / 1e6;
		share.name = f->frame != FRAME_NONE ? job->frames.data[f->frame].name
						    : "outside of all functions";
		share.caller = caller_name(job, f->frame);
		insert(list, &report->share_cnt, &share);
	}
	for (size_t i = 0; i < report->share_cnt; i++) {
		list[i].name = parts_copy(report, list[i].name);
		list[i].caller = parts_copy(report, list[i].caller);
		if (list[i].name == NULL || list[i].caller == NULL)
			return -ENOMEM;
	}
	report->shares = list;
	return 0;
}
