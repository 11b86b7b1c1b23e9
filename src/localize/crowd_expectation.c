/* SPDX-License-Identifier: Apache-2.0 */
#include "base/stats.h"
#include "format/code16.h"
#include "localize/crowd_accuse.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define MIN_BETA 0.01	  /* eq. 11 */
#define CALLER_GROWS 1.25 /* a caller is named when it holds so much more than its built-in */
#define SLOWDOWN 0.3	  /* of a slowdown: what a common function must explain of it */
#define LOADER "enumerate(DataLoader)"

static const struct job_frame *frame_at(const struct crowd *crowd, uint32_t frame)
{
	return &crowd->frames.data[frame];
}

static bool is_loader(const struct crowd *crowd, uint32_t frame)
{
	return strncmp(frame_at(crowd, frame)->name, LOADER, sizeof(LOADER) - 1) == 0;
}

static bool is_below_loader(const struct crowd *crowd, uint32_t frame)
{
	while (frame != FRAME_NONE && !is_loader(crowd, frame))
		frame = frame_at(crowd, frame)->parent;
	return frame != FRAME_NONE;
}

/*
 * The paper's 1 % rule is for Python functions; data loading is one wherever it shows.
 * Of collectives nobody can say here whether they transfer or wait.
 */
static bool rule_applies(const struct crowd *crowd, const struct crowd_function *f)
{
	uint8_t kind;

	if (f->frame == FRAME_NONE || f->class != CLASS_HOST)
		return false;
	kind = frame_at(crowd, f->frame)->kind;
	return kind == KIND_PYTHON || kind == KIND_GC || is_below_loader(crowd, f->frame);
}

static bool is_builtin(const struct job_frame *frame)
{
	return frame->kind == KIND_PYTHON && frame->name[0] == '<';
}

static bool is_below(const struct crowd *crowd, uint32_t frame, uint32_t anc)
{
	while (frame != FRAME_NONE && frame != anc)
		frame = frame_at(crowd, frame)->parent;
	return frame == anc;
}

/*
 * Whether a function's time is the place's: of data loading all that is below it on the
 * host, of another place its own and that of the built-ins it calls.
 */
static bool belongs_to(const struct crowd *crowd, const struct crowd_function *f, uint32_t place)
{
	const struct job_frame *frame = frame_at(crowd, place);

	if (f->class != CLASS_HOST || f->frame == FRAME_NONE)
		return false;
	if (frame->kind == KIND_ANNOTATION)
		return is_below(crowd, f->frame, place);
	return f->frame == place ||
	       (!is_builtin(frame) && frame_at(crowd, f->frame)->parent == place &&
		is_builtin(frame_at(crowd, f->frame)));
}

static double share_frac(const struct crowd *crowd, size_t row)
{
	const struct crowd_worker *w = &crowd->workers.data[crowd->worker_at[crowd->place[row]]];

	return (double)code16_ns(crowd->columns[CROWD_SHARE][row]) / (double)w->window_ns;
}

static double beta_at(const struct crowd *crowd, uint32_t frame, uint32_t place)
{
	double sum = 0;

	vec_foreach(f, &crowd->functions) {
		size_t row;

		if (!belongs_to(crowd, f, frame))
			continue;
		row = crowd_row_find(crowd, f, place);
		sum += row != SIZE_MAX ? share_frac(crowd, row) : 0;
	}
	return sum;
}

/* The annotation of data loading above a frame, not the copy inside it. */
static uint32_t loader_frame(const struct crowd *crowd, uint32_t frame)
{
	uint32_t found = FRAME_NONE;

	for (uint32_t f = frame; f != FRAME_NONE; f = frame_at(crowd, f)->parent) {
		if (frame_at(crowd, f)->kind == KIND_ANNOTATION && is_loader(crowd, f))
			found = f;
	}
	return found;
}

/* The place of the worker with the largest share; of equal ones, of the lowest rank. */
static uint32_t worst_place(const struct crowd *crowd, const struct crowd_function *f)
{
	size_t worst = f->first;

	for (size_t row = f->first + 1; row < f->first + f->cnt; row++) {
		uint16_t a = crowd->columns[CROWD_BETA][row];
		uint16_t b = crowd->columns[CROWD_BETA][worst];

		if (a > b || (a == b && crowd->worker_at[crowd->place[row]] <
						crowd->worker_at[crowd->place[worst]]))
			worst = row;
	}
	return crowd->place[worst];
}

