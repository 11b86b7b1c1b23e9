/* SPDX-License-Identifier: Apache-2.0 */
#include "summarize/hostpath.h"

#include "base/idmap.h"
#include "summarize/namefacts.h"

#include <errno.h>
#include <string.h>

#define PATH_ROUNDING_NS 1000 /* writers give microseconds, and some cut their digits */
#define PATH_EARLY_NS 50000   /* by so much may a function seem to begin before its elder ends */
#define PATH_EARLY_FRAC 8     /* or by this part of the elder's length */
#define ENTER_DEPTH 3	      /* calls from __enter__() to where the annotation begins */

struct level {
	int64_t end_ns;
	uint32_t event; /* EVENT_NONE for the bottom */
	uint32_t node;
	uint32_t last;	  /* event that ended last on this level; EVENT_NONE */
	bool executes;	  /* this level or one below it is an execution, not only a context */
	uint8_t class;	  /* of the level's own time, when it executes */
	bool in_backward; /* the innermost Python function is the one that waits for autograd */
};

/* Cached class of a name, for the kind of the last request. */
struct known_class {
	bool known;
	uint8_t kind, class;
};

struct hostwalk {
	struct hostpath *path;
	/* walk of the lane that calls functions of this one; NULL: none */
	struct hostwalk *callers;
	uint32_t lane;
	uint32_t next_event;   /* EVENT_NONE: no more events */
	int64_t next_start_ns; /* of that event; INT64_MAX - 1: no more events */
	host_segments kept;    /* stretches produced ahead of the reader */
	size_t given;	       /* number of kept stretches already returned */
	bool passed;	       /* advance_callers() has run for the next event */
	bool ended;
	VEC(struct level) stack;
	int64_t cursor_ns;
	VEC(struct known_class) classes; /* by name, mode and leaf */
	struct idmap surrounds;		 /* (name before, name after) -> number, for idle_nodes */
	struct idmap idle_nodes;	 /* (that number, context) -> node */
};

static struct level *walk_top(const struct hostwalk *w)
{
	return &w->stack.data[w->stack.cnt - 1];
}

static bool is_walked(const struct event *event)
{
	return event->kind == KIND_PYTHON || event->kind == KIND_OPERATOR ||
	       event->kind == KIND_ANNOTATION || event->kind == KIND_RUNTIME ||
	       event->kind == KIND_GC;
}

/* "idle after A, before B": distinguishes the idle stretches of one context. */
static uint32_t make_idle_node(struct hostwalk *w, const struct level *top, uint32_t next_event)
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

/* Name id of an event; STRTAB_NONE without an event. */
static uint32_t name_around(const struct hostwalk *w, uint32_t event)
{
	return event != EVENT_NONE ? w->path->trace->events[event].name : STRTAB_NONE;
}

/* As make_idle_node(), cached by place. */
static uint32_t idle_node(struct hostwalk *w, const struct level *top, uint32_t next_event)
{
	uint64_t around = (uint64_t)name_around(w, top->last) << 32 | name_around(w, next_event);
	uint32_t number = idmap_get(&w->surrounds, around), node;
	uint64_t key;

	if (number == IDMAP_NONE) {
		number = (uint32_t)w->surrounds.cnt;
		if (idmap_set(&w->surrounds, around, number) < 0)
			return FRAME_NONE;
	}
	key = (uint64_t)number << 32 | top->node;
	node = idmap_get(&w->idle_nodes, key);
	if (node != IDMAP_NONE)
		return node;
	node = make_idle_node(w, top, next_event);
	return node != FRAME_NONE && idmap_set(&w->idle_nodes, key, node) == 0 ? node : FRAME_NONE;
}

/* classify_event(), cached in classes[idx]. */
static __attribute__((noinline)) enum event_class learn_class(struct hostwalk *w,
							      const struct event *e, bool leaf,
							      enum classify_mode mode, size_t idx)
{
	enum event_class class =
		classify_event((enum event_kind)e->kind, event_name(w->path->trace, e), leaf, mode);

