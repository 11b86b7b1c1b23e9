/* SPDX-License-Identifier: Apache-2.0 */
#include "localize/witness/by_past.h"

#include "base/stats.h"
#include "localize/usercode.h"
#include "localize/witness/gil.h"
#include "localize/witness/weighing.h"
#include "model/thresholds.h"

#include <errno.h>
#include <math.h>
#include <string.h>

/* Where one worker grew. */
struct grown {
	uint32_t frame;	  /* FRAME_NONE: nowhere, or everywhere a little */
	uint32_t accused; /* the place that it is accused of; FRAME_NONE: none yet */
	double ns;
};

struct by_past {
	const struct past *past;
	const struct job *job;
	double least_ns, most_ns; /* what a place must explain */
	double rare_ns;		  /* the same of one that few iterations show */
	struct grown *grown;	  /* by worker */
	bool *starved;		  /* by worker: far less CPU than before, wherever it grew */
	bool *held;		  /* by worker: no place, but another thread holds the GIL */
};

/*
 * How much longer a place takes, beyond the noise of both windows and beyond the factor by which the
 * rest of the worker grew: where the machine is slow all code is. What happens in every tenth
 * iteration never exceeds the noise of a short window; it counts if it happened again and explains
 * the slowdown.
 */
static double grown_ns(const struct by_past *b, size_t w, uint32_t frame)
{
	double ns = fmax(0, past_growth_beyond_ns(b->past, w, frame));

	if (past_sure_growth_ns(b->past, w, frame, PAST_SURE) > 0)
		return ns;
	if (past_sure_growth_ns(b->past, w, frame, PAST_AGAIN) > 0 && ns >= b->rare_ns)
		return ns;
	return 0;
}

/* The child of a frame, or the root, that grew most; FRAME_NONE: none. */
static uint32_t most_grown_child(const struct by_past *b, size_t w, uint32_t frame)
{
	uint32_t best = FRAME_NONE;
	double most = 0;

	for (uint32_t i = frame == FRAME_NONE ? 0 : frame + 1; i < b->job->frames.cnt; i++) {
		double ns;

		if (b->job->frames.data[i].parent != frame)
			continue;
		ns = grown_ns(b, w, i);
		if (ns > most) {
			best = i;
			most = ns;
		}
	}
	return best;
}

/* How much of its caller's growth a place must hold to be named instead. */
static double most_of(const struct by_past *b, size_t w, uint32_t frame, double ns)
{
	bool is_new = b->past->workers[w].before_ns[frame] <= PAST_NEW_FRAC * ns;

	return is_new ? PAST_MOST_NEW : PAST_MOST;
}

/*
 * The deepest frame that holds nearly all of the growth. The training loop is no place: below it
 * a function is one that explains enough of the slowdown, though not nearly all of it.
 */
static struct grown find_grown(const struct by_past *b, size_t w)
{
	struct grown at = { FRAME_NONE, FRAME_NONE, 0 };

	for (;;) {
		uint32_t child = most_grown_child(b, w, at.frame);
		bool loops = at.frame == FRAME_NONE || b->job->frames.data[at.frame].trains;
		double ns = child != FRAME_NONE ? grown_ns(b, w, child) : 0;

		if (child == FRAME_NONE ||
		    ns < (loops ? b->least_ns : most_of(b, w, child, ns) * at.ns))
			break;
		at = (struct grown){ child, FRAME_NONE, ns };
	}
	if (at.frame != FRAME_NONE) {
		at.frame = usercode_around(b->job->frames.data, at.frame);
		at.ns = past_growth_ns(b->past, w, at.frame);
	}
	return at;
}

/* A loop that grew without a callee: only what it does itself is its own. */
static double own_growth_ns(const struct by_past *b, size_t w, uint32_t frame)
{
	return b->job->frames.data[frame].trains ? past_own_growth_ns(b->past, w, frame)
						 : past_growth_beyond_ns(b->past, w, frame);
}

static bool explains(const struct by_past *b, const struct grown *g)
{
	return g->frame != FRAME_NONE && g->ns >= b->least_ns && g->ns <= b->most_ns;
}

/*
 * What a place must explain: a good part of the slowdown, by which the window was asked for and
 * which it shows itself, and no more than all of it. A job about as fast as before has no growth.
 */
