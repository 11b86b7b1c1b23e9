/* SPDX-License-Identifier: Apache-2.0 */
#include "summarize/window.h"

#include "model/thresholds.h"
#include "summarize/iterations/lag.h"
#include "summarize/namefacts.h"
#include "summarize/repeats.h"

#include <errno.h>
#include <string.h>

void window_done(struct window *window)
{
	vec_done(&window->iterations);
}

int64_t window_step_number(const char *name)
{
	static const char step[] = "ProfilerStep#";
	int64_t number = 0;
	const char *p = name + sizeof(step) - 1;

	if (strncmp(name, step, sizeof(step) - 1) != 0 || *p < '0' || *p > '9')
		return -1;
	for (; *p >= '0' && *p <= '9' && number < INT64_MAX / 16; p++)
		number = number * 10 + (*p - '0');
	return number;
}

static bool is_execution(const struct event *event)
{
	switch ((enum event_kind)event->kind) {
	case KIND_PYTHON:
	case KIND_OPERATOR:
	case KIND_ANNOTATION:
	case KIND_RUNTIME:
	case KIND_KERNEL:
	case KIND_GPU_MEMOP:
	case KIND_GC:
		return true;
	case KIND_GPU_ANNOTATION:
	case KIND_SYNC:
	case KIND_OVERHEAD:
	case KIND_OTHER:
	case KIND_CNT:
	default:
		return false;
	}
}

/* Evidence that a lane is the training thread; a later field decides ties. */
struct lane_score {
	uint64_t steps, optimizer, loader, work, backward;
	bool helper; /* its Python root is threading's bootstrap: started by the program */
};

static void score_event(const struct event *event, unsigned int facts, struct lane_score *score)
{
	if (event->kind == KIND_ANNOTATION) {
		score->steps += (facts & NAME_STEP) != 0;
		score->optimizer += (facts & NAME_OPTIMIZER) != 0;
		score->loader += (facts & NAME_LOADER) != 0;
	} else if (event->kind == KIND_PYTHON) {
		score->work++;
		score->helper |= event->parent == EVENT_NONE && facts & NAME_BOOTSTRAP;
	} else if (event->kind == KIND_OPERATOR) {
		score->work++;
		score->backward += (facts & NAME_BACKWARD) != 0;
	}
}

static bool score_better(const struct lane_score *a, const struct lane_score *b)
{
	if (a->steps != b->steps)
		return a->steps > b->steps;
	if (a->helper != b->helper)
		return b->helper;
	if (a->optimizer != b->optimizer)
		return a->optimizer > b->optimizer;
	if (a->loader != b->loader)
		return a->loader > b->loader;
	/* The autograd thread may have more operators than the training thread. */
	if ((a->work > a->backward) != (b->work > b->backward))
		return a->work > a->backward;
	return a->work - a->backward > b->work - b->backward;
}

/* scores: by lane. */
static void find_lanes(const struct trace *trace, const struct lane_score *scores,
		       struct window *window)
{
	uint32_t best = LANE_NONE, backward = LANE_NONE;

	for (uint32_t i = 0; i < trace->lane_cnt; i++) {
		const struct lane_score *s = &scores[i];

		if (trace->lanes[i].type != LANE_THREAD || s->work + s->steps + s->optimizer == 0)
			continue;
		if (best == LANE_NONE || score_better(s, &scores[best]))
			best = i;
	}
	for (uint32_t i = 0; i < trace->lane_cnt; i++) {
		if (i != best && trace->lanes[i].type == LANE_THREAD && scores[i].backward > 0 &&
		    (backward == LANE_NONE || scores[i].backward > scores[backward].backward))
			backward = i;
	}
	window->training_lane = best;
	window->backward_lane = backward;
}

