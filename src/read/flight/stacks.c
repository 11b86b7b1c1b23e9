/* SPDX-License-Identifier: Apache-2.0 */
#include "read/flight/stacks.h"

#include <errno.h>
#include <string.h>

#define DEPTH_MAX 512u			/* frames of one stack, counted from the innermost */
#define GAP_PERIODS 20			/* a longer gap between samples has no stack */
#define FILL_PERIODS 2			/* at the window's ends */
#define GAP_MIN_NS (50 * NSEC_PER_MSEC) /* blocked threads are recorded rarely */

/* One sample: its stack is frames[off, off + len), the outermost first. */
struct look {
	int64_t time_ns;
	int64_t begin_ns, end_ns; /* the time it covers, cut to the window */
	uint32_t off, len;
	uint32_t node;
	uint32_t leaf; /* string id of a wait below the stack; 0: none */
};

/* A frame whose event has begun. */
struct open_frame {
	uint32_t frame, event, id;
};

/* The wait below the stack that goes on. */
struct open_leaf {
	uint32_t name; /* 0: none */
	int64_t begin_ns;
	size_t first; /* look */
};

struct stacks {
	struct flight_pass *pass;
	const struct flight_thread *thread;
	leaf_vec *leaves;
	VEC(struct look) looks;
	VEC(uint32_t) frames;
	VEC(struct open_frame) open;
	struct open_leaf leaf;
};

/* --- looks --- */

/* Adds the stack of a node, unless the look before has the same. Returns 0 or -ENOMEM. */
static int add_stack(struct stacks *s, struct look *look)
{
	const struct flightlog *log = s->pass->log;
	uint32_t frames[DEPTH_MAX], node = look->node, cnt = 0;

	if (s->looks.cnt > 0 && s->looks.data[s->looks.cnt - 1].node == node) {
		look->off = s->looks.data[s->looks.cnt - 1].off;
		look->len = s->looks.data[s->looks.cnt - 1].len;
		return 0;
	}
	for (size_t i = 0; node != 0 && i < DEPTH_MAX; node = log->nodes.data[node].parent, i++) {
		if (log->nodes.data[node].frame != 0)
			frames[cnt++] = log->nodes.data[node].frame;
	}
	if (vec_reserve(&s->frames, s->frames.cnt + cnt + 1) < 0) /* never NULL */
		return -ENOMEM;
	look->off = (uint32_t)s->frames.cnt;
	look->len = cnt;
	while (cnt > 0)
		s->frames.data[s->frames.cnt++] = frames[--cnt];
	return 0;
}

static enum frame_part part_at(const struct stacks *s, const struct look *look, uint32_t depth)
{
	return (enum frame_part)s->pass->names.frames[s->frames.data[look->off + depth]].part;
}

/* A thread of the agent's Python hook does no work of the job. */
static bool is_own(const struct stacks *s, const struct look *look)
{
	uint32_t depth = 0;

	while (depth < look->len && part_at(s, look, depth) == PART_THREADING)
		depth++;
	return depth < look->len && part_at(s, look, depth) == PART_OWN;
}

static int leaf_of(struct stacks *s, uint16_t detail, uint32_t *ret)
{
	static const char gil[] = EVENT_GIL_WAIT;

	*ret = 0;
	if (detail & FLIGHT_SAMPLE_GIL_WAIT)
		*ret = strtab_intern(s->pass->names.strings, gil, sizeof(gil) - 1);
	else if (detail & FLIGHT_SAMPLE_SYSCALL)
		*ret = flight_names_syscall(&s->pass->names, detail >> 4);
	return *ret == STRTAB_NONE ? -ENOMEM : 0;
}

static int add_look(struct stacks *s, const struct ring_record *sample)
{
	struct look look = { .time_ns = sample->time_ns, .node = (uint32_t)sample->extra };
	int ret = add_stack(s, &look);

	if (ret == 0)
		ret = leaf_of(s, sample->detail, &look.leaf);
	if (ret == 0 && is_own(s, &look))
		look.len = 0;
	if (ret == 0 && look.len == 0)
		look.leaf = 0;
	return ret == 0 ? vec_push(&s->looks, look) : ret;
}

