/* SPDX-License-Identifier: Apache-2.0 */
#include "summarize/iterations/lag.h"

#include "model/thresholds.h"
#include "summarize/classify.h"

#include <errno.h>
#include <math.h>

static int64_t end_of(const struct fp_iteration *iteration)
{
	return iteration->start_ns + iteration->dur_ns;
}

/* The first iteration that ends after a moment; the count if none does. */
static size_t iteration_after(const struct window *window, int64_t time_ns)
{
	size_t low = 0, high = window->iterations.cnt;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (end_of(&window->iterations.data[middle]) > time_ns)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/*
 * Kernels that communicate wait for other ranks, however far the device is: what is computed
 * shows that. known: by name, 0: not looked at, 1: computes or copies, 2: communicates.
 */
static bool is_work(const struct trace *trace, const struct event *e, uint8_t *known)
{
	if ((e->kind != KIND_KERNEL && e->kind != KIND_GPU_MEMOP) || e->parent == EVENT_NONE)
		return false;
	if (known[e->name] == 0)
		known[e->name] =
			classify_is_collective((enum event_kind)e->kind, event_name(trace, e)) ? 2
											       : 1;
	return known[e->name] == 1;
}

/* done[i + 1]: when the work launched until the end of iteration i has ended; done[0]: before. */
static int find_done(const struct trace *trace, const struct window *window, int64_t *done)
{
	_cleanup_free_ uint8_t *known = calloc(trace->strings.cnt + 1, sizeof(*known));
	size_t cnt = window->iterations.cnt;

	if (known == NULL)
		return -ENOMEM;
	for (size_t i = 0; i <= cnt; i++)
		done[i] = INT64_MIN;
	for (size_t i = 0; i < trace->event_cnt; i++) {
		const struct event *e = &trace->events[i];
		int64_t launch_ns;
		size_t at;

		if (!is_work(trace, e, known))
			continue;
		launch_ns = trace->events[e->parent].start_ns;
		at = launch_ns < window->iterations.data[0].start_ns
			     ? 0
			     : 1 + iteration_after(window, launch_ns);
		if (at <= cnt)
			done[at] = MAX(done[at], event_end_ns(e));
	}
	for (size_t i = 1; i <= cnt; i++)
		done[i] = MAX(done[i], done[i - 1]);
	return 0;
}

static bool is_behind(const struct window *window, const int64_t *done)
{
	const struct fp_iteration *all = window->iterations.data;
	size_t cnt = window->iterations.cnt;
	double mean_ns = (double)(end_of(&all[cnt - 1]) - all[0].start_ns) / (double)cnt;

	for (size_t i = 0; i < cnt; i++) {
		if (done[i + 1] > end_of(&all[i]) &&
		    (double)(done[i + 1] - end_of(&all[i])) > LAG_FRAC * mean_ns)
			return true;
	}
	return false;
}

/* How much the lengths of iterations differ, as a share of their mean. */
struct lengths {
	double sum_ns, shortest_ns, longest_ns;
};

static void add_length(struct lengths *l, double ns)
{
	l->shortest_ns = l->sum_ns > 0 ? fmin(l->shortest_ns, ns) : ns;
	l->longest_ns = fmax(l->longest_ns, ns);
	l->sum_ns += ns;
}

/*
 * Whether the ends of work show the iterations better than the marks do: the marks leave out much
 * of the time, or are uneven where the work is even. False also where an iteration would be empty.
 */
static bool shows_better(const struct window *window, const int64_t *done)
{
	struct lengths marks = { 0 }, work = { 0 };
	double cnt = (double)window->iterations.cnt;
	int64_t before = done[0];

	for (size_t i = 0; i < window->iterations.cnt; i++) {
		const struct fp_iteration *it = &window->iterations.data[i];
		int64_t start = MAX(it->start_ns, before), end = MAX(end_of(it), done[i + 1]);

		if (end <= start)
			return false;
		add_length(&marks, (double)it->dur_ns);
		add_length(&work, (double)(end - start));
		before = end;
	}
	return work.sum_ns >= (1 + LAG_FRAC) * marks.sum_ns ||
	       (cnt * (marks.longest_ns - marks.shortest_ns) >= LAG_UNEVEN * marks.sum_ns &&
		work.longest_ns - work.shortest_ns <= (marks.longest_ns - marks.shortest_ns) / 2);
}

int lag_settle(const struct trace *trace, struct window *window)
{
	_cleanup_free_ int64_t *done = calloc(window->iterations.cnt + 1, sizeof(*done));
	int64_t before;

	if (done == NULL)
		return -ENOMEM;
	if (window->iterations.cnt == 0 || !trace->meta.has_device)
		return 0;
	if (find_done(trace, window, done) < 0)
		return -ENOMEM;
	if (!is_behind(window, done) || !shows_better(window, done))
		return 0;
	before = done[0];
	for (size_t i = 0; i < window->iterations.cnt; i++) {
		struct fp_iteration *it = &window->iterations.data[i];
		int64_t end = MAX(end_of(it), done[i + 1]);

		it->start_ns = MAX(it->start_ns, before);
		it->dur_ns = end - it->start_ns;
		before = end;
	}
	return 0;
}