/* A built-in belongs to the Python function that calls it when that one does more such. */
static uint32_t place_of(const struct crowd *crowd, const struct crowd_function *f)
{
	const struct job_frame *frame = frame_at(crowd, f->frame);
	uint32_t loader = loader_frame(crowd, f->frame), worst;

	if (loader != FRAME_NONE && frame->kind != KIND_PYTHON)
		return loader;
	if (!is_builtin(frame) || frame->parent == FRAME_NONE ||
	    frame_at(crowd, frame->parent)->kind != KIND_PYTHON || f->cnt == 0)
		return f->frame;
	worst = worst_place(crowd, f);
	return beta_at(crowd, frame->parent, worst) > CALLER_GROWS * beta_at(crowd, f->frame, worst)
		       ? frame->parent
		       : f->frame;
}

struct excess {
	uint32_t function, frame; /* representative; the place named */
	double *of;		  /* by worker: beta of the place */
	double distance;	  /* largest D */
};

static int measure(const struct crowd *crowd, const struct accuse_options *options,
		   uint32_t function, struct excess *ret)
{
	const struct crowd_function *f = &crowd->functions.data[function];
	const double *box = options->expect.of_class[f->class].beta;

	ret->function = function;
	ret->frame = place_of(crowd, f);
	ret->distance = 0;
	memset(ret->of, 0, crowd->workers.cnt * sizeof(*ret->of));
	vec_foreach(part, &crowd->functions) {
		if (!belongs_to(crowd, part, ret->frame))
			continue;
		for (size_t row = part->first; row < part->first + part->cnt; row++)
			ret->of[crowd->worker_at[crowd->place[row]]] += share_frac(crowd, row);
	}
	for (size_t w = 0; w < crowd->workers.cnt; w++)
		ret->distance = fmax(ret->distance, fmax(box[0] - ret->of[w], ret->of[w] - box[1]));
	return 0;
}

static bool overlaps(const struct crowd *crowd, const accusations *out, uint32_t frame)
{
	vec_foreach(a, out) {
		if (a->frame != FRAME_NONE &&
		    (is_below(crowd, frame, a->frame) || is_below(crowd, a->frame, frame)))
			return true;
	}
	return false;
}

static int accuse_excess(const struct crowd *crowd, const struct accuse_options *options,
			 const struct excess *e, struct arena *arena, accusations *out)
{
	const struct crowd_function *f = &crowd->functions.data[e->function];
	_cleanup_free_ double *scratch = calloc(crowd->workers.cnt + 1, sizeof(*scratch));
	uint32_t *workers = arena_calloc(arena, crowd->workers.cnt + 1, sizeof(*workers));
	double high = options->expect.of_class[f->class].beta[1];
	struct accusation a = {
		.witness = WITNESS_EXPECTATION,
		.workers = workers,
		.frame = e->frame,
		.function = e->function,
		.class = f->class,
		.expectation_distance = e->distance,
	};

	if (workers == NULL || scratch == NULL)
		return -ENOMEM;
	for (uint32_t w = 0; w < crowd->workers.cnt; w++) {
		if (e->of[w] > fmax(high, MIN_BETA)) {
			scratch[a.worker_cnt] = e->of[w];
			workers[a.worker_cnt++] = w;
		}
	}
	a.own_ns = a.gain_ns = (stats_middle(scratch, a.worker_cnt) - high) * crowd->iteration_ns;
	if (a.gain_ns < SLOWDOWN * options->slowdown_ns)
		return 0;
	return vec_push(out, a);
}

int crowd_accuse_expectation(const struct crowd *crowd, const struct accuse_options *options,
			     struct arena *arena, accusations *out)
{
	double limit = fmax(options->min_gain_frac, options->min_common_frac);
	_cleanup_free_ double *of = calloc(crowd->workers.cnt + 1, sizeof(*of));
	struct excess e = { .of = of };
	int error = of != NULL ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < crowd->functions.cnt && error == 0; i++) {
		if (!rule_applies(crowd, &crowd->functions.data[i]))
			continue;
		error = measure(crowd, options, i, &e);
		if (error == 0 && e.distance >= limit && !overlaps(crowd, out, e.frame))
			error = accuse_excess(crowd, options, &e, arena, out);
	}
	return error;
}