/* The samples of the window, and one on either side. */
static int add_looks(struct stacks *s, const struct ring_record *samples, size_t cnt)
{
	size_t begin = 0, end = cnt;
	int ret = 0;

	while (begin + 1 < cnt && samples[begin + 1].time_ns <= s->pass->start_ns)
		begin++;
	while (end > begin + 1 && samples[end - 2].time_ns >= s->pass->end_ns)
		end--;
	for (size_t i = begin; i < end && ret == 0; i++)
		ret = add_look(s, &samples[i]);
	return ret;
}

/* --- the moment at which a stack changed --- */

static uint32_t common_depth(const struct stacks *s, const struct look *a, const struct look *b)
{
	const uint32_t *x = &s->frames.data[a->off], *y = &s->frames.data[b->off];
	uint32_t most = MIN(a->len, b->len), depth = 0;

	if (a->off == b->off)
		return most;
	while (depth < most && x[depth] == y[depth])
		depth++;
	return depth;
}

static bool has_part(const struct stacks *s, const struct look *look, uint32_t from,
		     enum frame_part part)
{
	for (uint32_t depth = from; depth < look->len; depth++) {
		if (part_at(s, look, depth) == part)
			return true;
	}
	return false;
}

/* The kind of mark that records this change of stacks; 0: none. */
static enum mark mark_wanted(const struct stacks *s, const struct look *a, const struct look *b,
			     uint32_t common)
{
	if (has_part(s, a, common, PART_LOADER))
		return MARK_DATALOADER_END;
	if (has_part(s, b, common, PART_LOADER))
		return MARK_DATALOADER;
	if (has_part(s, a, common, PART_OPTIMIZER))
		return MARK_OPTIMIZER;
	if (has_part(s, b, common, PART_OPTIMIZER))
		return MARK_OPTIMIZER_BEGIN;
	return 0;
}

