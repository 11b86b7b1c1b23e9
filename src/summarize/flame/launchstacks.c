/* SPDX-License-Identifier: Apache-2.0 */
#include "summarize/flame/launchstacks.h"

#include "base/str.h"
#include "format/fingerprint/funckey.h"
#include "model/place/pywait.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDING_NS 2000 /* two ends of whole microseconds */

typedef VEC(uint32_t) open_vec; /* indexes of events, the innermost last */

struct pass {
	const struct trace *trace;
	enum launch_weight weight;
	uint32_t member;
	struct flametree *tree;
	uint32_t *up;	  /* by event: the enclosing one, an earlier index; EVENT_NONE: none */
	uint32_t *node;	  /* by event: in tree; FLAMETREE_NONE: not made */
	int64_t *self_ns; /* by event: without what it encloses on its thread */
	open_vec *open;	  /* by lane */
	uint32_t *lane_node;
	size_t main_lane;
	struct idmap labels; /* (name, kind) -> label */
	struct str scratch;
	open_vec chain;
	struct launchstacks found;
};

/* --- names --- */

/* Beginnings of names of functions that only wait, beside those of CPython. */
static const char *const waiting_python[] = {
	"<built-in method synchronize of",
	"<built-in function _cuda_synchronize>",
	"<built-in function _cuda_synchronize of",
	EVENT_GIL_WAIT,
};

static const char *const waiting_calls[] = { "Synchronize", "cudaStreamWaitValue", "cuStreamWait" };

bool launchstacks_waits(enum event_kind kind, const char *name)
{
	if (kind == KIND_RUNTIME) {
		for (size_t i = 0; i < ARRAY_SIZE(waiting_calls); i++) {
			if (strstr(name, waiting_calls[i]) != NULL)
				return true;
		}
	}
	if (kind == KIND_PYTHON) {
		for (size_t i = 0; i < ARRAY_SIZE(waiting_python); i++) {
			if (strncmp(name, waiting_python[i], strlen(waiting_python[i])) == 0)
				return true;
		}
	}
	return kind == KIND_PYTHON && pywait_is(name);
}

static bool is_frame(const struct event *event)
{
	return event->kind == KIND_PYTHON || event->kind == KIND_OPERATOR ||
	       event->kind == KIND_ANNOTATION || event->kind == KIND_RUNTIME ||
	       event->kind == KIND_GC;
}

static bool is_device_work(const struct event *event)
{
	return event->kind == KIND_KERNEL || event->kind == KIND_GPU_MEMOP;
}

static enum flametree_kind kind_of(const struct event *event)
{
	if (is_device_work(event))
		return FLAMETREE_DEVICE;
	return event->kind == KIND_PYTHON ? FLAMETREE_PYTHON : FLAMETREE_OPERATOR;
}

/* The label of an event; STRTAB_NONE: out of memory. */
static uint32_t label_of(struct pass *p, const struct event *event)
{
	const uint64_t key = (uint64_t)event->name << 8 | event->kind;
	uint32_t label = idmap_get(&p->labels, key);

	if (label != IDMAP_NONE)
		return label;
	p->scratch.len = 0;
	funckey_display((enum event_kind)event->kind, event_name(p->trace, event), &p->scratch);
	if (str_error(&p->scratch) < 0)
		return STRTAB_NONE;
	label = flametree_label(p->tree, p->scratch.len > 0 ? str_borrow(&p->scratch) : "?");
	if (label == STRTAB_NONE || idmap_set(&p->labels, key, label) < 0)
		return STRTAB_NONE;
	return label;
}

/* --- threads --- */

/* The thread of the training: that of the steps, else the one with the most frames. */
static size_t find_main_lane(const struct trace *trace, size_t *counts)
{
	size_t best = 0;

	for (size_t i = 0; i < trace->event_cnt; i++) {
		const struct event *event = &trace->events[i];

		if (event->kind == KIND_ANNOTATION &&
		    strncmp(event_name(trace, event), "ProfilerStep#", 13) == 0)
			return event->lane;
		if (event->kind == KIND_PYTHON || event->kind == KIND_OPERATOR)
			counts[event->lane]++;
	}
	for (size_t i = 0; i < trace->lane_cnt; i++) {
		if (counts[i] > counts[best])
			best = i;
	}
	return best;
}

/* "thread 1234 (autograd)" has the name in parentheses. */
static void append_thread(struct str *out, const char *name)
{
	const char *begin = strchr(name, '('), *end = strrchr(name, ')');

	if (strncmp(name, "thread ", 7) == 0 && begin != NULL && end > begin + 1) {
		str_append(out, "thread ");
		str_append_len(out, begin + 1, (size_t)(end - begin - 1));
	} else if (strncmp(name, "thread ", 7) == 0 || name[0] == '\0') {
		str_append(out, "other threads");
	} else {
		str_printf(out, "thread %s", name);
	}
}

