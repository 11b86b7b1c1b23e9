/* SPDX-License-Identifier: Apache-2.0 */
#include "localize/shares.h"

#include "localize/parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

/* Of one name and class: the largest first, whose caller stands for all. */
static int by_name(const void *a, const void *b)
{
	const struct report_share *x = a, *y = b;
	int order = strcmp(x->name, y->name);

	if (order != 0 || x->class != y->class)
		return order != 0 ? order : (int)x->class - (int)y->class;
	if (x->frac != y->frac)
		return x->frac > y->frac ? -1 : 1;
	return strcmp(x->caller, y->caller);
}

/* Sums what is called from several places. Returns how many are left. */
static size_t join_places(struct report_share *all, size_t cnt)
{
	size_t kept = 0;

	qsort(all, cnt, sizeof(*all), by_name);
	for (size_t i = 0; i < cnt; i++) {
		struct report_share *last = kept > 0 ? &all[kept - 1] : NULL;

		if (last == NULL || last->class != all[i].class ||
		    strcmp(last->name, all[i].name) != 0) {
			all[kept++] = all[i];
			continue;
		}
		last->frac += all[i].frac;
		last->place_cnt++;
	}
	return kept;
}

static int copy_names(struct report *report, struct report_share *list)
{
	for (size_t i = 0; i < report->share_cnt; i++) {
		list[i].name = parts_copy(report, list[i].name);
		list[i].caller = parts_copy(report, list[i].caller);
		if (list[i].name == NULL || list[i].caller == NULL)
			return -ENOMEM;
	}
	return 0;
}

int shares_list(const struct job *job, struct report *report)
{
	_cleanup_free_ struct report_share *all = calloc(job->functions.cnt + 1, sizeof(*all));
	struct report_share *list = arena_calloc(&report->arena, SHARES_MAX, sizeof(*list));
	size_t cnt = 0;

	if (list == NULL || all == NULL)
		return -ENOMEM;
	vec_foreach(f, &job->functions)
		all[cnt++] = (struct report_share){
			.name = f->frame != FRAME_NONE ? job->frames.data[f->frame].name
						       : "outside of all functions",
			.caller = caller_name(job, f->frame),
			.class = (enum event_class)f->class,
			.frac = mean_frac(job, f),
			.place_cnt = 1,
		};
	cnt = join_places(all, cnt);
	for (size_t i = 0; i < cnt; i++) {
		all[i].ms_per_iteration = all[i].frac * job->iteration_ns / 1e6;
		if (all[i].frac >= SHARE_LEAST_FRAC)
			insert(list, &report->share_cnt, &all[i]);
	}
	report->shares = list;
	return copy_names(report, list);
}