	if (vec_reserve(&w->classes, idx + 1) < 0)
		return class; /* out of memory: not cached */
	while (w->classes.cnt <= idx)
		w->classes.data[w->classes.cnt++] = (struct known_class){ 0 };
	w->classes.data[idx] =
		(struct known_class){ .known = true, .kind = e->kind, .class = (uint8_t) class };
	return class;
}

/* As classify_event(), cached by name: comparing with its tables takes a microsecond. */
static inline enum event_class class_of(struct hostwalk *w, const struct event *e, bool leaf,
					enum classify_mode mode)
{
	size_t idx = (size_t)e->name * 4 + (mode == CLASSIFY_CPU_ONLY ? 2 : 0) + leaf;

	if (idx < w->classes.cnt && w->classes.data[idx].known &&
	    w->classes.data[idx].kind == e->kind)
		return (enum event_class)w->classes.data[idx].class;
	return learn_class(w, e, leaf, mode, idx);
}

/* Fills ret as an idle stretch. Returns as emit_until(). */
static __attribute__((noinline)) int emit_idle(struct hostwalk *w, uint32_t next_event,
					       struct host_segment *ret)
{
	ret->node = idle_node(w, walk_top(w), next_event);
	ret->event = EVENT_NONE;
	ret->class = CLASS_IDLE;
	ret->waiting = true;
	return ret->node != FRAME_NONE ? 1 : -ENOMEM;
}

/*
 * Ends the stretch that began at the cursor. next_event: the event that ends it, or EVENT_NONE.
 * Returns 1 with the stretch, 0 when it is empty, -errno.
 */
static inline int emit_until(struct hostwalk *w, int64_t end_ns, uint32_t next_event,
			     struct host_segment *ret)
{
	const struct window *win = w->path->window;
	const struct level *top = walk_top(w);
	int64_t from_ns = MAX(w->cursor_ns, win->start_ns), to_ns = MIN(end_ns, win->end_ns);

	w->cursor_ns = MAX(w->cursor_ns, end_ns);
	if (to_ns <= from_ns)
		return 0;
	ret->start_ns = from_ns;
	ret->end_ns = to_ns;
	if (!top->executes)
		return emit_idle(w, next_event, ret);
	ret->node = top->node;
	ret->event = top->event;
	ret->class = top->class;
	ret->waiting = top->in_backward;
	return ret->node != FRAME_NONE ? 1 : -ENOMEM;
}

/* Closes the innermost level. Returns as emit_until(). */
static int pop(struct hostwalk *w, struct host_segment *ret)
{
	uint32_t event = walk_top(w)->event;
	int made = emit_until(w, walk_top(w)->end_ns, EVENT_NONE, ret);

	w->stack.cnt--;
	walk_top(w)->last = event;
	return made;
}

/* The parent node of an event: its caller on another thread, else the enclosing event's node. */
static uint32_t parent_node(struct hostwalk *w, const struct event *e)
{
	const struct level *top = walk_top(w);

	if (top->event == EVENT_NONE && e->kind == KIND_PYTHON && e->parent != EVENT_NONE &&
	    e->parent < w->path->trace->event_cnt)
		return w->path->node_of[e->parent];
	return top->node;
}

static bool same_file(const char *a, const char *b)
{
	size_t len = strcspn(a, "(");

	return strncmp(a, b, len) == 0 && b[len] == '(';
}

/*
 * Whether a comprehension runs as part of the function that it is written in, directly or below
 * a built-in such as sum(): its time is that function's.
 */
static bool is_within_caller(const struct hostwalk *w, const struct event *e)
{
	const struct trace *t = w->path->trace;
	const struct level *top = walk_top(w);
	const char *caller;

	if (!(w->path->facts[e->name] & NAME_COMPREHENSION) || top->event == EVENT_NONE ||
	    t->events[top->event].kind != KIND_PYTHON)
		return false;
	caller = event_name(t, &t->events[top->event]);
	return caller[0] == '<' || same_file(caller, event_name(t, e));
}

/*
 * Steps mark time, not a place in the program, and the agent's hook lies between the job's
 * functions: functions called in them belong to the caller's node.
 */
static bool is_step(const struct hostwalk *w, const struct event *e)
{
	return e->kind == KIND_ANNOTATION && w->path->facts[e->name] & NAME_STEP;
}

