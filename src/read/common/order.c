/* SPDX-License-Identifier: Apache-2.0 */
#include "read/common/order.h"

#include "base/vec.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* More runs than that are sorted first: their heads would fit no cache. */
#define RUNS_MAX 4096u
/* Events whose pages are freed together. */
#define BLOCK_EVENTS 4096u

/* A run of sorted events of one lane, from its first event that was not moved yet. */
struct run {
	int64_t start_ns, dur_ns; /* of that event */
	uint8_t depth;
	const uint32_t *next, *end;
};

typedef VEC(struct run) run_vec;

/* Whether event a must come after event b; equal ones keep their file order. */
static bool later(const struct event *events, uint32_t a, uint32_t b)
{
	if (events[a].start_ns != events[b].start_ns)
		return events[a].start_ns > events[b].start_ns;
	if (events[a].dur_ns != events[b].dur_ns)
		return events[a].dur_ns < events[b].dur_ns;
	if (events[a].scratch != events[b].scratch)
		return events[a].scratch > events[b].scratch;
	return a > b;
}

static bool is_sorted(const struct event *events, size_t cnt)
{
	for (size_t i = 1; i < cnt; i++) {
		if (later(events, (uint32_t)i - 1, (uint32_t)i))
			return false;
	}
	return true;
}

/*
 * Indexes by lane, in file order within a lane. Writers interleave the events of
 * a stream with the calls that launched them; each lane alone is nearly sorted.
 */
static int order_by_lane(const struct event *events, size_t cnt, uint32_t *order)
{
	size_t lane_cnt = (size_t)UINT16_MAX + 1;
	uint32_t *next = calloc(lane_cnt, sizeof(*next)), at = 0;

	if (next == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < cnt; i++)
		next[events[i].lane]++;
	for (size_t lane = 0; lane < lane_cnt; lane++) {
		uint32_t begin = at;

		at += next[lane];
		next[lane] = begin;
	}
	for (size_t i = 0; i < cnt; i++)
		order[next[events[i].lane]++] = (uint32_t)i;
	free(next);
	return 0;
}

static int index_cmp(const void *a, const void *b, void *events)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x == y ? 0 : later(events, x, y) ? 1 : -1;
}

/* Sets what runs are compared by to that of the run's next event. */
static void run_show(struct run *run, const struct event *events)
{
	const struct event *event = &events[*run->next];

	run->start_ns = event->start_ns;
	run->dur_ns = event->dur_ns;
	run->depth = event->scratch;
}

/* Ends the run before order[at] and begins one there. */
static int run_begin(run_vec *runs, const struct event *events, const uint32_t *at)
{
	struct run run = { .next = at };

	if (runs->cnt > 0)
		runs->data[runs->cnt - 1].end = at;
	run_show(&run, events);
	return vec_push(runs, run);
}

static int runs_find(const struct event *events, const uint32_t *order, size_t cnt, run_vec *runs)
{
	int ret = run_begin(runs, events, order);

	for (size_t i = 1; i < cnt && ret == 0; i++) {
		if (later(events, order[i - 1], order[i]))
			ret = run_begin(runs, events, &order[i]);
	}
	if (ret == 0)
		runs->data[runs->cnt - 1].end = order + cnt;
	return ret;
}

/* Runs that are few enough. order[cnt] is set. */
static int runs_make(struct event *events, size_t cnt, uint32_t *order, run_vec *runs)
{
	int ret = order_by_lane(events, cnt, order);

	if (ret == 0)
		ret = runs_find(events, order, cnt, runs);
	if (ret < 0 || runs->cnt <= RUNS_MAX)
		return ret;
	qsort_r(order, cnt, sizeof(*order), index_cmp, events);
	runs->cnt = 0;
	return runs_find(events, order, cnt, runs);
}

static bool run_later(const struct run *a, const struct run *b)
{
	if (a->start_ns != b->start_ns)
		return a->start_ns > b->start_ns;
	if (a->dur_ns != b->dur_ns)
		return a->dur_ns < b->dur_ns;
	return a->depth != b->depth ? a->depth > b->depth : *a->next > *b->next;
}

/* The run at heap[at] may be later than those below it. */
static void heap_sink(struct run *heap, size_t cnt, size_t at)
{
	struct run run = heap[at];

	for (;;) {
		size_t child = 2 * at + 1;

		if (child >= cnt)
			break;
		if (child + 1 < cnt && run_later(&heap[child], &heap[child + 1]))
			child++;
		if (!run_later(&run, &heap[child]))
			break;
		heap[at] = heap[child];
		at = child;
	}
	heap[at] = run;
}

/* These events have been moved: their pages are freed. */
static void give_back(struct event *events, size_t block)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t begin = ((uintptr_t)(events + block * BLOCK_EVENTS) + page - 1) & ~(page - 1);
	uintptr_t end = (uintptr_t)(events + (block + 1) * BLOCK_EVENTS) & ~(page - 1);

	if (end > begin)
		(void)madvise((void *)begin, end - begin, MADV_DONTNEED);
}

/* Moves events[cnt] to sorted[cnt]. moved: zeros, one for each block of events. */
static void merge(struct event *events, run_vec *runs, struct event *sorted, uint16_t *moved)
{
	struct run *heap = runs->data;

	for (size_t i = runs->cnt / 2; i > 0; i--)
		heap_sink(heap, runs->cnt, i - 1);
	while (runs->cnt > 0) {
		uint32_t idx = *heap->next++;

		*sorted++ = events[idx];
		if (++moved[idx / BLOCK_EVENTS] == BLOCK_EVENTS)
			give_back(events, idx / BLOCK_EVENTS);
		if (heap->next < heap->end)
			run_show(heap, events);
		else
			*heap = heap[--runs->cnt];
		if (runs->cnt > 0)
			heap_sink(heap, runs->cnt, 0);
	}
}

int order_events(struct event **events, size_t cnt)
{
	_cleanup_free_ uint32_t *order = NULL;
	_cleanup_free_ uint16_t *moved = NULL;
	_cleanup_free_ struct event *sorted = NULL;
	run_vec runs = { 0 };
	int ret = -ENOMEM;

	if (cnt >= UINT32_MAX || is_sorted(*events, cnt))
		return cnt >= UINT32_MAX ? -EOVERFLOW : 0;
	order = malloc(cnt * sizeof(*order));
	moved = calloc(cnt / BLOCK_EVENTS + 1, sizeof(*moved));
	sorted = malloc(cnt * sizeof(*sorted));
	if (order != NULL && moved != NULL && sorted != NULL)
		ret = runs_make(*events, cnt, order, &runs);
	if (ret == 0) {
		merge(*events, &runs, sorted, moved);
		free(*events);
		*events = take_ptr(sorted);
	}
	vec_done(&runs);
	return ret;
}
