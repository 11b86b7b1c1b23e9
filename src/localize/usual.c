/* SPDX-License-Identifier: Apache-2.0 */
#include "localize/usual.h"

#include "base/str.h"
#include "model/rankset.h"

#include <errno.h>

static int note(struct report *out, const char **notes, const struct job *job, const char *why,
		const struct accusation *a)
{
	bool all = a->worker_cnt == job->worker_cnt;
	_cleanup_free_ int *ranks = calloc(a->worker_cnt + 1, sizeof(*ranks));
	_cleanup_(str_done) struct str who = { 0 };

	if (ranks == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < a->worker_cnt; i++)
		ranks[i] = job->workers[a->workers[i]].fp->rank;
	if (!all)
		rankset_format(&who, ranks, a->worker_cnt);
	if (str_error(&who) < 0)
		return -ENOMEM;
	return parts_note(out, notes,
			  arena_printf(&out->arena,
				       "%s%s: %.1f ms per iteration (%.1f %%) more in %s than a "
				       "healthy job is expected to spend, %s",
				       all		   ? "all ranks"
				       : a->worker_cnt > 1 ? "ranks "
							   : "rank ",
				       str_borrow(&who), a->own_ns / 1e6,
				       100 * a->own_ns / job->iteration_ns,
				       job->frames.data[a->frame].name, why));
}

static const char *reason(const struct accuse_options *options, const struct accusation *a)
{
	if (a->recalled)
		return "as in its own past";
	return options->slowdown_ns > 0 ? "but that does not explain the slowdown"
					: "but the job is as fast as ever";
}

/* A function and the built-in that it calls are one place. */
static bool is_noted(const struct job *job, const accusations *list, size_t at)
{
	uint32_t frame = list->data[at].frame;

	for (size_t i = 0; i < at; i++) {
		uint32_t other = list->data[i].frame;

		if (list->data[i].usual &&
		    (job_frame_below(job, frame, other) || job_frame_below(job, other, frame)))
			return true;
	}
	return false;
}

int usual_note(struct report *out, const char **notes, const struct job *job,
	       const struct accuse_options *options, accusations *list)
{
	size_t kept = 0;
	int error = 0;

	for (size_t i = 0; i < list->cnt && error == 0; i++) {
		const struct accusation *a = &list->data[i];

		if (a->usual && !is_noted(job, list, i))
			error = note(out, notes, job, reason(options, a), a);
	}
	for (size_t i = 0; i < list->cnt; i++) {
		if (!list->data[i].usual)
			list->data[kept++] = list->data[i];
	}
	list->cnt = kept;
	return error;
}