static void set_limits(struct by_past *b, const struct accuse_options *options, double shown_ns)
{
	double least = options->min_gain_frac * b->job->iteration_ns;
	double slowdown = options->slowdown_ns;

	b->rare_ns =
		slowdown > 0 ? EXCESS_SLOWDOWN * fmax(shown_ns, options->triggered_ns) : HUGE_VAL;
	b->most_ns = EXPECT_USUAL * fmax(b->most_ns, slowdown);
	if (shown_ns > 0)
		slowdown = fmin(slowdown, shown_ns);
	b->least_ns = slowdown >= options->min_common_frac * b->job->iteration_ns
			      ? fmax(least, EXCESS_SLOWDOWN * slowdown)
			      : HUGE_VAL;
}

static int by_past_init(struct by_past *b, const struct past *past, struct arena *arena)
{
	size_t cnt = past->now->worker_cnt;

	*b = (struct by_past){ .past = past, .job = past->now, .rare_ns = HUGE_VAL };
	b->grown = arena_calloc(arena, cnt + 1, sizeof(*b->grown));
	b->starved = arena_calloc(arena, cnt + 1, sizeof(bool));
	b->held = arena_calloc(arena, cnt + 1, sizeof(bool));
	if (b->grown == NULL || b->starved == NULL || b->held == NULL)
		return -ENOMEM;
	for (size_t w = 0; w < cnt; w++)
		b->most_ns = fmax(b->most_ns, past->workers[w].growth_ns);
	return 0;
}

/* How much longer a function takes on worker w than before. */
static double function_growth_ns(const struct past *past, const struct job_function *f, size_t w)
{
	uint32_t frame = past->frame_of[f->frame], then = FRAME_NONE;
	double before = 0;

	if (frame != FRAME_NONE)
		then = job_function_find(&past->then, frame, f->class);
	if (then != FRAME_NONE)
		before = job_time_ns(&past->then, &past->then.functions.data[then],
				     past->workers[w].then);
	return job_time_ns(past->now, f, w) - before;
}

static bool is_python(const char *name)
{
	return name != NULL && strstr(name, ".py(") != NULL;
}

/*
 * Whether a worker is delayed everywhere a little, as long as another thread of its process runs
 * Python. Where one function has most of the growth it waits there, for what that thread makes.
 */
static bool is_held(const struct by_past *b, size_t w)
{
	const struct past_worker *pw = &b->past->workers[w];
	double most = CAUSE_EXPLAINS * pw->stood_growth_ns;

	if (pw->stood_growth_ns < b->least_ns || pw->other_growth_ns < most ||
	    !is_python(b->job->workers[w].fp->host_stats.other_name))
		return false;
	vec_foreach(f, &b->job->functions) {
		if (f->frame != FRAME_NONE && !gil_is_wait(&b->job->frames.data[f->frame]) &&
		    function_growth_ns(b->past, f, w) >= most)
			return false;
	}
	return true;
}

/* By worker, where it grew by at least what the limits say. */
static void find_all_grown(struct by_past *b)
{
	for (size_t w = 0; w < b->job->worker_cnt; w++) {
		b->grown[w] = (struct grown){ FRAME_NONE, FRAME_NONE, 0 };
		if (!b->past->workers[w].known)
			continue;
		b->held[w] = is_held(b, w);
		if (b->held[w])
			continue;
		b->grown[w] = find_grown(b, w);
		b->starved[w] = b->past->workers[w].delay_growth_ns >= b->least_ns;
		if (b->grown[w].frame != FRAME_NONE)
			b->grown[w].ns = own_growth_ns(b, w, b->grown[w].frame);
	}
}

static bool overlaps(const struct job *job, uint32_t a, uint32_t b)
{
	return job_frame_below(job, a, b) || job_frame_below(job, b, a);
}

/* The function with most of the growth below the place, for the class and the words. */
static void set_function(const struct by_past *b, struct accusation *a)
{
	uint32_t w = a->workers[0];
	double most = 0;

	a->function = FRAME_NONE;
	a->class = CLASS_HOST;
	for (uint32_t i = 0; i < b->job->functions.cnt; i++) {
		const struct job_function *f = &b->job->functions.data[i];
		double ns;

		if (f->of[w] == NULL || f->frame == FRAME_NONE || f->class == CLASS_COMM ||
		    !job_frame_below(b->job, f->frame, a->frame))
			continue;
		ns = function_growth_ns(b->past, f, w);
		if (ns > most) {
			most = ns;
			a->function = i;
			a->class = f->class;
		}
	}
	a->main_ns = most;
}

