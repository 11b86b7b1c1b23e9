/* SPDX-License-Identifier: Apache-2.0 */
#include "localize/usual.h"

#include "base/str.h"
#include "localize/cause.h"
#include "localize/usercode.h"
#include "model/rankset.h"
#include "model/thresholds.h"

#include <errno.h>
#include <string.h>

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

static const char *reason(const struct job *job, const struct accuse_options *options,
			  const struct accusation *a)
{
	if (a->recalled)
		return "as in its own past";
	if (options->slowdown_ns > 0)
		return "but that does not explain the slowdown";
	return options->baseline_ns > 0 &&
			       job->iteration_ns >= WINDOW_SLOW_FACTOR * options->baseline_ns
		       ? "but the job was as fast as ever before this window"
		       : "but the job is as fast as ever";
}

/* A function and the built-in that it calls are one place; so is a finding with all below it. */
static bool is_noted(const struct job *job, const accusations *list, size_t at)
{
	uint32_t frame = list->data[at].frame;

	for (size_t i = 0; i < list->cnt; i++) {
		const struct accusation *a = &list->data[i];
		uint32_t other = a->frame;
		bool found = !a->usual &&
			     (a->witness == WITNESS_EXPECTATION || a->part_of_ns > 0) &&
			     other != FRAME_NONE && a->strikes == NULL;

		if ((found || (a->usual && i < at)) &&
		    (job_frame_below(job, frame, other) || job_frame_below(job, other, frame)))
			return true;
	}
	return false;
}

int usual_find_unequal(const struct job *job, const struct blame *blame,
		       const struct accuse_options *options, const accusations *list,
		       struct conclude_late *ret)
{
	_cleanup_free_ double *scratch = calloc(job->worker_cnt + 1, sizeof(*scratch));

	*ret = (struct conclude_late){ .rank = -1 };
	if (scratch == NULL)
		return -ENOMEM;
	if (blame->matched_cnt > 0 || options->slow)
		return 0;
	for (size_t i = 0; i < list->cnt; i++) {
		const struct accusation *a = &list->data[i];
		double ns = a->usual && !a->recalled ? usercode_extra_ns(job, a, scratch) : 0;
		uint32_t frame;

		if (ns / 1e6 <= ret->ms || 100 * ns < CHANCE_PCT * job->iteration_ns)
			continue;
		frame = usercode_around(job->frames.data, a->frame);
		*ret = (struct conclude_late){
			.rank = job->workers[a->workers[0]].fp->rank,
			.ms = ns / 1e6,
			.pct = 100 * ns / job->iteration_ns,
			.name = job->frames.data[frame].name,
		};
	}
	return 0;
}

int usual_note(struct report *out, const char **notes, const struct job *job,
	       const struct accuse_options *options, accusations *list)
{
	size_t kept = 0;
	int error = 0;

	for (size_t i = 0; i < list->cnt && error == 0; i++) {
		const struct accusation *a = &list->data[i];

		if (a->usual && !is_noted(job, list, i))
			error = note(out, notes, job, reason(job, options, a), a);
	}
	for (size_t i = 0; i < list->cnt; i++) {
		if (!list->data[i].usual)
			list->data[kept++] = list->data[i];
	}
	list->cnt = kept;
	return error;
}

static bool is_bearable(const struct finding *f)
{
	return strcmp(f->id, cause_text(CAUSE_CPU_STARVED)->number) == 0 &&
	       f->gain_pct < CHECKUP_STARVED_PCT;
}

int usual_note_starved(struct report *out, const char **notes)
{
	struct finding *kept;
	size_t cnt = 0;
	int error = 0;

	if (!out->trigger.present || strcmp(out->trigger.kind, "checkup") != 0)
		return 0;
	kept = arena_calloc(&out->arena, out->finding_cnt + 1, sizeof(*kept));
	if (kept == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < out->finding_cnt && error == 0; i++) {
		const struct finding *f = &out->findings[i];

		if (!is_bearable(f)) {
			kept[cnt++] = *f;
			continue;
		}
		error = parts_note(
			out, notes,
			arena_printf(&out->arena,
				     "%s: it costs %.2f ms per iteration (%.1f %%), which a busy "
				     "machine does to a healthy job",
				     f->title, f->gain_ms_per_iteration, f->gain_pct));
	}
	out->findings = kept;
	out->finding_cnt = cnt;
	return error;
}
