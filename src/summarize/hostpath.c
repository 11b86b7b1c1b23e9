/* SPDX-License-Identifier: Apache-2.0 */
#include "summarize/hostpath.h"

#include "base/idmap.h"

#include <errno.h>
#include <string.h>

#define OWN_HOOK "perftracker/_"

struct level {
	int64_t end_ns;
	uint32_t event; /* EVENT_NONE for the bottom */
	uint32_t node;
	uint32_t last;	  /* event that ended last on this level; EVENT_NONE */
	bool executes;	  /* this level or one below it is an execution, not only a context */
	bool leaf;	  /* no operator began inside (operators only) */
	bool in_backward; /* innermost Python function is the one that waits for autograd */
};

struct walk {
	struct hostpath *path;
	host_segments *out;
	VEC(struct level) stack;
	int64_t cursor_ns;
	size_t next_worker;   /* first working operator behind the one last asked about */
	struct idmap classes; /* (name, kind, mode, leaf) -> class */
};

static struct level *walk_top(struct walk *w)
{
	return &w->stack.data[w->stack.cnt - 1];
}

static bool takes_part(const struct event *event)
{
	return event->kind == KIND_PYTHON || event->kind == KIND_OPERATOR ||
	       event->kind == KIND_ANNOTATION || event->kind == KIND_RUNTIME ||
	       event->kind == KIND_GC;
}

/* "idle after A, before B": tells two empty places of one context apart. */
static uint32_t idle_node(struct walk *w, const struct level *top, uint32_t next_event)
{
	const struct trace *t = w->path->trace;
	struct str text = { 0 };
	uint32_t node;

	str_append(&text, "idle");
	if (top->last != EVENT_NONE)
		str_printf(&text, " after %s", event_name(t, &t->events[top->last]));
	if (next_event != EVENT_NONE)
		str_printf(&text, "%s before %s", top->last != EVENT_NONE ? "," : "",
			   event_name(t, &t->events[next_event]));
	node = str_error(&text) < 0
		       ? FRAME_NONE
		       : cct_child_text(w->path->cct, top->node, KIND_OTHER, str_borrow(&text));
	str_done(&text);
	return node;
}

/* As classify_event(), once for each name: comparing with its tables takes a microsecond. */
static enum event_class class_of(struct walk *w, const struct event *e, bool leaf,
				 enum classify_mode mode)
{
	uint64_t key =
		(uint64_t)e->name << 16 | (uint64_t)e->kind << 8 | (uint64_t)mode << 1 | leaf;
	uint32_t known = idmap_get(&w->classes, key);

	if (known == IDMAP_NONE) {
		known = classify_event((enum event_kind)e->kind, event_name(w->path->trace, e),
				       leaf, mode);
		if (idmap_set(&w->classes, key, known) < 0)
			return (enum event_class)known; /* will be found again each time */
	}
	return (enum event_class)known;
}

static enum event_class leaf_class(struct walk *w, const struct level *top)
{
	const struct trace *t = w->path->trace;
	const struct event *e;

	if (top->event == EVENT_NONE)
		return CLASS_HOST;
	e = &t->events[top->event];
	return class_of(w, e, top->leaf, w->path->mode);
}

/* Ends the stretch that began at the cursor. next: the event that ends it, if one does. */
static int emit_until(struct walk *w, int64_t end_ns, uint32_t next_event)
{
	const struct window *win = w->path->window;
	const struct level *top = walk_top(w);
	struct host_segment seg = {
		.start_ns = MAX(w->cursor_ns, win->start_ns),
		.end_ns = MIN(end_ns, win->end_ns),
		.node = top->node,
		.event = top->event,
	};

	w->cursor_ns = MAX(w->cursor_ns, end_ns);
	if (seg.end_ns <= seg.start_ns)
		return 0;
	if (top->executes) {
		seg.class = (uint8_t)leaf_class(w, top);
		seg.waiting = top->in_backward;
	} else {
		seg.class = CLASS_IDLE;
		seg.event = EVENT_NONE;
		seg.waiting = true;
		seg.node = idle_node(w, top, next_event);
	}
	if (seg.node == FRAME_NONE)
		return -ENOMEM;
	return vec_push(w->out, seg);
}

/* Closes every level that ends at or before a time. */
static int pop_until(struct walk *w, int64_t time_ns)
{
	while (w->stack.cnt > 1 && walk_top(w)->end_ns <= time_ns) {
		struct level done = *walk_top(w);
		int error = emit_until(w, done.end_ns, EVENT_NONE);

		if (error < 0)
			return error;
		w->stack.cnt--;
		walk_top(w)->last = done.event;
	}
	return 0;
}

/* Under which node an event hangs: its caller on another thread, else what encloses it here. */
static uint32_t parent_node(struct walk *w, const struct event *e)
{
	const struct level *top = walk_top(w);

	if (top->event == EVENT_NONE && e->kind == KIND_PYTHON && e->parent != EVENT_NONE &&
	    e->parent < w->path->trace->event_cnt)
		return w->path->node_of[e->parent];
	return top->node;
}

