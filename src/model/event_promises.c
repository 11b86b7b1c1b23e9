/* SPDX-License-Identifier: Apache-2.0 */
#include "model/event_promises.h"

#define WALKED_MAX 1000 /* number of events whose ancestors are counted */

static const char *event_broken(const struct trace *trace, size_t i)
{
	const struct event *event = &trace->events[i];
	int64_t end_ns;

	if (event->dur_ns < 0)
		return "negative duration";
	if (__builtin_add_overflow(event->start_ns, event->dur_ns, &end_ns))
		return "end out of range";
	if (event->kind >= KIND_CNT || event->scratch != 0)
		return "kind out of range, or a byte of the reader";
	if (event->lane >= trace->lane_cnt)
		return "lane out of range";
	if (event->name >= trace->strings.cnt)
		return "name out of range";
	if (event->args > trace->args_cnt)
		return "arguments out of range";
	if (event->parent != EVENT_NONE && event->parent >= trace->event_cnt)
		return "parent out of range";
	if (i > 0 && (event[-1].start_ns > event->start_ns ||
		      (event[-1].start_ns == event->start_ns && event[-1].dur_ns < event->dur_ns)))
		return "events out of order";
	return NULL;
}

/* No event is its own ancestor: every walk to a root ends. */
static const char *parents_broken(const struct trace *trace)
{
	for (size_t i = 0; i < trace->event_cnt && i < WALKED_MAX; i++) {
		size_t steps = 0;

		for (uint32_t at = (uint32_t)i; at != EVENT_NONE; at = trace->events[at].parent) {
			if (steps++ > trace->event_cnt)
				return "ring of parents";
		}
	}
	return NULL;
}

static const char *track_broken(const struct track *track)
{
	for (size_t i = 0; i < track->cnt; i++) {
		double value = track->samples[i].value;

		if (value != value)
			return "sample is not a number";
		if (track->resource != RESOURCE_OTHER && (value < 0 || value > 1))
			return "share out of range";
		if (i > 0 && track->samples[i - 1].time_ns > track->samples[i].time_ns)
			return "samples out of order";
	}
	return NULL;
}

const char *event_promise_broken(const struct trace *trace)
{
	const char *broken = NULL;

	for (size_t i = 0; i < trace->event_cnt && broken == NULL; i++)
		broken = event_broken(trace, i);
	if (broken == NULL)
		broken = parents_broken(trace);
	for (size_t i = 0; i < trace->track_cnt && broken == NULL; i++)
		broken = track_broken(&trace->tracks[i]);
	return broken;
}
