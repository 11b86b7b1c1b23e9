/* SPDX-License-Identifier: Apache-2.0 */
#include "summarize/repeats.h"

#include "base/recurrence.h"
#include "summarize/classify.h"

#include <errno.h>

#define COVERED_FRAC 0.8 /* of the window, at least: a loop's kernels are all over it */

/* The stream with the most kernels; LANE_NONE: there are none. */
static int busiest_stream(const struct trace *trace, uint32_t *ret)
{
	_cleanup_free_ uint64_t *cnt = calloc(trace->lane_cnt + 1, sizeof(*cnt));

	if (cnt == NULL)
		return -ENOMEM;
	*ret = LANE_NONE;
	for (size_t i = 0; i < trace->event_cnt; i++)
		cnt[trace->events[i].lane] += trace->events[i].kind == KIND_KERNEL;
	for (uint32_t i = 0; i < trace->lane_cnt; i++) {
		if (cnt[i] > 0 && (*ret == LANE_NONE || cnt[i] > cnt[*ret]))
			*ret = i;
	}
	return 0;
}

/* stream LANE_NONE: collectives of all threads. */
static bool may_delimit(const struct trace *trace, const struct event *event, uint32_t stream)
{
	if (stream != LANE_NONE)
		return event->kind == KIND_KERNEL && event->lane == stream;
	return classify_is_collective((enum event_kind)event->kind, event_name(trace, event));
}

/* Collectives have one name for all sizes. */
static uint32_t size_of(const struct trace *trace, const struct event *event)
{
	const struct event_args *args = event_args_borrow(trace, event);

	if (event->kind == KIND_KERNEL || args == NULL)
		return 0;
	return (uint32_t)MAX(args->bytes, args->elements);
}

static int collect(const struct trace *trace, uint32_t stream, recurrence_vec *ret)
{
	for (size_t i = 0; i < trace->event_cnt; i++) {
		const struct event *e = &trace->events[i];
		struct recurrence_item item = { .start_ns = e->start_ns, .name = e->name };

		if (!may_delimit(trace, e, stream))
			continue;
		item.size = size_of(trace, e);
		if (vec_push(ret, item) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int add(const struct recurrence_item *items, size_t cnt, struct window *window)
{
	for (size_t i = 0; i + 1 < cnt; i++) {
		if (items[i + 1].start_ns > items[i].start_ns &&
		    vec_push(&window->iterations,
			     (struct fp_iteration){ .number = (int64_t)i,
						    .start_ns = items[i].start_ns,
						    .dur_ns = items[i + 1].start_ns -
							      items[i].start_ns }) < 0)
			return -ENOMEM;
	}
	return 0;
}

static bool covers(const struct recurrence_item *items, size_t cnt, const struct window *window)
{
	double length = (double)(window->end_ns - window->start_ns);

	return cnt > 0 &&
	       (double)(items[cnt - 1].start_ns - items[0].start_ns) >= COVERED_FRAC * length;
}

int repeats_add(const struct trace *trace, struct window *window)
{
	recurrence_vec items = { 0 };
	struct recurrence found;
	uint32_t stream;
	int ret;

	if (trace->meta.sampled)
		return 0;
	ret = busiest_stream(trace, &stream);
	if (ret == 0)
		ret = collect(trace, stream, &items);
	if (ret == 0 && items.cnt > 0) {
		found = recurrence_find(&items, stream != LANE_NONE ? 2 : 1, &trace->strings);
		if (covers(&items.data[found.first], found.cnt, window))
			ret = add(&items.data[found.first], found.cnt, window);
	}
	vec_done(&items);
	return ret;
}