static bool is_transparent(const struct hostwalk *w, const struct event *e)
{
	return is_step(w, e) ||
	       (e->kind == KIND_PYTHON &&
		(w->path->facts[e->name] & NAME_OWN_HOOK || is_within_caller(w, e)));
}

/*
 * With sampled stacks a function seems to begin a little before its step does: a level that ends
 * with the step would truncate it.
 */
static bool is_left_out(const struct hostwalk *w, const struct event *e)
{
	return w->path->trace->meta.sampled && is_step(w, e);
}

static uint32_t event_node(struct hostwalk *w, uint32_t idx)
{
	const struct trace *t = w->path->trace;
	const struct event *e = &t->events[idx];
	const char *name = event_name(t, e);

	/* Set by an earlier walk; an annotation may have become an execution since. */
	if (w->path->node_of[idx] != FRAME_NONE && e->kind != KIND_ANNOTATION)
		return w->path->node_of[idx];
	if (is_transparent(w, e))
		return parent_node(w, e);
	/*
	 * A collection interrupts any function that allocates: its place is unrelated to its cause.
	 */
	if (e->kind == KIND_GC)
		return cct_child(w->path->cct, CCT_ROOT, KIND_GC, e->name, name);
	return cct_child(w->path->cct, parent_node(w, e), (enum event_kind)e->kind, e->name, name);
}

static bool works_itself(enum event_class class)
{
	return class == CLASS_COMPUTE || class == CLASS_COMM;
}

static bool event_works(struct hostwalk *w, const struct event *e, uint16_t lane)
{
	return e->lane == lane && e->kind == KIND_OPERATOR &&
	       works_itself(class_of(w, e, true, CLASSIFY_CPU_ONLY));
}

/*
 * Whether an operator computes itself: those inside it that compute or communicate take less than
 * half of its time. Views and copies do not turn it into a wrapper, nor do a few small operators
 * beside a library's call, as in an LSTM or a QR decomposition. Used for CPU-only traces.
 * O(operators inside).
 */
static bool operator_is_leaf(struct hostwalk *w, uint32_t idx)
{
	const struct trace *t = w->path->trace;
	const struct event *e = &t->events[idx];
	int64_t end_ns = event_end_ns(e), within_ns = 0, covered_ns = e->start_ns;

	if (e->kind != KIND_OPERATOR || w->path->mode != CLASSIFY_CPU_ONLY)
		return true;
	for (uint32_t i = idx + 1; i < t->event_cnt && t->events[i].start_ns < end_ns; i++) {
		const struct event *inner = &t->events[i];

		if (inner->start_ns < covered_ns || !event_works(w, inner, e->lane))
			continue;
		covered_ns = MIN(event_end_ns(inner), end_ns);
		within_ns += covered_ns - inner->start_ns;
		if (2 * within_ns >= e->dur_ns)
			return false;
	}
	return true;
}

/* An annotation is a context; that of a loader's call is the call. */
static bool is_execution(const struct hostwalk *w, const struct event *e)
{
	return !is_transparent(w, e) &&
	       (e->kind != KIND_ANNOTATION || w->path->facts[e->name] & NAME_LOADER);
}

static int push_event(struct hostwalk *w, uint32_t idx)
{
	const struct trace *t = w->path->trace;
	const struct event *e = &t->events[idx];
	bool transparent = is_transparent(w, e);
	struct level *top = walk_top(w);
	struct level next = {
		.end_ns = MIN(event_end_ns(e), top->end_ns),
		.event = idx,
		.node = event_node(w, idx),
		.last = EVENT_NONE,
		.executes = top->executes || is_execution(w, e),
		.in_backward = top->in_backward,
	};

	/* The bottom has no node; only transparent events may share it. */
	if (next.node == FRAME_NONE && (!transparent || top->node != FRAME_NONE))
		return -ENOMEM;
	if (e->kind == KIND_PYTHON)
		next.in_backward = (w->path->facts[e->name] & NAME_RUN_BACKWARD) != 0;
	else if (e->kind != KIND_ANNOTATION)
		next.in_backward = false;
	if (w->path->node_of[idx] == FRAME_NONE)
		w->path->node_of[idx] = next.node;
	if (e->dur_ns == 0 || next.end_ns <= e->start_ns) {
		top->last = idx;
		return 0;
	}
	if (next.executes)
		next.class = (uint8_t)class_of(w, e, operator_is_leaf(w, idx), w->path->mode);
	return vec_push(&w->stack, next);
}

