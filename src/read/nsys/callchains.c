/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sampled call chains, as far as they are Python's: a frame is one whose module is a file
 * "*.py", or whose symbol names one. Native frames are left out: most have no symbol, and
 * what they would name is what the calls of CUDA and the system name already.
 *
 * What neighboring samples of a thread have in common lasted from one to the other; a
 * sample covers two periods (median distances) at most, as a thread that does not run
 * is not sampled.
 */
#include "base/str.h"
#include "read/nsys/nsys_parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DEPTH 512

/* One Python frame of a chain. */
struct link_of_chain {
	int64_t chain, depth; /* 0: the innermost */
	uint32_t name;
};

/* Where a thread was; frames: the range of them in struct samples.links. */
struct stack {
	int64_t time_ns;
	size_t first, cnt;
	uint16_t lane;
};

struct samples {
	VEC(struct link_of_chain) links; /* by chain, outermost first */
	VEC(struct stack) stacks;
	struct idmap first; /* chain to its first link */
};

static bool is_python(const char *text)
{
	const char *dot = strstr(text, ".py");

	return dot != NULL && (dot[3] == '\0' || dot[3] == ':' || dot[3] == '(');
}

/* "FILE(0): SYMBOL", as other traces have it, or what the symbol is; 0: not Python. */
static int frame_name(struct nsys_pass *pass, int64_t symbol, int64_t module, uint32_t *ret)
{
	const struct strtab *strings = &pass->trace->strings;
	struct nsys_name what, where = { 0 };
	struct str text = { 0 };
	int r = nsys_string(pass, symbol, NSYS_TEXT, &what);

	*ret = 0;
	if (r == 0 && module >= 0)
		r = nsys_string(pass, module, NSYS_TEXT, &where);
	if (r < 0)
		return r;
	if (!is_python(strtab_text(strings, where.id))) {
		*ret = is_python(strtab_text(strings, what.id)) ? what.id : 0;
		return 0;
	}
	str_printf(&text, "%s(0): %s", strtab_text(strings, where.id),
		   strtab_text(strings, what.id));
	r = str_error(&text);
	if (r == 0)
		r = nsys_intern(pass, str_borrow(&text), text.len, ret);
	str_done(&text);
	return r;
}

static int by_chain(const void *a, const void *b)
{
	const struct link_of_chain *x = a, *y = b;

	if (x->chain != y->chain)
		return x->chain < y->chain ? -1 : 1;
	return (x->depth < y->depth) - (x->depth > y->depth);
}

static int index_chains(struct samples *samples)
{
	int ret = 0;

	if (samples->links.cnt > UINT32_MAX - 1)
		return -ENOMEM;
	if (samples->links.cnt > 0)
		qsort(samples->links.data, samples->links.cnt, sizeof(*samples->links.data),
		      by_chain);
	for (size_t i = 0; i < samples->links.cnt && ret == 0; i++) {
		if (i == 0 || samples->links.data[i].chain != samples->links.data[i - 1].chain)
			ret = idmap_set(&samples->first, (uint64_t)samples->links.data[i].chain,
					(uint32_t)i);
	}
	return ret;
}

static int read_chains(struct nsys_pass *pass, struct samples *samples)
{
	static const struct nsys_column columns[] = {
		{ "id", false }, { "stackDepth", false }, { "symbol", false }, { "module", true }
	};
	struct nsys_query query;
	int ret = nsys_rows(pass, &query, "SAMPLING_CALLCHAINS", columns, ARRAY_SIZE(columns),
			    NSYS_ROWS_ALL);

	while (ret > 0 && (ret = nsys_query_next(&query)) > 0) {
		struct link_of_chain link;
		int64_t symbol, module = -1;

		if (!nsys_query_int(&query, 0, &link.chain) ||
		    !nsys_query_int(&query, 1, &link.depth) ||
		    !nsys_query_int(&query, 2, &symbol)) {
			pass->trace->drops.bad_value++;
			continue;
		}
		(void)nsys_query_int(&query, 3, &module);
		ret = frame_name(pass, symbol, module, &link.name);
		if (ret == 0 && link.name != 0)
			ret = vec_push(&samples->links, link);
		if (ret < 0)
			break;
		ret = 1;
	}
	nsys_query_close(&query);
	return ret == 0 ? index_chains(samples) : ret;
}

static size_t chain_len(const struct samples *samples, size_t first)
{
	size_t end = first;

	while (end < samples->links.cnt && end - first < MAX_DEPTH &&
	       samples->links.data[end].chain == samples->links.data[first].chain)
		end++;
	return end - first;
}

static int read_stacks(struct nsys_pass *pass, struct samples *samples)
{
	static const struct nsys_column columns[] = { { "id", false },
						      { "start", false },
						      { "globalTid", false } };
	struct nsys_query query;
	int ret = nsys_rows(pass, &query, "COMPOSITE_EVENTS", columns, ARRAY_SIZE(columns),
			    NSYS_ROWS_OF_TID);

	while (ret > 0 && (ret = nsys_query_next(&query)) > 0) {
		struct stack stack = { 0 };
		int64_t chain, thread;
		uint32_t first;
		int lane;

		if (!nsys_query_int(&query, 0, &chain) ||
		    !nsys_query_int(&query, 1, &stack.time_ns) ||
		    !nsys_query_int(&query, 2, &thread)) {
			pass->trace->drops.bad_event++;
			continue;
		}
		first = idmap_get(&samples->first, (uint64_t)chain);
		if (first == IDMAP_NONE)
			continue;
		lane = nsys_thread(pass, thread);
		stack.lane = (uint16_t)MAX(lane, 0);
		stack.first = first;
		stack.cnt = chain_len(samples, first);
		if (lane == -ENOSPC)
			pass->trace->drops.unsupported_overlap++;
		else if (lane < 0 || vec_push(&samples->stacks, stack) < 0)
			ret = -ENOMEM;
		if (ret < 0)
			break;
	}
	nsys_query_close(&query);
	return ret;
}

