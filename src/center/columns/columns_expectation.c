/* SPDX-License-Identifier: Apache-2.0 */
#include "center/columns/columns_accuse.h"
#include "localize/witness/excess.h"
#include "model/code16.h"

#include <errno.h>
#include <math.h>
#include <string.h>

static const struct job_frame *frame_at(const struct columns *columns, uint32_t frame)
{
	return &columns->frames.data[frame];
}

/* Columns do not show whether a collective transfers or waits. */
static bool rule_applies(const struct columns *columns, const struct columns_function *f)
{
	return f->frame != FRAME_NONE && f->class == CLASS_HOST &&
	       excess_rule_applies(columns->frames.data, f->frame);
}

/*
 * Whether a function's time is the place's: of data loading all that is below it on the
 * host, of another place its own and that of the built-ins it calls.
 */
static bool belongs_to(const struct columns *columns, const struct columns_function *f,
		       uint32_t place)
{
	const struct job_frame *frame = frame_at(columns, place);

	if (f->class != CLASS_HOST || f->frame == FRAME_NONE)
		return false;
	if (frame->kind == KIND_ANNOTATION)
		return frames_below(columns->frames.data, f->frame, place);
	return f->frame == place ||
	       (!excess_is_builtin(frame) && frame_at(columns, f->frame)->parent == place &&
		excess_is_builtin(frame_at(columns, f->frame)));
}

static double share_frac(const struct columns *columns, size_t row)
{
	const struct columns_worker *w =
		&columns->workers.data[columns->worker_at[columns->place[row]]];

	return (double)code16_ns(columns->codes[COLUMN_SHARE][row]) / (double)w->window_ns;
}

static double beta_at(const struct columns *columns, uint32_t frame, uint32_t place)
{
	double sum = 0;

	vec_foreach(f, &columns->functions) {
		size_t row;

		if (!belongs_to(columns, f, frame))
			continue;
		row = columns_row_find(columns, f, place);
		sum += row != SIZE_MAX ? share_frac(columns, row) : 0;
	}
	return sum;
}

/* The place of the worker with the largest share; of equal ones, of the lowest rank. */
static uint32_t worst_place(const struct columns *columns, const struct columns_function *f)
{
	size_t worst = f->first;

	for (size_t row = f->first + 1; row < f->first + f->cnt; row++) {
		uint16_t a = columns->codes[COLUMN_BETA][row];
		uint16_t b = columns->codes[COLUMN_BETA][worst];

		if (a > b || (a == b && columns->worker_at[columns->place[row]] <
						columns->worker_at[columns->place[worst]]))
			worst = row;
	}
	return columns->place[worst];
}

/* A built-in belongs to the Python function that calls it when that one does more such. */
static uint32_t place_of(const struct columns *columns, const struct columns_function *f)
{
	uint32_t loader = excess_loader(columns->frames.data, f->frame);
	uint32_t caller = excess_caller(columns->frames.data, f->frame), worst;

	if (loader != FRAME_NONE)
		return loader;
	if (caller == FRAME_NONE || f->cnt == 0)
		return f->frame;
	worst = worst_place(columns, f);
	return beta_at(columns, caller, worst) >
			       EXCESS_CALLER_GROWS * beta_at(columns, f->frame, worst)
		       ? caller
		       : f->frame;
}

static int measure(const struct columns *columns, const struct accuse_options *options,
		   uint32_t function, struct excess *ret)
{
	const struct columns_function *f = &columns->functions.data[function];
	const double *box = options->expect.of_class[f->class].beta;

	ret->function = function;
	ret->class = f->class;
	ret->frame = place_of(columns, f);
	ret->distance = 0;
	memset(ret->of, 0, columns->workers.cnt * sizeof(*ret->of));
	vec_foreach(part, &columns->functions) {
		if (!belongs_to(columns, part, ret->frame))
			continue;
		for (size_t row = part->first; row < part->first + part->cnt; row++)
			ret->of[columns->worker_at[columns->place[row]]] +=
				share_frac(columns, row);
	}
	for (size_t w = 0; w < columns->workers.cnt; w++)
		ret->distance = fmax(ret->distance, fmax(box[0] - ret->of[w], ret->of[w] - box[1]));
	return 0;
}

/* What was so before a slowdown is no finding. */
static int accuse_place(const struct columns *columns, const struct excess *e,
			const struct accuse_options *options, struct arena *arena, accusations *out)
{
	int error =
		excess_accuse(e, columns->workers.cnt, columns->iteration_ns, options, arena, out);

	if (error == 0 && out->data[out->cnt - 1].usual)
		out->cnt--;
	return error;
}

int columns_accuse_expectation(const struct columns *columns, const struct accuse_options *options,
			       struct arena *arena, accusations *out)
{
	double limit = fmax(options->min_gain_frac, options->min_common_frac);
	_cleanup_free_ double *of = calloc(columns->workers.cnt + 1, sizeof(*of));
	struct excess e = { .of = of };
	int error = of != NULL ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < columns->functions.cnt && error == 0; i++) {
		if (!rule_applies(columns, &columns->functions.data[i]))
			continue;
		error = measure(columns, options, i, &e);
		if (error == 0 && e.distance >= limit &&
		    !excess_is_accused(columns->frames.data, e.frame, out))
			error = accuse_place(columns, &e, options, arena, out);
	}
	return error;
}