/* Whether the innermost level is a call of the event, which seems to begin after it. */
static bool is_caller(struct hostwalk *w, uint32_t idx)
{
	const struct event *events = w->path->trace->events;
	const struct level *top = walk_top(w);

	return events[idx].kind == KIND_PYTHON && top->event != EVENT_NONE &&
	       events[top->event].kind == KIND_PYTHON && events[top->event].parent == idx;
}

/* Puts the event below the innermost level, which is its call: its own level goes on in it. */
static int push_caller(struct hostwalk *w, uint32_t idx)
{
	const struct level call = *walk_top(w);
	const struct event *e = &w->path->trace->events[call.event];
	int error;

	w->stack.cnt--;
	error = push_event(w, idx);
	if (error < 0 || walk_top(w)->event != idx)
		return error;
	w->path->node_of[call.event] = FRAME_NONE; /* as one without a caller */
	return call.end_ns > w->path->trace->events[idx].start_ns && e->dur_ns > 0
		       ? push_event(w, call.event)
		       : 0;
}

/* Finds the lane's next relevant event at or after index idx. */
static void find_event(struct hostwalk *w, uint32_t idx)
{
	const struct trace *t = w->path->trace;

	w->next_event = EVENT_NONE;
	w->next_start_ns = INT64_MAX - 1;
	for (; idx < t->event_cnt; idx++) {
		const struct event *e = &t->events[idx];

		if (e->lane != w->lane || !is_walked(e) || is_left_out(w, e))
			continue;
		if (e->start_ns < w->path->window->end_ns) {
			w->next_event = idx;
			w->next_start_ns = e->start_ns;
		}
		return;
	}
}

/*
 * Whether a function without a caller is no call of the operator that it outlives: where the first
 * sample of a stack comes late, the whole program seems to begin in an operator.
 */
static bool begins_anew(const struct hostwalk *w, const struct level *top, const struct event *e)
{
	return e->kind == KIND_PYTHON && e->parent == EVENT_NONE &&
	       w->path->trace->events[top->event].kind == KIND_OPERATOR;
}

/*
 * Whether the thread is in the __enter__() of a context manager: an annotation that begins there is
 * the context, and no call of it, however much of the call is left.
 */
static bool is_entering(const struct hostwalk *w)
{
	const struct trace *t = w->path->trace;

	for (size_t up = 0; up < ENTER_DEPTH && up < w->stack.cnt; up++) {
		const struct level *level = &w->stack.data[w->stack.cnt - 1 - up];
		const struct event *e =
			level->event != EVENT_NONE ? &t->events[level->event] : NULL;

		if (e == NULL || e->kind != KIND_PYTHON)
			return false;
		if (strstr(event_name(t, e), ": __enter__") != NULL)
			return true;
	}
	return false;
}

/*
 * Whether an event that begins in a level and outlives it follows the level: most of it is behind
 * the level's end, and the overlap is short. As a call of the level it would be lost, and its
 * caller named. A frame of which the level is the caller is its call, whatever the times are.
 */
static bool follows_early(const struct hostwalk *w, const struct level *top, const struct event *e)
{
	int64_t overlap_ns = top->end_ns - e->start_ns;
	int64_t length_ns = top->end_ns - w->path->trace->events[top->event].start_ns;

	if (begins_anew(w, top, e))
		return true;
	if (event_end_ns(e) - top->end_ns <= overlap_ns ||
	    (e->kind == KIND_PYTHON && e->parent == top->event))
		return false;
	if (e->kind == KIND_ANNOTATION && is_entering(w))
		return true;
	return overlap_ns <= MAX((int64_t)PATH_EARLY_NS, length_ns / PATH_EARLY_FRAC) &&
	       overlap_ns < length_ns;
}