/* First mark later than a time. */
static size_t mark_after(const record_vec *marks, int64_t time_ns)
{
	size_t low = 0, high = marks->cnt;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (marks->data[middle].time_ns > time_ns)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static bool find_mark(const struct stacks *s, const struct look *a, const struct look *b,
		      uint32_t common, int64_t *ret)
{
	const record_vec *marks = &s->pass->marks;
	enum mark wanted = 0;

	if (s->thread->tid == s->pass->log->training_tid)
		wanted = mark_wanted(s, a, b, common);
	if (wanted == 0)
		return false;
	for (size_t i = mark_after(marks, a->time_ns);
	     i < marks->cnt && marks->data[i].time_ns <= b->time_ns; i++) {
		if (marks->data[i].kind == wanted) {
			*ret = marks->data[i].time_ns;
			return true;
		}
	}
	return false;
}

/* First edge later than a time. */
static size_t edge_after(const struct flight_thread *thread, int64_t time_ns)
{
	size_t low = 0, high = thread->edge_cnt;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (thread->edges[middle].time_ns > time_ns)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* The best moment between a and b by weight; of those the one nearest to the middle. */
static int64_t lightest(const struct flight_thread *thread, int64_t a_ns, int64_t b_ns)
{
	int64_t middle_ns = a_ns + (b_ns - a_ns) / 2, best_ns = middle_ns, begin_ns = a_ns;
	int64_t best = INT64_MAX, best_off_ns = INT64_MAX;

	for (size_t i = edge_after(thread, a_ns);; i++) {
		bool last = i >= thread->edge_cnt || thread->edges[i].time_ns >= b_ns;
		int64_t end_ns = last ? b_ns : thread->edges[i].time_ns;
		int64_t weight = i > 0 ? thread->edges[i - 1].weight : 0;
		int64_t at_ns = MIN(MAX(middle_ns, begin_ns), end_ns);
		int64_t off_ns = at_ns > middle_ns ? at_ns - middle_ns : middle_ns - at_ns;

		if (weight < best || (weight == best && off_ns < best_off_ns)) {
			best = weight;
			best_off_ns = off_ns;
			best_ns = at_ns;
		}
		if (last)
			return best_ns;
		begin_ns = end_ns;
	}
}

static int64_t change_ns(const struct stacks *s, const struct look *a, const struct look *b)
{
	int64_t after_ns = a->time_ns, mark_ns;

	if (find_mark(s, a, b, common_depth(s, a, b), &mark_ns))
		return mark_ns;
	/* Threads other than the training thread are not recorded while blocked. */
	if (s->thread->tid != s->pass->log->training_tid)
		after_ns = MAX(after_ns, b->time_ns - s->pass->period_ns);
	return lightest(s->thread, after_ns, b->time_ns);
}

/* --- the time that each look covers --- */

static int64_t cut(const struct stacks *s, int64_t time_ns)
{
	return MIN(MAX(time_ns, s->pass->start_ns), s->pass->end_ns);
}

static void set_ends(struct stacks *s)
{
	const struct flight_pass *pass = s->pass;
	int64_t half_ns = s->pass->period_ns / 2;
	struct look *first = &s->looks.data[0], *last = &s->looks.data[s->looks.cnt - 1];

	first->begin_ns = first->time_ns - pass->start_ns <= FILL_PERIODS * s->pass->period_ns
				  ? pass->start_ns
				  : first->time_ns - half_ns;
	last->end_ns = pass->end_ns - last->time_ns <= FILL_PERIODS * s->pass->period_ns
			       ? pass->end_ns
			       : last->time_ns + half_ns;
}

/* A gap between two samples: its middle has no stack. */
static void set_gap(const struct stacks *s, struct look *a, struct look *b)
{
	const struct flight_pass *pass = s->pass;
	int64_t half_ns = s->pass->period_ns / 2;

	a->end_ns = a->time_ns + half_ns;
	b->begin_ns = b->time_ns - half_ns;
	/* Outside of the window samples are rare: its ends are filled as set_ends() does. */
	if (a->time_ns < pass->start_ns &&
	    b->time_ns - pass->start_ns <= FILL_PERIODS * s->pass->period_ns)
		b->begin_ns = MAX(pass->start_ns, a->end_ns);
	if (b->time_ns > pass->end_ns &&
	    pass->end_ns - a->time_ns <= FILL_PERIODS * s->pass->period_ns)
		a->end_ns = MIN(pass->end_ns, b->begin_ns);
}

static void set_spans(struct stacks *s)
{
	int64_t gap_ns = MAX(GAP_PERIODS * s->pass->period_ns, GAP_MIN_NS);

	set_ends(s);
	for (size_t i = 1; i < s->looks.cnt; i++) {
		struct look *a = &s->looks.data[i - 1], *b = &s->looks.data[i];

		if (b->time_ns - a->time_ns > gap_ns)
			set_gap(s, a, b);
		else
			a->end_ns = b->begin_ns = change_ns(s, a, b);
	}
	vec_foreach(look, &s->looks) {
		look->begin_ns = cut(s, look->begin_ns);
		look->end_ns = cut(s, look->end_ns);
	}
}

/* --- events --- */

/*
 * The part of a wait around one of its looks that no edge of an operator divides:
 * so waits nest with operators of which they cover only a part.
 */
static int add_leaf(struct stacks *s, const struct look *look, int64_t begin_ns, int64_t end_ns)
{
	const struct flight_thread *thread = s->thread;
	const struct open_frame *under = &s->open.data[s->open.cnt - 1];
	size_t after = edge_after(thread, look->time_ns);
	struct flight_leaf leaf = { .start_ns = begin_ns,
				    .end_ns = end_ns,
				    .name = s->leaf.name,
				    .link = { CODE_NONE, under->id },
				    .lane = thread->lane };

	if (after > 0)
		leaf.start_ns = MAX(leaf.start_ns, thread->edges[after - 1].time_ns);
	if (after < thread->edge_cnt)
		leaf.end_ns = MIN(leaf.end_ns, thread->edges[after].time_ns);
	if (leaf.end_ns <= leaf.start_ns)
		return 0;
	if (s->leaves->cnt > 0) {
		const struct flight_leaf *before = &s->leaves->data[s->leaves->cnt - 1];

		if (before->lane == leaf.lane && before->end_ns > leaf.start_ns)
			return 0;
	}
	return vec_push(s->leaves, leaf);
}

/* The wait that was open ended with look `end` - 1. */
static int close_leaf(struct stacks *s, size_t end)
{
	int64_t end_ns = end > 0 ? s->looks.data[end - 1].end_ns : 0;
	int ret = 0;

	for (size_t i = s->leaf.first; s->leaf.name != 0 && i < end && ret == 0; i++) {
		if (s->looks.data[i].end_ns > s->looks.data[i].begin_ns)
			ret = add_leaf(s, &s->looks.data[i], s->leaf.begin_ns, end_ns);
	}
	s->leaf.name = 0;
	return ret;
}

static void close_frames(struct stacks *s, uint32_t depth, int64_t time_ns)
{
	struct trace *trace = s->pass->trace;

	while (s->open.cnt > depth) {
		struct event *event = &trace->events[s->open.data[--s->open.cnt].event];

		event->dur_ns = time_ns + s->pass->to_wall_ns - event->start_ns;
	}
}

static int open_frames(struct stacks *s, const struct look *look)
{
	struct flight_pass *pass = s->pass;
	int ret = 0;

	while (ret == 0 && s->open.cnt < look->len) {
		uint32_t frame = s->frames.data[look->off + s->open.cnt];
		struct link link = { pass->next_id++, CODE_NONE };
		struct event event = { .name = pass->names.frames[frame].text,
				       .lane = s->thread->lane,
				       .kind = KIND_PYTHON };

		if (s->open.cnt > 0)
			link.parent = s->open.data[s->open.cnt - 1].id;
		ret = vec_push(
			&s->open,
			(struct open_frame){ frame, (uint32_t)pass->trace->event_cnt, link.id });
		if (ret == 0)
			ret = flight_add(pass, event, look->begin_ns, look->begin_ns, &link);
	}
	return ret;
}

/* Goes on from the look before, prev, to look i. */
static int advance(struct stacks *s, const struct look *prev, size_t i)
{
	const struct look *look = &s->looks.data[i];
	uint32_t common =
		prev == NULL || prev->end_ns != look->begin_ns ? 0 : common_depth(s, prev, look);
	bool same = prev != NULL && common == look->len && common == prev->len &&
		    look->leaf == s->leaf.name;
	int ret = 0;

	if (same)
		return 0;
	ret = close_leaf(s, i);
	if (prev != NULL)
		close_frames(s, common, prev->end_ns);
	if (ret == 0)
		ret = open_frames(s, look);
	if (look->len > 0)
		s->leaf = (struct open_leaf){ look->leaf, look->begin_ns, i };
	return ret;
}

static int make_events(struct stacks *s)
{
	const struct look *prev = NULL;
	int ret = 0;

	for (size_t i = 0; i < s->looks.cnt && ret == 0; i++) {
		const struct look *look = &s->looks.data[i];

		if (look->end_ns <= look->begin_ns)
			continue;
		ret = advance(s, prev, i);
		prev = look;
	}
	if (ret == 0 && prev != NULL) {
		ret = close_leaf(s, (size_t)(prev - s->looks.data) + 1);
		close_frames(s, 0, prev->end_ns);
	}
	return ret;
}

int flight_stacks(struct flight_pass *pass, const struct flight_thread *thread,
		  const struct ring_record *samples, size_t cnt, leaf_vec *leaves)
{
	struct stacks s = { .pass = pass, .thread = thread, .leaves = leaves };
	int ret = add_looks(&s, samples, cnt);

	if (ret == 0 && s.looks.cnt > 0) {
		pass->trace->meta.sampled = true;
		pass->trace->meta.sample_ns = pass->period_ns;
		set_spans(&s);
		ret = make_events(&s);
	}
	vec_done(&s.looks);
	vec_done(&s.frames);
	vec_done(&s.open);
	return ret;
}
