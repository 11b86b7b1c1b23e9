/* SPDX-License-Identifier: Apache-2.0 */
#include "center/columns/columns_accuse.h"
#include "localize/witness/excess.h"
#include "model/code16.h"

#include <errno.h>
#include <math.h>
#include <string.h>

static const struct job_frame *frame_at(const struct crowd *crowd, uint32_t frame)
{
	return &crowd->frames.data[frame];
}

/* Of collectives nobody can say here whether they transfer or wait. */
static bool rule_applies(const struct crowd *crowd, const struct crowd_function *f)
{
	return f->frame != FRAME_NONE && f->class == CLASS_HOST &&
	       excess_rule_applies(crowd->frames.data, f->frame);
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
		return frames_below(crowd->frames.data, f->frame, place);
	return f->frame == place ||
	       (!excess_is_builtin(frame) && frame_at(crowd, f->frame)->parent == place &&
		excess_is_builtin(frame_at(crowd, f->frame)));
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
	uint32_t loader = excess_loader(crowd->frames.data, f->frame);
	uint32_t caller = excess_caller(crowd->frames.data, f->frame), worst;

	if (loader != FRAME_NONE)
		return loader;
	if (caller == FRAME_NONE || f->cnt == 0)
		return f->frame;
	worst = worst_place(crowd, f);
	return beta_at(crowd, caller, worst) > EXCESS_CALLER_GROWS * beta_at(crowd, f->frame, worst)
		       ? caller
		       : f->frame;
}

static int measure(const struct crowd *crowd, const struct accuse_options *options,
		   uint32_t function, struct excess *ret)
{
	const struct crowd_function *f = &crowd->functions.data[function];
	const double *box = options->expect.of_class[f->class].beta;

	ret->function = function;
	ret->class = f->class;
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
		if (error == 0 && e.distance >= limit &&
		    !excess_is_accused(crowd->frames.data, e.frame, out))
			error = excess_accuse(&e, crowd->workers.cnt, crowd->iteration_ns, options,
					      arena, out);
	}
	return error;
}