/*
 * Whether the innermost level ends before the next event. Writers round times: an event that
 * begins a little before the level's end and ends after it follows the level. A function that begins
 * earlier ends the level when it begins.
 */
static bool top_ended(struct hostwalk *w)
{
	struct level *top = walk_top(w);
	const struct event *e;

	if (top->end_ns <= w->next_start_ns || w->next_event == EVENT_NONE)
		return top->end_ns <= w->next_start_ns;
	e = &w->path->trace->events[w->next_event];
	if (event_end_ns(e) <= top->end_ns)
		return false;
	if (top->end_ns - e->start_ns <= PATH_ROUNDING_NS)
		return true;
	if (!follows_early(w, top, e))
		return false;
	/* An annotation takes no time from what runs. */
	if (e->kind != KIND_ANNOTATION)
		top->end_ns = e->start_ns;
	return true;
}

/*
 * Closes a level that ended, or begins the next event, or advances to the window's end. Returns 1
 * with the stretch that ended there, 0 when there is none, -errno.
 */
static int walk_step(struct hostwalk *w, struct host_segment *ret)
{
	uint32_t idx = w->next_event;
	int64_t until_ns = w->next_start_ns;
	int made, error;

	if (w->stack.cnt > 1 && top_ended(w))
		return pop(w, ret);
	if (idx == EVENT_NONE) {
		w->ended = true;
		return emit_until(w, w->path->window->end_ns, EVENT_NONE, ret);
	}
	made = emit_until(w, until_ns, idx, ret);
	error = made;
	if (made >= 0)
		error = is_caller(w, idx) ? push_caller(w, idx) : push_event(w, idx);
	find_event(w, idx + 1);
	w->passed = false;
	return error < 0 ? error : made;
}

/* Advances the callers' walk until the next event's caller has a node. */
static __attribute__((noinline)) int advance_callers(struct hostwalk *w)
{
	const struct event *called = &w->path->trace->events[w->next_event];
	struct hostwalk *callers = w->callers;
	struct host_segment seg;

	w->passed = true;
	while (called->parent != EVENT_NONE && callers->next_event <= called->parent) {
		int made = walk_step(callers, &seg);

		if (made > 0)
			made = vec_push(&callers->kept, seg);
		if (made < 0)
			return made;
	}
	return 0;
}

int hostwalk_next(struct hostwalk *walk, struct host_segment *ret)
{
	int made = 0;

	if (walk->given < walk->kept.cnt) {
		*ret = walk->kept.data[walk->given++];
		return 1;
	}
	walk->given = walk->kept.cnt = 0;
	while (made == 0 && !walk->ended) {
		if (walk->callers != NULL && !walk->passed && walk->next_event != EVENT_NONE)
			made = advance_callers(walk);
		if (made == 0)
			made = walk_step(walk, ret);
	}
	return made;
}

struct hostwalk *hostwalk_new(struct hostpath *path, uint32_t lane)
{
	static const struct level bottom = {
		.end_ns = INT64_MAX, .event = EVENT_NONE, .node = CCT_ROOT, .last = EVENT_NONE
	};
	struct hostwalk *w = calloc(1, sizeof(*w));

	if (w == NULL)
		return NULL;
	w->path = path;
	w->lane = lane;
	w->cursor_ns = path->window->start_ns;
	if (vec_push(&w->stack, bottom) < 0)
		return hostwalk_free(w);
	find_event(w, 0);
	return w;
}

void hostwalk_called_from(struct hostwalk *walk, struct hostwalk *callers)
{
	walk->callers = callers;
}

struct hostwalk *hostwalk_free(struct hostwalk *walk)
{
	if (walk == NULL)
		return NULL;
	vec_done(&walk->kept);
	vec_done(&walk->stack);
	vec_done(&walk->classes);
	idmap_done(&walk->surrounds);
	idmap_done(&walk->idle_nodes);
	free(walk);
	return NULL;
}

static int walk_next(void *from, struct host_segment *ret)
{
	return hostwalk_next(from, ret);
}

struct host_source hostwalk_source(struct hostwalk *walk)
{
	return (struct host_source){ walk_next, walk };
}