/* The node of a thread; FLAMETREE_NONE: out of memory. */
static uint32_t lane_root(struct pass *p, uint16_t lane)
{
	const struct lane *about = &p->trace->lanes[lane];
	uint32_t label;

	if (p->lane_node[lane] != FLAMETREE_NONE)
		return p->lane_node[lane];
	p->scratch.len = 0;
	if (lane == p->main_lane)
		str_append(&p->scratch, "main thread");
	else
		append_thread(&p->scratch, strtab_text(&p->trace->strings, about->name));
	if (str_error(&p->scratch) < 0)
		return FLAMETREE_NONE;
	label = flametree_label(p->tree, str_borrow(&p->scratch));
	if (label == STRTAB_NONE)
		return FLAMETREE_NONE;
	p->lane_node[lane] =
		flametree_child(p->tree, FLAMETREE_ROOT, label, FLAMETREE_OTHER, p->member);
	return p->lane_node[lane];
}

/* --- stacks --- */

/* The node of an event's stack, with those of its callers. FLAMETREE_NONE: out of memory. */
static uint32_t node_of(struct pass *p, uint32_t idx)
{
	uint32_t at = idx, node;

	p->chain.cnt = 0;
	while (at != EVENT_NONE && p->node[at] == FLAMETREE_NONE) {
		if (vec_push(&p->chain, at) < 0)
			return FLAMETREE_NONE;
		at = p->up[at];
	}
	node = at != EVENT_NONE
		       ? p->node[at]
		       : lane_root(p, p->trace->events[p->chain.data[p->chain.cnt - 1]].lane);
	for (size_t i = p->chain.cnt; i-- > 0 && node != FLAMETREE_NONE;) {
		const struct event *event = &p->trace->events[p->chain.data[i]];
		const uint32_t label = label_of(p, event);

		if (label == STRTAB_NONE)
			return FLAMETREE_NONE;
		node = flametree_child(p->tree, node, label, kind_of(event), p->member);
		p->node[p->chain.data[i]] = node;
	}
	return node;
}

/*
 * Whether a frame that began before is a caller of the next one. Times of old traces are whole
 * microseconds, so that what follows may begin before the end; ranges of NVTX and steps of the
 * profiler cross functions. Callees of Python functions are known by their ids. A call of the
 * runtime calls nothing but others.
 */
static bool encloses(const struct pass *p, uint32_t caller_idx, const struct event *event)
{
	const struct event *caller = &p->trace->events[caller_idx];
	const int64_t left_ns = event_end_ns(caller) - event->start_ns;
	const int64_t out_ns = event_end_ns(event) - event_end_ns(caller);

	if (left_ns <= 0)
		return false;
	if (event->kind == KIND_PYTHON && event->parent == caller_idx)
		return true;
	if (out_ns > ROUNDING_NS || (out_ns > 0 && left_ns <= ROUNDING_NS))
		return false;
	return caller->kind != KIND_RUNTIME || (event->kind == KIND_RUNTIME && out_ns <= 0);
}

/* Puts a frame on its thread's stack, and takes its time from the one that encloses it. */
static int open_frame(struct pass *p, uint32_t idx)
{
	const struct event *event = &p->trace->events[idx];
	open_vec *open = &p->open[event->lane];
	uint32_t top = EVENT_NONE;

	while (open->cnt > 0 && !encloses(p, open->data[open->cnt - 1], event))
		open->cnt--;
	if (open->cnt > 0)
		top = open->data[open->cnt - 1];
	p->self_ns[idx] = event->dur_ns;
	if (top != EVENT_NONE) {
		const int64_t top_end_ns = event_end_ns(&p->trace->events[top]);

		p->self_ns[top] -= MIN(event_end_ns(event), top_end_ns) - event->start_ns;
	} else if (event->kind == KIND_PYTHON && event->parent < idx &&
		   is_frame(&p->trace->events[event->parent])) {
		top = event->parent;
	}
	p->up[idx] = top;
	return vec_push(open, idx);
}

static int open_frames(struct pass *p)
{
	int error = 0;

	for (size_t i = 0; i < p->trace->event_cnt && error == 0; i++) {
		const struct event *event = &p->trace->events[i];

		if (is_frame(event) && p->trace->lanes[event->lane].type == LANE_THREAD)
			error = open_frame(p, (uint32_t)i);
	}
	return error;
}

static bool has_python(const struct pass *p, uint32_t idx)
{
	while (idx != EVENT_NONE && p->trace->events[idx].kind != KIND_PYTHON)
		idx = p->up[idx];
	return idx != EVENT_NONE;
}

