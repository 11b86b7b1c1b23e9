/* SPDX-License-Identifier: Apache-2.0 */
#include "live/pace/pacelog.h"

static void join(struct pacelog_point *to, const struct pacelog_point *next)
{
	to->min_ns = MIN(to->min_ns, next->min_ns);
	to->max_ns = MAX(to->max_ns, next->max_ns);
	to->sum_ns += next->sum_ns;
	to->cnt += next->cnt;
}

static void halve(struct pacelog *log)
{
	for (size_t i = 0; i + 1 < log->cnt; i += 2) {
		log->points[i / 2] = log->points[i];
		join(&log->points[i / 2], &log->points[i + 1]);
	}
	log->cnt /= 2;
	log->per_point *= 2;
}

void pacelog_add(struct pacelog *log, uint64_t step, int64_t iteration_ns)
{
	const struct pacelog_point now = { .step = step,
					   .min_ns = iteration_ns,
					   .max_ns = iteration_ns,
					   .sum_ns = (double)iteration_ns,
					   .cnt = 1 };
	struct pacelog_point *last;

	if (iteration_ns <= 0 || (step == log->last_step && log->cnt > 0))
		return;
	if (step < log->last_step)
		log->cnt = 0;
	if (log->cnt == 0)
		log->per_point = 1;
	log->last_step = step;
	last = log->cnt > 0 ? &log->points[log->cnt - 1] : NULL;
	if (last != NULL && last->cnt < log->per_point) {
		join(last, &now);
		return;
	}
	if (log->cnt == PACELOG_MAX)
		halve(log);
	log->points[log->cnt++] = now;
}

void pacelog_fill(const struct pacelog *log, int64_t best_ns, struct report *report)
{
	struct report_pace_point *points =
		arena_calloc(&report->arena, log->cnt + 1, sizeof(*points));

	if (points == NULL)
		return;
	for (size_t i = 0; i < log->cnt; i++) {
		const struct pacelog_point *p = &log->points[i];

		points[i] = (struct report_pace_point){
			.step = p->step,
			.min_ms = (double)p->min_ns / NSEC_PER_MSEC,
			.mean_ms = p->sum_ns / (double)p->cnt / NSEC_PER_MSEC,
			.max_ms = (double)p->max_ns / NSEC_PER_MSEC,
		};
	}
	report->pace = (struct report_pace){ .points = points,
					     .point_cnt = log->cnt,
					     .best_ms = (double)best_ns / NSEC_PER_MSEC };
}
