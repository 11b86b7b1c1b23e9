/* SPDX-License-Identifier: Apache-2.0 */
#include "summarize/spread.h"

#include <errno.h>
#include <math.h>

#define CELLS_MAX ((size_t)4 << 20) /* functions * iterations: 32 MB */

/* Divides [start, end) of the path among the iterations it lies in. */
static void charge(struct spread *s, size_t function, int64_t start_ns, int64_t end_ns)
{
	while (s->next < s->iteration_cnt &&
	       s->iterations[s->next].start_ns + s->iterations[s->next].dur_ns <= start_ns)
		s->next++;
	for (size_t i = s->next; i < s->iteration_cnt; i++) {
		int64_t from_ns = MAX(start_ns, s->iterations[i].start_ns);
		int64_t to_ns = MIN(end_ns, s->iterations[i].start_ns + s->iterations[i].dur_ns);

		if (s->iterations[i].start_ns >= end_ns)
			break;
		if (to_ns > from_ns)
			s->cells[i * s->function_cnt + function] += (double)(to_ns - from_ns);
	}
}

/*
 * Standard deviation of cnt cells, stride apart, scaled to the share: a stretch shared by several
 * functions is charged to one of them.
 */
static double cells_spread(const double *cells, size_t cnt, size_t stride, int64_t share_ns)
{
	double sum = 0, squares = 0;

	for (size_t i = 0; i < cnt; i++)
		sum += cells[i * stride];
	if (sum <= 0)
		return 0;
	for (size_t i = 0; i < cnt; i++)
		squares += (cells[i * stride] - sum / (double)cnt) *
			   (cells[i * stride] - sum / (double)cnt);
	return sqrt(squares / (double)(cnt - 1)) * (double)share_ns / sum;
}

int spread_init(struct spread *spread, const struct pass *p, const struct fingerprint *fp)
{
	*spread = (struct spread){ .iterations = p->window.iterations.data,
				   .iteration_cnt = p->window.iterations.cnt,
				   .sample_ns = p->trace->meta.sample_ns,
				   .function_cnt = fp->function_cnt };
	if (p->window.iterations_by == ITERATIONS_UNKNOWN || spread->iteration_cnt < 2 ||
	    fp->function_cnt > CELLS_MAX / spread->iteration_cnt)
		return 0;
	spread->cells =
		calloc(fp->function_cnt * spread->iteration_cnt + 1, sizeof(*spread->cells));
	return spread->cells != NULL ? 0 : -ENOMEM;
}

void spread_segment(struct spread *spread, const struct pass *p, const struct crit_segment *seg)
{
	uint32_t f = nodemap_get(&p->index.map, seg->node, seg->class);

	if (f != NODEMAP_NONE && spread->cells != NULL)
		charge(spread, f, seg->start_ns - p->window.start_ns,
		       seg->end_ns - p->window.start_ns);
}

/*
 * k samples vary by the root of k: their time, by the root of time and period. What has more than
 * a sample an iteration shows its variation itself, but for the ends.
 */
static double samples_spread(const struct spread *spread, const struct fingerprint *fp, size_t f)
{
	const struct fp_function *of = &fp->functions[f];
	double share_ns = (double)of->share_ns / (double)spread->iteration_cnt;

	if (of->frame == FRAME_NONE || is_device_kind(fp->frames[of->frame].kind))
		return 0;
	return sqrt(fmin(share_ns, (double)spread->sample_ns) * (double)spread->sample_ns);
}

void spread_end(const struct spread *spread, struct fingerprint *fp)
{
	for (size_t f = 0; f < fp->function_cnt && spread->cells != NULL; f++) {
		double seen_ns = cells_spread(&spread->cells[f], spread->iteration_cnt,
					      fp->function_cnt, fp->functions[f].share_ns);

		fp->functions[f].spread_ns = fmax(seen_ns, samples_spread(spread, fp, f));
	}
}

void spread_done(struct spread *spread)
{
	free(spread->cells);
	spread->cells = NULL;
}