/* Whether the worker is accused of a place below this one already: that one says more. */
static bool is_placed_below(const struct by_past *b, size_t w, uint32_t frame)
{
	return b->grown[w].accused != FRAME_NONE &&
	       job_frame_below(b->job, b->grown[w].accused, frame);
}

/* All workers that grew at the place of worker w at least half as much as w. */
static int accuse(struct by_past *b, size_t w, struct arena *arena, struct accusation *ret)
{
	size_t cnt = b->job->worker_cnt;
	uint32_t *workers = arena_calloc(arena, cnt + 1, sizeof(*workers));
	_cleanup_free_ double *grown = calloc(cnt + 1, sizeof(*grown));
	struct accusation a = { .witness = WITNESS_PAST,
				.workers = workers,
				.frame = b->grown[w].frame };

	if (workers == NULL || grown == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < cnt; i++) {
		double ns = b->past->workers[i].known ? own_growth_ns(b, i, a.frame) : 0;

		if (ns < PAST_ALIKE * b->grown[w].ns || is_placed_below(b, i, a.frame))
			continue;
		grown[a.worker_cnt] = ns;
		workers[a.worker_cnt++] = i;
		b->grown[i].accused = a.frame;
		b->grown[i].frame = i == w ? b->grown[i].frame : FRAME_NONE;
	}
	set_function(b, &a);
	a.delay_growth_ns = b->past->workers[w].delay_growth_ns;
	a.own_ns = a.gain_ns = stats_median(grown, a.worker_cnt);
	*ret = a;
	return 0;
}

static bool strikes_below(const struct job *job, const bool *strikes, uint32_t frame)
{
	for (uint32_t i = 0; i < job->functions.cnt; i++) {
		if (strikes[i] && job_frame_below(job, job->functions.data[i].frame, frame))
			return true;
	}
	return false;
}

/* Whether another witness accuses a worker there; a loss without a place gets the place. */
static bool is_known(const struct by_past *b, const struct accusation *a, accusations *list)
{
	vec_foreach(other, list) {
		if (!weighing_shares_workers(a, other) || other->usual)
			continue;
		if (other->strikes != NULL && other->place_cnt == 0 &&
		    strikes_below(b->job, other->strikes, a->frame))
			return true;
		if (other->frame != FRAME_NONE && overlaps(b->job, a->frame, other->frame))
			return true;
		if (other->frame == FRAME_NONE && other->witness == WITNESS_BLAME &&
		    other->worker_cnt == a->worker_cnt && a->own_ns >= PAST_MOST * other->own_ns) {
			other->frame = a->frame;
			other->function = a->function;
			other->class = a->class;
			other->main_ns = a->main_ns;
			other->spread = false;
			return true;
		}
	}
	return false;
}

/* By how much a worker grew everywhere, for the reason at hand. */
static double everywhere_ns(const struct past_worker *pw, bool held)
{
	return held ? pw->stood_growth_ns : pw->delay_growth_ns;
}

/* All workers that are slower everywhere: starved of CPUs, or held by another thread. */
static int accuse_everywhere(struct by_past *b, const bool *who, bool held, struct arena *arena,
			     accusations *out)
{
	size_t cnt = b->job->worker_cnt;
	uint32_t *workers = arena_calloc(arena, cnt + 1, sizeof(*workers));
	struct accusation a = { .witness = WITNESS_PAST,
				.workers = workers,
				.frame = FRAME_NONE,
				.function = FRAME_NONE,
				.class = CLASS_HOST,
				.held = held,
				.recalled = true };

	if (workers == NULL)
		return -ENOMEM;
	for (uint32_t w = 0; w < cnt; w++) {
		const struct past_worker *pw = &b->past->workers[w];

		if (!who[w])
			continue;
		workers[a.worker_cnt++] = w;
		a.delay_growth_ns = fmax(a.delay_growth_ns, pw->delay_growth_ns);
		a.own_ns = fmax(a.own_ns, everywhere_ns(pw, held));
		a.now_ns = fmax(a.now_ns, (double)b->job->workers[w].fp->window_ns /
						  b->job->workers[w].iterations);
		a.before_ns = a.now_ns - pw->growth_ns;
	}
	a.own_ns = a.gain_ns = fmin(a.own_ns, b->most_ns);
	vec_foreach(other, out) {
		if (!other->usual && weighing_shares_workers(&a, other))
			return 0;
	}
	return a.worker_cnt > 0 ? vec_push(out, a) : 0;
}