/* --- from stacks to intervals --- */

static int by_lane(const void *a, const void *b)
{
	const struct stack *x = a, *y = b;

	if (x->lane != y->lane)
		return x->lane < y->lane ? -1 : 1;
	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return (x->first > y->first) - (x->first < y->first);
}

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* The median distance of stacks[cnt]; 0 when there is none. */
static int find_period(const struct stack *stacks, size_t cnt, int64_t *ret)
{
	_cleanup_free_ int64_t *gaps = calloc(cnt, sizeof(*gaps));
	size_t gap_cnt = 0;

	if (gaps == NULL)
		return -ENOMEM;
	for (size_t i = 1; i < cnt; i++) {
		int64_t gap;

		if (!__builtin_sub_overflow(stacks[i].time_ns, stacks[i - 1].time_ns, &gap) &&
		    gap > 0)
			gaps[gap_cnt++] = gap;
	}
	qsort(gaps, gap_cnt, sizeof(*gaps), by_value);
	*ret = gap_cnt > 0 ? gaps[gap_cnt / 2] : 0;
	return 0;
}

/* A frame that has not ended. */
struct open_frame {
	int64_t start_ns;
	uint32_t name, id;
};

struct open_stack {
	struct open_frame frames[MAX_DEPTH];
	size_t cnt;
	uint32_t next_id;
};

/* Ends the frames from keep on. */
static int end_frames(struct nsys_pass *pass, struct open_stack *open, size_t keep, uint16_t lane,
		      int64_t end_ns)
{
	int ret = 0;

	while (open->cnt > keep && ret == 0) {
		const struct open_frame *frame = &open->frames[--open->cnt];
		struct event event = { .name = frame->name, .kind = KIND_PYTHON };
		struct link link = { frame->id, CODE_NONE };

		if (open->cnt > 0)
			link.parent = open->frames[open->cnt - 1].id;
		ret = nsys_add(pass, event, lane, frame->start_ns, end_ns, &link);
	}
	return ret;
}

static size_t in_common(const struct open_stack *open, const struct samples *samples,
			const struct stack *stack)
{
	size_t cnt = 0;

	while (cnt < open->cnt && cnt < stack->cnt &&
	       open->frames[cnt].name == samples->links.data[stack->first + cnt].name)
		cnt++;
	return cnt;
}

static void begin_frames(struct open_stack *open, const struct samples *samples,
			 const struct stack *stack)
{
	while (open->cnt < stack->cnt) {
		open->frames[open->cnt] =
			(struct open_frame){ stack->time_ns,
					     samples->links.data[stack->first + open->cnt].name,
					     open->next_id++ };
		open->cnt++;
	}
}

/* When what stacks[0] shows ends: at the next one, or when it has stood long enough. */
static int64_t stack_end_ns(const struct stack *stacks, size_t cnt, int64_t period_ns)
{
	int64_t limit_ns;

	if (__builtin_add_overflow(stacks[0].time_ns, 2 * period_ns, &limit_ns))
		return stacks[0].time_ns;
	return cnt > 1 ? MIN(limit_ns, stacks[1].time_ns) : limit_ns;
}

static int add_lane(struct nsys_pass *pass, const struct samples *samples,
		    const struct stack *stacks, size_t cnt, struct open_stack *open)
{
	int64_t period_ns, end_ns = INT64_MIN;
	int ret = find_period(stacks, cnt, &period_ns);

	period_ns = MIN(period_ns, NSEC_PER_SEC);
	for (size_t i = 0; i < cnt && ret == 0; i++) {
		bool follows = stacks[i].time_ns == end_ns;
		size_t keep = follows ? in_common(open, samples, &stacks[i]) : 0;

		ret = end_frames(pass, open, keep, stacks[0].lane, end_ns);
		begin_frames(open, samples, &stacks[i]);
		end_ns = stack_end_ns(&stacks[i], cnt - i, period_ns);
	}
	return ret == 0 ? end_frames(pass, open, 0, stacks[0].lane, end_ns) : ret;
}

static int add_stacks(struct nsys_pass *pass, const struct samples *samples)
{
	_cleanup_free_ struct open_stack *open = calloc(1, sizeof(*open));
	const struct stack *stacks = samples->stacks.data;
	int ret = open != NULL ? 0 : -ENOMEM;

	for (size_t i = 0, end; i < samples->stacks.cnt && ret == 0; i = end) {
		for (end = i + 1; end < samples->stacks.cnt && stacks[end].lane == stacks[i].lane;
		     end++)
			;
		ret = add_lane(pass, samples, &stacks[i], end - i, open);
	}
	pass->trace->meta.has_stacks = true;
	pass->trace->meta.sampled = true;
	return ret;
}

int nsys_read_samples(struct nsys_pass *pass)
{
	struct samples samples = { 0 };
	int ret = read_chains(pass, &samples);

	if (ret == 0 && samples.links.cnt > 0)
		ret = read_stacks(pass, &samples);
	if (ret == 0 && samples.stacks.cnt > 0) {
		qsort(samples.stacks.data, samples.stacks.cnt, sizeof(*samples.stacks.data),
		      by_lane);
		ret = add_stacks(pass, &samples);
	}
	vec_done(&samples.links);
	vec_done(&samples.stacks);
	idmap_done(&samples.first);
	return ret;
}
