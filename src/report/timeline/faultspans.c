/* SPDX-License-Identifier: Apache-2.0 */
#include "report/timeline/faultspans.h"

#include "base/str.h"
#include "format/fingerprint/funckey.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define FINDINGS_MAX 255u
#define GAP_LEAST_FRAC 0.1 /* of what the finding loses per iteration: shorter gaps are usual */
#define SPANS_MAX 4096u	   /* the longest are kept */

/* --- names --- */

static bool ends_in(const char *name, const char *end, size_t end_len)
{
	size_t len = strlen(name);

	return len >= end_len && memcmp(name + len - end_len, end, end_len) == 0 &&
	       (len == end_len || name[len - end_len - 1] == '/');
}

/* Findings have display names, and paths without what is before the package. */
static bool is_named(const char *shown, const char *wanted, size_t wanted_len)
{
	return wanted_len > 0 && ends_in(shown, wanted, wanted_len);
}

static bool is_idle(const struct finding *finding)
{
	return finding->class == CLASS_IDLE && strncmp(finding->name, "idle", 4) == 0;
}

/* The finding that names the function, from 1 on; 0: none. */
static uint8_t find_named(const struct faultspans *f, const char *shown)
{
	for (size_t i = 0; i < f->finding_cnt; i++) {
		const char *name = f->findings[i]->name;

		if (name != NULL && !is_idle(f->findings[i]) && is_named(shown, name, strlen(name)))
			return (uint8_t)(i + 1);
	}
	return 0;
}

/* Of each name that events have. */
static int name_findings(const struct trace *trace, struct faultspans *f)
{
	_cleanup_free_ bool *seen = calloc(trace->strings.cnt + 1, sizeof(*seen));

	f->of_name = calloc(trace->strings.cnt + 1, sizeof(*f->of_name));
	if (f->of_name == NULL || seen == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < trace->event_cnt; i++) {
		const struct event *e = &trace->events[i];
		_cleanup_(str_done) struct str shown = { 0 };

		if (seen[e->name])
			continue;
		seen[e->name] = true;
		funckey_display((enum event_kind)e->kind, strtab_text(&trace->strings, e->name),
				&shown);
		if (str_error(&shown) < 0)
			return -ENOMEM;
		f->of_name[e->name] = find_named(f, str_borrow(&shown));
	}
	return 0;
}

/* --- gaps of threads --- */

/* "idle in CONTEXT, after A, before B": parts of the finding's name; a length of 0: none. */
struct gap_place {
	const char *context, *after, *before;
	size_t context_len, after_len, before_len;
};

static const char *last_of(const char *text, const char *end, const char *word)
{
	const char *found = NULL, *next = strstr(text, word);

	for (; next != NULL && next < end; next = strstr(next + 1, word))
		found = next;
	return found;
}

static struct gap_place parse_place(const char *name)
{
	static const char idle[] = "idle in ", after[] = ", after ", before[] = ", before ";
	const char *end = name + strlen(name), *at;
	struct gap_place ret = { 0 };

	at = last_of(name, end, before);
	if (at != NULL) {
		ret.before = at + strlen(before);
		ret.before_len = (size_t)(end - ret.before);
		end = at;
	}
	at = last_of(name, end, after);
	if (at != NULL) {
		ret.after = at + strlen(after);
		ret.after_len = (size_t)(end - ret.after);
		end = at;
	}
	if (strncmp(name, idle, strlen(idle)) == 0 && name + strlen(idle) <= end) {
		ret.context = name + strlen(idle);
		ret.context_len = (size_t)(end - ret.context);
	}
	return ret;
}

/* An event that has begun on a lane and not ended. */
struct open_event {
	int64_t start_ns, end_ns;
	uint32_t name;
};

struct lane_state {
	VEC(struct open_event) open;
	int64_t last_end_ns; /* of what ended most recently */
	uint32_t last_name;
};

struct gap {
	int64_t start_ns, end_ns;
	uint32_t context, after, before; /* strings; EVENT_NONE: none */
};

struct scan {
	const struct trace *trace;
	struct faultspans *f;
	struct lane_state *lanes;
	struct gap_place *places; /* by finding */
	int error;
};

static bool part_fits(const struct scan *s, uint32_t name, const char *wanted, size_t len)
{
	if (len == 0 || name == EVENT_NONE)
		return len == 0 && name == EVENT_NONE;
	return is_named(strtab_text(&s->trace->strings, name), wanted, len);
}

static bool gap_fits(const struct scan *s, const struct gap *gap, size_t i)
{
	const struct gap_place *place = &s->places[i];
	double least_ms = GAP_LEAST_FRAC * s->f->findings[i]->delta_ms_per_iteration;

	if ((double)(gap->end_ns - gap->start_ns) < least_ms * NSEC_PER_MSEC)
		return false;
	if (place->after_len + place->before_len == 0)
		return part_fits(s, gap->context, place->context, place->context_len);
	return part_fits(s, gap->after, place->after, place->after_len) &&
	       part_fits(s, gap->before, place->before, place->before_len);
}

static void see_gap(struct scan *s, const struct gap *gap)
{
	for (size_t i = 0; i < s->f->finding_cnt && gap->end_ns > gap->start_ns; i++) {
		struct fault_span span = { gap->start_ns, gap->end_ns, (uint32_t)i, true };

		if (s->error == 0 && is_idle(s->f->findings[i]) && gap_fits(s, gap, i)) {
			s->error = vec_push(&s->f->spans, span);
			return;
		}
	}
}