/* Finds the extent of all executions, and the scores of lanes. */
static void look_at_events(const struct trace *trace, const uint16_t *facts,
			   struct lane_score *scores, struct window *window)
{
	window->start_ns = INT64_MAX;
	window->end_ns = INT64_MIN;
	for (size_t i = 0; i < trace->event_cnt; i++) {
		const struct event *e = &trace->events[i];

		score_event(e, facts[e->name], &scores[e->lane]);
		if (!is_execution(e) || trace->lanes[e->lane].type == LANE_OTHER)
			continue;
		window->start_ns = MIN(window->start_ns, e->start_ns);
		window->end_ns = MAX(window->end_ns, event_end_ns(e));
	}
}

/* Ensures that sums of times within the window cannot overflow. */
static int check_extent(const struct trace *trace, const struct window *window, struct err *err)
{
	const char *source = trace->meta.source != NULL ? trace->meta.source : "trace";
	int64_t length;

	if (window->end_ns <= window->start_ns)
		return err_set(err, ENODATA, "%s: expected executions, found none in %zu events",
			       source, trace->event_cnt);
	if (__builtin_sub_overflow(window->end_ns, window->start_ns, &length) ||
	    length > WINDOW_MAX_NS)
		return err_set(err, ENODATA,
			       "%s: expected executions within a year, found %lld ns to %lld ns",
			       source, (long long)window->start_ns, (long long)window->end_ns);
	return 0;
}

static bool step_wanted(const struct window_options *options, int64_t number)
{
	return options == NULL || options->last_step < options->first_step ||
	       (number >= options->first_step && number <= options->last_step);
}

/* Iterations from the job's step annotations. Each begins where the previous one ended. */
static int add_marked_steps(const struct trace *trace, const struct window_options *options,
			    struct window *window)
{
	for (size_t i = 0; i < trace->event_cnt; i++) {
		const struct event *e = &trace->events[i];
		int64_t number = -1;

		if (e->kind == KIND_ANNOTATION && e->lane == window->training_lane && e->dur_ns > 0)
			number = window_step_number(event_name(trace, e));
		if (number < 0 || !step_wanted(options, number))
			continue;
		if (vec_push(&window->iterations, (struct fp_iteration){
							  .number = number,
							  .start_ns = e->start_ns,
							  .dur_ns = e->dur_ns,
						  }) < 0)
			return -ENOMEM;
	}
	return 0;
}

static bool is_annotation(const struct event *event, uint32_t lane)
{
	return event->lane == lane && event->kind == KIND_ANNOTATION;
}

/* Whether annotations of loader calls or forward passes show where an iteration begins. */
static bool has_beginnings(const struct trace *trace, const uint16_t *facts, uint32_t lane)
{
	for (size_t i = 0; i < trace->event_cnt; i++) {
		const struct event *e = &trace->events[i];

		if (is_annotation(e, lane) && facts[e->name] & (NAME_LOADER | NAME_FORWARD))
			return true;
	}
	return false;
}

/*
 * Without annotations: an iteration ends with a group of optimizer steps (paper 4.1). What begins
 * the next one ends the group: a loader call or a forward pass, else a backward pass.
 */
static int add_optimizer_steps(const struct trace *trace, const uint16_t *facts,
			       struct window *window)
{
	bool annotated = has_beginnings(trace, facts, window->training_lane);
	int64_t begin = window->start_ns, group_end = -1, number = 0;

	for (size_t i = 0; i <= trace->event_cnt; i++) {
		const struct event *e = i < trace->event_cnt ? &trace->events[i] : NULL;
		bool annotation = e != NULL && is_annotation(e, window->training_lane);
		unsigned int name = e != NULL ? facts[e->name] : 0;
		bool other = e == NULL;

		if (annotated)
			other |= annotation && name & (NAME_LOADER | NAME_FORWARD);
		else
			other |= e != NULL && e->kind == KIND_OPERATOR && name & NAME_BACKWARD;
		if (other && group_end > begin) {
			if (vec_push(&window->iterations, (struct fp_iteration){
								  .number = number++,
								  .start_ns = begin,
								  .dur_ns = group_end - begin,
							  }) < 0)
				return -ENOMEM;
			begin = group_end;
			group_end = -1;
		}
		if (annotation && name & NAME_OPTIMIZER)
			group_end = event_end_ns(e);
	}
	return 0;
}

