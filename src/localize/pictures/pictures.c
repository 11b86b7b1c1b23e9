/* SPDX-License-Identifier: Apache-2.0 */
#include "localize/pictures/pictures.h"

#include "localize/pictures/flame.h"
#include "localize/pictures/iterationlanes.h"

#include <errno.h>

#define WAITS_MAX 4096u

int pictures_waits(const struct job *job, const struct blame *blame, struct report *out)
{
	size_t cnt = MIN(blame->waits.cnt, (size_t)WAITS_MAX);
	struct report_wait *list = arena_calloc(&out->arena, cnt + 1, sizeof(*list));

	if (list == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < cnt; i++) {
		const struct blame_wait *w = &blame->waits.data[i];

		list[i] = (struct report_wait){
			.from = job->workers[w->from].fp->rank,
			.to = job->workers[w->to].fp->rank,
			.wait_ms = w->ns / 1e6,
			.collective_cnt = w->cnt,
		};
	}
	out->waits = list;
	out->wait_cnt = cnt;
	return 0;
}

/* Lateness by iteration; the report lists the job's workers in the same order. */
static int fill_lateness(const struct job *job, const struct blame *blame, struct report *out)
{
	struct report_worker *list;

	if (out->worker_cnt != job->worker_cnt)
		return 0;
	list = arena_calloc(&out->arena, out->worker_cnt + 1, sizeof(*list));
	if (list == NULL)
		return -ENOMEM;
	for (size_t w = 0; w < out->worker_cnt; w++) {
		const struct blame_worker *of = &blame->workers[w];
		double *late;

		list[w] = out->workers[w];
		if (!of->matched || of->iteration_lost_ns == NULL)
			continue;
		late = arena_calloc(&out->arena, list[w].iteration_cnt + 1, sizeof(*late));
		if (late == NULL)
			return -ENOMEM;
		for (size_t i = 0; i < list[w].iteration_cnt; i++)
			late[i] = of->iteration_lost_ns[i] / 1e6;
		list[w].late_ms = late;
	}
	out->workers = list;
	return 0;
}

/* Workers are in the order of ranks. */
static size_t find_worker(const struct job *job, int rank)
{
	size_t low = 0, high = job->worker_cnt;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (job->workers[middle].fp->rank < rank)
			low = middle + 1;
		else
			high = middle;
	}
	return low < job->worker_cnt && job->workers[low].fp->rank == rank ? low : SIZE_MAX;
}

/*
 * The rank that the pictures are about: of the first finding that names some ranks the one that
 * others wait longest for. SIZE_MAX: no finding names one.
 */
static size_t find_culprit(const struct job *job, const struct blame *blame,
			   const struct report *report)
{
	size_t found = SIZE_MAX;

	for (size_t i = 0; i < report->finding_cnt && found == SIZE_MAX; i++) {
		const struct finding *finding = &report->findings[i];

		for (size_t r = 0; r < finding->rank_cnt && !finding->all_workers; r++) {
			size_t w = find_worker(job, finding->ranks[r]);

			if (w == SIZE_MAX)
				continue;
			if (found == SIZE_MAX ||
			    (blame != NULL &&
			     blame->workers[w].lost_ns > blame->workers[found].lost_ns))
				found = w;
		}
	}
	return found;
}

int pictures_fill(const struct job *job, const struct blame *blame, struct report *out)
{
	size_t culprit = find_culprit(job, blame, out);
	int error = blame != NULL ? fill_lateness(job, blame, out) : 0;

	if (error == 0 && job->worker_cnt > 0)
		error = flame_fill(job, culprit, out);
	if (error == 0 && culprit != SIZE_MAX)
		error = iterationlanes_fill(job, blame, culprit, out);
	return error;
}