/* Ends what ended by time_ns: a gap may be between the last call of an event and its end. */
static void close_until(struct scan *s, struct lane_state *lane, int64_t time_ns)
{
	while (lane->open.cnt > 0 && lane->open.data[lane->open.cnt - 1].end_ns <= time_ns) {
		struct open_event e = lane->open.data[--lane->open.cnt];

		if (lane->last_end_ns > e.start_ns)
			see_gap(s, &(struct gap){ lane->last_end_ns, e.end_ns, e.name,
						  lane->last_name, EVENT_NONE });
		if (e.end_ns >= lane->last_end_ns) {
			lane->last_end_ns = e.end_ns;
			lane->last_name = e.name;
		}
	}
}

static void see_event(struct scan *s, const struct event *event)
{
	struct lane_state *lane = &s->lanes[event->lane];
	struct open_event e = { event->start_ns, event_end_ns(event), event->name };
	struct gap gap = { 0, event->start_ns, EVENT_NONE, EVENT_NONE, event->name };

	close_until(s, lane, event->start_ns);
	gap.start_ns = lane->last_end_ns;
	gap.after = lane->last_name;
	if (lane->open.cnt > 0) {
		const struct open_event *outer = &lane->open.data[lane->open.cnt - 1];

		gap.context = outer->name;
		if (outer->start_ns >= gap.start_ns) {
			gap.start_ns = outer->start_ns;
			gap.after = EVENT_NONE;
		}
	}
	if (gap.start_ns > INT64_MIN)
		see_gap(s, &gap);
	if (s->error == 0)
		s->error = vec_push(&lane->open, e);
}

/* --- all --- */

static bool on_thread(const struct trace *trace, const struct event *event)
{
	return event->lane < trace->lane_cnt && trace->lanes[event->lane].type == LANE_THREAD &&
	       (event->kind == KIND_PYTHON || event->kind == KIND_OPERATOR ||
		event->kind == KIND_ANNOTATION || event->kind == KIND_RUNTIME);
}

static int longest_first(const void *a, const void *b)
{
	const struct fault_span *x = a, *y = b;
	int64_t x_ns = x->end_ns - x->start_ns, y_ns = y->end_ns - y->start_ns;

	return (x_ns < y_ns) - (x_ns > y_ns);
}

static int first_first(const void *a, const void *b)
{
	const struct fault_span *x = a, *y = b;

	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return (x->end_ns < y->end_ns) - (x->end_ns > y->end_ns);
}

static void sort_spans(fault_span_vec *spans)
{
	if (spans->cnt > SPANS_MAX) {
		qsort(spans->data, spans->cnt, sizeof(*spans->data), longest_first);
		spans->cnt = SPANS_MAX;
	}
	if (spans->cnt > 0)
		qsort(spans->data, spans->cnt, sizeof(*spans->data), first_first);
}

static void scan_events(struct scan *s)
{
	for (size_t i = 0; i < s->trace->event_cnt && s->error == 0; i++) {
		const struct event *event = &s->trace->events[i];
		uint8_t idx = s->f->of_name[event->name];

		if (idx > 0 && event->kind != KIND_GPU_ANNOTATION)
			s->error =
				vec_push(&s->f->spans,
					 ((struct fault_span){ event->start_ns, event_end_ns(event),
							       (uint32_t)idx - 1, false }));
		if (s->error == 0 && on_thread(s->trace, event))
			see_event(s, event);
	}
	for (size_t i = 0; i < s->trace->lane_cnt; i++)
		close_until(s, &s->lanes[i], INT64_MAX);
}

int faultspans_find(const struct trace *trace, const struct finding *const *findings,
		    size_t finding_cnt, struct faultspans *ret)
{
	struct scan s = { .trace = trace, .f = ret };

	*ret = (struct faultspans){ .findings = findings,
				    .finding_cnt = MIN(finding_cnt, (size_t)FINDINGS_MAX) };
	s.lanes = calloc(trace->lane_cnt + 1, sizeof(*s.lanes));
	s.places = calloc(finding_cnt + 1, sizeof(*s.places));
	s.error = s.lanes != NULL && s.places != NULL ? name_findings(trace, ret) : -ENOMEM;
	for (size_t i = 0; i < ret->finding_cnt && s.error == 0; i++) {
		if (is_idle(findings[i]))
			s.places[i] = parse_place(findings[i]->name);
	}
	for (size_t i = 0; i < trace->lane_cnt && s.lanes != NULL; i++) {
		s.lanes[i].last_end_ns = INT64_MIN;
		s.lanes[i].last_name = EVENT_NONE;
	}
	if (s.error == 0 && ret->finding_cnt > 0)
		scan_events(&s);
	for (size_t i = 0; i < trace->lane_cnt && s.lanes != NULL; i++)
		vec_done(&s.lanes[i].open);
	free(s.lanes);
	free(s.places);
	sort_spans(&ret->spans);
	return s.error;
}

void faultspans_done(struct faultspans *faults)
{
	free(faults->of_name);
	vec_done(&faults->spans);
	*faults = (struct faultspans){ 0 };
}

const struct finding *faultspans_of(const struct faultspans *faults, const struct event *event)
{
	uint8_t idx = faults->of_name != NULL ? faults->of_name[event->name] : 0;

	return idx > 0 ? faults->findings[idx - 1] : NULL;
}
