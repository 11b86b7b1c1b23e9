/* SPDX-License-Identifier: Apache-2.0 */
/* build_finish(): pairs, parents, order, names of lanes. */
#include "read/common/build.h"
#include "read/common/order.h"

#include <errno.h>
#include <string.h>

static int half_cmp(const void *a, const void *b)
{
	const struct half *x = a, *y = b;

	if (x->lane != y->lane)
		return x->lane < y->lane ? -1 : 1;
	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

/* An end closes the innermost open begin of its lane, whatever its name. */
static int pair_end(struct build *build, const struct half *begin, const struct half *end)
{
	struct event event = {
		.start_ns = begin->time_ns,
		.name = begin->name,
		.args = begin->args,
		.lane = begin->lane,
		.kind = begin->kind,
	};

	if (__builtin_sub_overflow(end->time_ns, begin->time_ns, &event.dur_ns)) {
		build->trace->drops.bad_event++;
		return 0;
	}
	return build_event(build, event, NULL);
}

static int pair_halves(struct build *build)
{
	struct trace_drops *drops = &build->trace->drops;
	struct half *halves = build->halves.data;
	size_t open_cnt = 0; /* halves[0..open_cnt) are the open begins, moved to the front */
	int ret = 0;

	if (build->halves.cnt == 0)
		return 0;
	qsort(halves, build->halves.cnt, sizeof(*halves), half_cmp);
	for (size_t i = 0; i < build->halves.cnt && ret == 0; i++) {
		struct half half = halves[i];

		if (open_cnt > 0 && halves[open_cnt - 1].lane != half.lane) {
			drops->unmatched_begin += open_cnt;
			open_cnt = 0;
		}
		if (!half.is_end)
			halves[open_cnt++] = half;
		else if (open_cnt == 0)
			drops->unmatched_end++;
		else
			ret = pair_end(build, &halves[--open_cnt], &half);
	}
	drops->unmatched_begin += open_cnt;
	return ret;
}

static int sample_cmp(const void *a, const void *b)
{
	int64_t x = ((const struct sample *)a)->time_ns, y = ((const struct sample *)b)->time_ns;

	return (x > y) - (x < y);
}

static void finish_tracks(struct trace *trace, int64_t base_ns)
{
	for (size_t t = 0; t < trace->track_cnt; t++) {
		struct track *track = &trace->tracks[t];
		size_t kept = 0;

		for (size_t i = 0; i < track->cnt; i++) {
			struct sample sample = track->samples[i];

			if (__builtin_add_overflow(sample.time_ns, base_ns, &sample.time_ns))
				trace->drops.bad_event++;
			else
				track->samples[kept++] = sample;
		}
		track->cnt = kept;
		qsort(track->samples, kept, sizeof(*track->samples), sample_cmp);
	}
}

/* A table from codes to events: an array where the codes lie close together. */
struct codes {
	uint32_t low, high; /* empty while low > high */
	size_t cnt;
	uint32_t *dense;
	struct idmap map;
};

static void codes_count(struct codes *codes, uint32_t code)
{
	codes->low = MIN(codes->low, code);
	codes->high = MAX(codes->high, code);
	codes->cnt++;
}

/* Frames and launching calls have separate ids. */
struct links {
	struct codes frames, calls;
};

static bool is_frame(const struct event *event)
{
	return event->kind == KIND_PYTHON;
}

/* Adds the event's own id, which args holds until build_finish(). */
static struct codes *links_of(struct links *links, const struct event *event)
{
	return is_frame(event) ? &links->frames : &links->calls;
}

/*
 * Adds the base to all times; events beyond the range of int64 are dropped. Counts the ids
 * of the others in the same pass: each pass over all events is expensive.
 */
static void shift(struct trace *trace, int64_t base_ns, struct links *links)
{
	size_t kept = 0;

	for (size_t i = 0; i < trace->event_cnt; i++) {
		struct event *event = &trace->events[i];
		int64_t end_ns;

		if (__builtin_add_overflow(event->start_ns, base_ns, &event->start_ns) ||
		    __builtin_add_overflow(event->start_ns, event->dur_ns, &end_ns)) {
			trace->drops.bad_event++;
			continue;
		}
		if (build_has_id(event) && event->args != CODE_NONE)
			codes_count(links_of(links, event), event->args);
		if (kept != i)
			trace->events[kept] = *event;
		kept++;
	}
	trace->event_cnt = kept;
}

static int codes_open(struct codes *codes)
{
	size_t span = codes->low <= codes->high ? (size_t)(codes->high - codes->low) + 1 : 0;

	if (span == 0 || span / 3 > codes->cnt)
		return 0;
	codes->dense = malloc(span * sizeof(*codes->dense));
	if (codes->dense == NULL)
		return -ENOMEM;
	memset(codes->dense, 0xff, span * sizeof(*codes->dense));
	return 0;
}

static int codes_set(struct codes *codes, uint32_t code, uint32_t event)
{
	if (codes->dense == NULL)
		return idmap_set(&codes->map, code, event);
	codes->dense[code - codes->low] = event;
	return 0;
}

static uint32_t codes_get(const struct codes *codes, uint32_t code)
{
	if (code == CODE_NONE)
		return EVENT_NONE;
	if (codes->dense == NULL)
		return idmap_get(&codes->map, code);
	return code >= codes->low && code <= codes->high ? codes->dense[code - codes->low]
							 : EVENT_NONE;
}

static void codes_done(struct codes *codes)
{
	free(codes->dense);
	idmap_done(&codes->map);
}

static void links_done(struct links *links)
{
	codes_done(&links->frames);
	codes_done(&links->calls);
}

static int links_fill(const struct trace *trace, struct links *links)
{
	int ret = codes_open(&links->frames);

	if (ret == 0)
		ret = codes_open(&links->calls);
	for (size_t i = 0; i < trace->event_cnt && ret == 0; i++) {
		const struct event *event = &trace->events[i];

		if (build_has_id(event) && event->args != CODE_NONE)
			ret = codes_set(links_of(links, event), event->args, (uint32_t)i);
	}
	return ret;
}

/*
 * Turns codes of parents into event indexes. Returns whether a parent comes after its child:
 * only then can the links contain a cycle.
 */
static bool links_resolve(struct trace *trace, struct links *links)
{
	bool any_behind = false;

	for (size_t i = 0; i < trace->event_cnt; i++) {
		struct event *event = &trace->events[i];
		const struct codes *codes = is_frame(event) ? &links->frames : &links->calls;

		event->parent = codes_get(codes, event->parent);
		if (event->parent == i)
			event->parent = EVENT_NONE;
		any_behind |= event->parent != EVENT_NONE && event->parent > i;
		if (build_has_id(event))
			event->args = 0;
	}
	return any_behind;
}

enum color { COLOR_NEW, COLOR_PATH, COLOR_DONE };

/* Cuts cycles of frames: code that walks up the parents would not end. */
static void cut_rings(struct trace *trace)
{
	for (size_t i = 0; i < trace->event_cnt; i++) {
		uint32_t at = (uint32_t)i, before = EVENT_NONE;

		while (at != EVENT_NONE && trace->events[at].scratch == COLOR_NEW) {
			trace->events[at].scratch = COLOR_PATH;
			before = at;
			at = trace->events[at].parent;
		}
		if (at != EVENT_NONE && trace->events[at].scratch == COLOR_PATH) {
			trace->events[before].parent = EVENT_NONE;
			trace->drops.bad_value++;
		}
		for (at = (uint32_t)i; at != EVENT_NONE && trace->events[at].scratch == COLOR_PATH;
		     at = trace->events[at].parent)
			trace->events[at].scratch = COLOR_DONE;
	}
	for (size_t i = 0; i < trace->event_cnt; i++)
		trace->events[i].scratch = 0;
}

/* Thread names come as metadata events; the last one of a lane counts. */
static void label_lanes(struct build *build)
{
	struct trace *trace = build->trace;

	for (size_t i = 0; i < build->labels.cnt; i++) {
		const struct lane_label *label = &build->labels.data[i];

		for (int type = LANE_THREAD; type <= LANE_OTHER; type++) {
			int lane = build_lane_find(build, label->pid, label->tid,
						   (enum lane_type)type);

			if (lane >= 0)
				trace->lanes[lane].name = label->name;
		}
	}
}

/* Frees memory that growth has reserved and the events do not use. */
static void trim(struct trace *trace)
{
	struct event *events = trace->event_cnt == 0
				       ? NULL
				       : realloc(trace->events, trace->event_cnt * sizeof(*events));

	if (events == NULL)
		return;
	trace->events = events;
	trace->event_cap = trace->event_cnt;
}

/* Sorts the events and links them. */
static int finish_events(struct trace *trace, struct links *links)
{
	int ret = order_events(&trace->events, trace->event_cnt);

	trace->event_cap = trace->event_cnt;
	for (size_t i = 0; i < trace->event_cnt; i++)
		trace->events[i].scratch = 0;
	if (ret == 0)
		ret = links_fill(trace, links);
	if (ret == 0 && links_resolve(trace, links))
		cut_rings(trace);
	return ret;
}

int build_finish(struct build *build, int64_t base_ns)
{
	struct links links = { .frames.low = UINT32_MAX, .calls.low = UINT32_MAX };
	struct trace *trace = build->trace;
	int ret = pair_halves(build);

	if (ret < 0)
		return ret;
	vec_done(&build->halves);
	shift(trace, base_ns, &links);
	finish_tracks(trace, base_ns);
	trim(trace);
	ret = finish_events(trace, &links);
	links_done(&links);
	if (ret < 0)
		return ret;
	label_lanes(build);
	return 0;
}