/* Nothing marks iterations: optimizer steps do, else they are guessed. */
static int add_likely(const struct trace *trace, const uint16_t *facts, struct window *window)
{
	int ret = add_optimizer_steps(trace, facts, window);

	window->iterations_by = ITERATIONS_OPTIMIZER;
	if (ret < 0)
		return ret;
	if (window->iterations.cnt > 0)
		return lag_settle(trace, window);
	window->iterations_by = ITERATIONS_REPEATS;
	return repeats_add(trace, window);
}

static void drop_first(struct window *window)
{
	window->iterations.cnt--;
	memmove(window->iterations.data, window->iterations.data + 1,
		window->iterations.cnt * sizeof(*window->iterations.data));
}

/* Memory is allocated and kernels are chosen in the first iteration: it is like no other. */
static bool has_warmup(const struct window *window)
{
	int64_t longest_ns = 0;

	for (size_t i = 1; i < window->iterations.cnt; i++)
		longest_ns = MAX(longest_ns, window->iterations.data[i].dur_ns);
	return window->iterations.cnt >= WARMUP_ITERATIONS &&
	       (double)window->iterations.data[0].dur_ns > WARMUP_FACTOR * (double)longest_ns;
}

/* Iterations that the worker's own marks made, as in windows of live jobs, have no warm-up. */
static void skip_iterations(const struct trace *trace, const struct window_options *options,
			    struct window *window)
{
	if (options->skip_first && window->iterations.cnt >= 4) {
		drop_first(window);
	} else if (options->skip_warmup && options->last_step < options->first_step &&
		   trace->iterations_by == ITERATIONS_UNKNOWN && has_warmup(window)) {
		window->warmup_ns = window->iterations.data[0].dur_ns;
		drop_first(window);
	}
}

int window_find(const struct trace *trace, const struct window_options *options, struct window *ret,
		struct err *err)
{
	_cleanup_free_ uint16_t *facts = names_facts(&trace->strings);
	_cleanup_free_ struct lane_score *scores = calloc(trace->lane_cnt + 1, sizeof(*scores));
	struct window window = { 0 };
	int error;

	if (facts == NULL || scores == NULL)
		return -ENOMEM;
	look_at_events(trace, facts, scores, &window);
	error = check_extent(trace, &window, err);
	if (error < 0)
		return error;
	find_lanes(trace, scores, &window);
	if (window.training_lane != LANE_NONE)
		error = add_marked_steps(trace, options, &window);
	/* Windows of live jobs have the bounds by which their pace is known. */
	if (error == 0 && trace->iterations_by == ITERATIONS_UNKNOWN)
		error = lag_settle(trace, &window);
	if (error == 0 && options != NULL)
		skip_iterations(trace, options, &window);
	if (error == 0 && window.iterations.cnt > 0) {
		const struct fp_iteration *last =
			&window.iterations.data[window.iterations.cnt - 1];

		window.iterations_by = trace->iterations_by != ITERATIONS_UNKNOWN
					       ? (enum iterations_by)trace->iterations_by
					       : ITERATIONS_ANNOTATION;
		window.start_ns = window.iterations.data[0].start_ns;
		window.end_ns = last->start_ns + last->dur_ns;
	} else if (error == 0 && options != NULL && options->last_step >= options->first_step) {
		error = err_set(err, ENODATA, "%s: no step %lld-%lld in it (\"ProfilerStep#N\")",
				trace->meta.source != NULL ? trace->meta.source : "trace",
				(long long)options->first_step, (long long)options->last_step);
	} else if (error == 0 && window.training_lane != LANE_NONE) {
		error = add_likely(trace, facts, &window);
	}
	if (error < 0) {
		window_done(&window);
		return error;
	}
	if (window.iterations.cnt == 0)
		window.iterations_by = ITERATIONS_UNKNOWN;
	vec_foreach(it, &window.iterations)
		it->start_ns -= window.start_ns;
	*ret = window;
	return 0;
}