/* Whether a place is strictly below another. */
static bool is_inner(const struct by_past *b, uint32_t frame, uint32_t outer)
{
	return frame != outer && job_frame_below(b->job, frame, outer);
}

/* Of the workers whose places are below no other's: an outer place may be of several faults. */
static size_t most_grown_worker(const struct by_past *b)
{
	size_t found = SIZE_MAX;

	for (size_t w = 0; w < b->job->worker_cnt; w++) {
		const struct grown *g = &b->grown[w],
				   *best = &b->grown[found == SIZE_MAX ? w : found];

		if (!explains(b, g))
			continue;
		if (found == SIZE_MAX || is_inner(b, g->frame, best->frame) ||
		    (g->ns > best->ns && !is_inner(b, best->frame, g->frame)))
			found = w;
	}
	return found;
}

int accuse_by_past(const struct past *past, const struct accuse_options *options,
		   struct arena *arena, accusations *out)
{
	struct by_past b;
	double shown_ns;
	size_t w;
	int error;

	if (past->known_cnt == 0)
		return 0;
	error = by_past_init(&b, past, arena);
	if (error == 0)
		error = past_slowdown(past, &shown_ns);
	if (error < 0)
		return error;
	set_limits(&b, options, shown_ns);
	find_all_grown(&b);
	error = accuse_everywhere(&b, b.held, true, arena, out);
	while (error == 0 && (w = most_grown_worker(&b)) != SIZE_MAX) {
		struct accusation a;

		error = accuse(&b, w, arena, &a);
		b.grown[w].frame = FRAME_NONE;
		if (error == 0 && !is_known(&b, &a, out))
			error = vec_push(out, a);
	}
	return error == 0 ? accuse_everywhere(&b, b.starved, false, arena, out) : error;
}

int accuse_part_by_past(const struct past *past, const struct accuse_options *options,
			struct arena *arena, accusations *out)
{
	struct by_past b;
	struct accusation a;
	size_t w;
	int error;

	if (past->known_cnt == 0)
		return 0;
	error = by_past_init(&b, past, arena);
	if (error < 0)
		return error;
	b.most_ns = EXPECT_USUAL * fmax(b.most_ns, options->slowdown_ns);
	b.least_ns = options->min_common_frac * b.job->iteration_ns;
	find_all_grown(&b);
	w = most_grown_worker(&b);
	if (w == SIZE_MAX)
		return 0;
	error = accuse(&b, w, arena, &a);
	a.part_of_ns = options->slowdown_ns;
	if (error == 0 && a.gain_ns < PART_LEAST * a.part_of_ns)
		return 0;
	return error == 0 ? vec_push(out, a) : error;
}

static int recall(const struct past *past, struct accusation *a)
{
	_cleanup_free_ double *before = calloc(a->worker_cnt + 1, sizeof(*before));
	_cleanup_free_ double *now = calloc(a->worker_cnt + 1, sizeof(*now));
	size_t cnt = 0;

	if (before == NULL || now == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < a->worker_cnt; i++) {
		const struct past_worker *pw = &past->workers[a->workers[i]];

		if (!pw->known)
			continue;
		before[cnt] = pw->before_ns[a->frame];
		now[cnt++] = pw->now_ns[a->frame];
	}
	a->recalled = cnt > 0;
	a->before_ns = stats_median(before, cnt);
	a->now_ns = stats_median(now, cnt);
	return 0;
}

int by_past_recall(const struct past *past, accusations *list)
{
	int error = 0;

	vec_foreach(a, list) {
		/* What strikes in many places has no one time in the past. */
		if (error == 0 && a->frame != FRAME_NONE && a->class != CLASS_COMM &&
		    (a->strikes == NULL || a->place_cnt > 0))
			error = recall(past, a);
	}
	return error;
}
