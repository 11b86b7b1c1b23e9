/* SPDX-License-Identifier: Apache-2.0 */
#include "format/sidecar/bounds.h"

static void add_bound(struct sidecar *side, uint64_t step, int64_t time_ns)
{
	size_t cnt = side->iterations.cnt;

	if (time_ns < side->header.start_ns ||
	    (cnt > 0 && time_ns <= side->iterations.data[cnt - 1].start_ns))
		return;
	(void)vec_push(&side->iterations, (struct sidecar_iteration){ step, time_ns });
}

static void add_seen(struct bounds *bounds, const struct bounds_view *view, struct sidecar *side)
{
	/* An iteration has the number of the step before it. */
	uint64_t inside = view->bound_ns < view->end_ns ? view->step_cnt : 0;

	add_bound(side, bounds->step - MIN(inside, bounds->step), view->bound_ns);
	bounds->end_ns = view->end_ns;
}

static bool is_step(const struct ring_record *record)
{
	return record->kind == MARK_OPTIMIZER ||
	       (record->kind == MARK_BACKWARD && record->extra != 0);
}

/* Without a detector. */
static void add_likely(struct bounds *bounds, const struct ring_record *record,
		       struct sidecar *side)
{
	bool bound = record->kind == MARK_ITERATION;

	if (record->kind == MARK_DATALOADER)
		bound = bounds->stepped || !bounds->loaded;
	else if (is_step(record))
		bound = !bounds->loaded && record->extra != 0;
	if (bound)
		add_bound(side, bounds->step, record->time_ns);
	if (is_step(record))
		bounds->end_ns = record->time_ns;
}

void bounds_mark(struct bounds *bounds, const struct ring_record *record,
		 const struct bounds_view *view, struct sidecar *side)
{
	if (record->extra != 0)
		bounds->step = record->extra;
	if (view->learned && view->ended)
		add_seen(bounds, view, side);
	else if (!view->learned)
		add_likely(bounds, record, side);
	if (is_step(record))
		bounds->stepped = true;
	else if (record->kind == MARK_DATALOADER)
		bounds->stepped = false;
	bounds->loaded = bounds->loaded || record->kind == MARK_DATALOADER;
}

void bounds_end(const struct bounds *bounds, uint64_t last_step, struct sidecar *side)
{
	while (last_step > 0 && side->iterations.cnt > 0 &&
	       side->iterations.data[side->iterations.cnt - 1].step > last_step)
		side->iterations.cnt--;
	if (last_step > 0 && bounds->step > last_step)
		return;
	if (side->iterations.cnt > 0 && bounds->end_ns > 0)
		add_bound(side, bounds->step, bounds->end_ns);
}