/* The node below which device work belongs; FLAMETREE_NONE: out of memory. */
static uint32_t launch_node(struct pass *p, const struct event *work)
{
	const uint32_t call = work->parent;
	uint32_t label;

	if (call < p->trace->event_cnt && is_frame(&p->trace->events[call])) {
		p->found.without_python += !has_python(p, call);
		/* The launching call itself says nothing. */
		return p->up[call] != EVENT_NONE ? node_of(p, p->up[call])
						 : lane_root(p, p->trace->events[call].lane);
	}
	p->found.without_launch++;
	label = flametree_label(p->tree, "launched by a call that the trace lacks");
	return label == STRTAB_NONE ? FLAMETREE_NONE
				    : flametree_child(p->tree, FLAMETREE_ROOT, label,
						      FLAMETREE_OTHER, p->member);
}

static int weigh_device(struct pass *p, const struct event *work)
{
	uint32_t node = launch_node(p, work), label = label_of(p, work);

	if (node == FLAMETREE_NONE || label == STRTAB_NONE)
		return -ENOMEM;
	node = flametree_child(p->tree, node, label, FLAMETREE_DEVICE, p->member);
	if (node == FLAMETREE_NONE)
		return -ENOMEM;
	flametree_weigh(p->tree, node, (double)work->dur_ns);
	p->found.total_ns += (double)work->dur_ns;
	p->found.cnt++;
	return 0;
}

static int weigh_host(struct pass *p, uint32_t idx)
{
	const struct event *event = &p->trace->events[idx];
	uint32_t node, label;

	if (p->self_ns[idx] <= 0)
		return 0;
	if (p->weight == LAUNCH_WAIT) {
		label = label_of(p, event);
		if (label == STRTAB_NONE)
			return -ENOMEM;
		if (!launchstacks_waits((enum event_kind)event->kind,
					strtab_text(&p->tree->labels, label)))
			return 0;
	}
	node = node_of(p, idx);
	if (node == FLAMETREE_NONE)
		return -ENOMEM;
	flametree_weigh(p->tree, node, (double)p->self_ns[idx]);
	p->found.total_ns += (double)p->self_ns[idx];
	p->found.cnt++;
	return 0;
}

static int weigh_all(struct pass *p)
{
	int error = 0;

	for (size_t i = 0; i < p->trace->event_cnt && error == 0; i++) {
		const struct event *event = &p->trace->events[i];

		if (p->weight == LAUNCH_DEVICE && is_device_work(event))
			error = weigh_device(p, event);
		else if (p->weight != LAUNCH_DEVICE && is_frame(event) &&
			 p->trace->lanes[event->lane].type == LANE_THREAD)
			error = weigh_host(p, (uint32_t)i);
	}
	return error;
}

static void pass_done(struct pass *p)
{
	for (size_t i = 0; i < p->trace->lane_cnt && p->open != NULL; i++)
		vec_done(&p->open[i]);
	free(p->up);
	free(p->node);
	free(p->self_ns);
	free(p->open);
	free(p->lane_node);
	vec_done(&p->chain);
	idmap_done(&p->labels);
	str_done(&p->scratch);
}

static int pass_init(struct pass *p)
{
	const size_t events = p->trace->event_cnt + 1, lanes = p->trace->lane_cnt + 1;
	_cleanup_free_ size_t *counts = calloc(lanes, sizeof(*counts));

	p->up = malloc(events * sizeof(*p->up));
	p->node = malloc(events * sizeof(*p->node));
	p->self_ns = calloc(events, sizeof(*p->self_ns));
	p->open = calloc(lanes, sizeof(*p->open));
	p->lane_node = malloc(lanes * sizeof(*p->lane_node));
	if (p->up == NULL || p->node == NULL || p->self_ns == NULL || p->open == NULL ||
	    p->lane_node == NULL || counts == NULL)
		return -ENOMEM;
	memset(p->up, 0xff, events * sizeof(*p->up));
	memset(p->node, 0xff, events * sizeof(*p->node));
	memset(p->lane_node, 0xff, lanes * sizeof(*p->lane_node));
	p->main_lane = find_main_lane(p->trace, counts);
	return 0;
}

int launchstacks_add(const struct trace *trace, enum launch_weight weight, uint32_t member,
		     struct flametree *tree, struct launchstacks *ret)
{
	struct pass p = { .trace = trace, .weight = weight, .member = member, .tree = tree };
	int error = pass_init(&p);

	if (error == 0)
		error = open_frames(&p);
	if (error == 0)
		error = weigh_all(&p);
	if (error == 0) {
		flametree_end_member(tree, member);
		*ret = p.found;
	}
	pass_done(&p);
	return error;
}