/*
 * Steps are the window's clock, not a place in the program, and our own hook
 * stands between the job's functions: what runs in them belongs to the caller.
 */
static bool is_step(const struct event *e, const char *name)
{
	return e->kind == KIND_ANNOTATION && window_step_number(name) >= 0;
}

static bool is_transparent(const struct event *e, const char *name)
{
	return is_step(e, name) ||
	       (e->kind == KIND_PYTHON && strncmp(name, OWN_HOOK, strlen(OWN_HOOK)) == 0);
}

/*
 * Where stacks are sampled a function seems to begin a little before its step does: a
 * level that ended with the step would cut it short.
 */
static bool is_left_out(const struct walk *w, const struct event *e)
{
	return w->path->trace->meta.sampled && is_step(e, event_name(w->path->trace, e));
}

static uint32_t event_node(struct walk *w, uint32_t idx)
{
	const struct trace *t = w->path->trace;
	const struct event *e = &t->events[idx];
	const char *name = event_name(t, e);

	if (is_transparent(e, name))
		return parent_node(w, e);
	/* A collection interrupts whatever allocates: its place says nothing about its cause. */
	if (e->kind == KIND_GC)
		return cct_child(w->path->cct, CCT_ROOT, KIND_GC, e->name, name);
	return cct_child(w->path->cct, parent_node(w, e), (enum event_kind)e->kind, e->name, name);
}

static bool works_itself(enum event_class class)
{
	return class == CLASS_COMPUTE || class == CLASS_COMM;
}

static bool event_works(struct walk *w, const struct event *e, uint16_t lane)
{
	return e->lane == lane && e->kind == KIND_OPERATOR &&
	       works_itself(class_of(w, e, true, CLASSIFY_CPU_ONLY));
}

/*
 * Whether no operator inside this one computes or communicates: views and copies
 * that a computing operator makes do not turn it into a wrapper. Only CPU-only
 * traces ask: there such an operator is the execution that computes. Events are
 * asked for in order, so the look ahead passes over the trace once.
 */
static bool operator_is_leaf(struct walk *w, uint32_t idx)
{
	const struct trace *t = w->path->trace;
	const struct event *e = &t->events[idx];

	if (e->kind != KIND_OPERATOR || w->path->mode != CLASSIFY_CPU_ONLY)
		return true;
	w->next_worker = MAX(w->next_worker, (size_t)idx + 1);
	while (w->next_worker < t->event_cnt &&
	       !event_works(w, &t->events[w->next_worker], e->lane))
		w->next_worker++;
	return w->next_worker >= t->event_cnt ||
	       t->events[w->next_worker].start_ns >= event_end_ns(e);
}

static int push_event(struct walk *w, uint32_t idx)
{
	const struct trace *t = w->path->trace;
	const struct event *e = &t->events[idx];
	bool transparent = is_transparent(e, event_name(t, e));
	struct level *top = walk_top(w);
	struct level next = {
		.end_ns = MIN(event_end_ns(e), top->end_ns),
		.event = idx,
		.node = event_node(w, idx),
		.last = EVENT_NONE,
		.executes = top->executes || (e->kind != KIND_ANNOTATION && !transparent),
		.leaf = operator_is_leaf(w, idx),
		.in_backward = top->in_backward,
	};

	/* The bottom has no node; only what is transparent may share it. */
	if (next.node == FRAME_NONE && (!transparent || top->node != FRAME_NONE))
		return -ENOMEM;
	if (e->kind == KIND_PYTHON)
		next.in_backward = strstr(event_name(t, e), "run_backward") != NULL;
	else if (e->kind != KIND_ANNOTATION)
		next.in_backward = false;
	w->path->node_of[idx] = next.node;
	if (e->dur_ns == 0 || next.end_ns <= e->start_ns) {
		top->last = idx;
		return 0;
	}
	return vec_push(&w->stack, next);
}

static int walk_lane(struct walk *w, uint32_t lane)
{
	const struct trace *t = w->path->trace;
	const struct window *win = w->path->window;

	for (uint32_t i = 0; i < t->event_cnt; i++) {
		const struct event *e = &t->events[i];
		int error;

		if (e->lane != lane || !takes_part(e) || is_left_out(w, e))
			continue;
		if (e->start_ns >= win->end_ns)
			break;
		error = pop_until(w, e->start_ns);
		if (error == 0)
			error = emit_until(w, e->start_ns, i);
		if (error == 0)
			error = push_event(w, i);
		if (error < 0)
			return error;
	}
	return pop_until(w, INT64_MAX - 1);
}

int hostpath_walk(struct hostpath *path, uint32_t lane, host_segments *out)
{
	struct walk w = { .path = path, .out = out, .cursor_ns = path->window->start_ns };
	int error = vec_push(&w.stack, (struct level){
					       .end_ns = INT64_MAX,
					       .event = EVENT_NONE,
					       .node = CCT_ROOT,
					       .last = EVENT_NONE,
				       });

	if (error == 0)
		error = walk_lane(&w, lane);
	if (error == 0)
		error = emit_until(&w, path->window->end_ns, EVENT_NONE);
	vec_done(&w.stack);
	idmap_done(&w.classes);
	return error;
}
