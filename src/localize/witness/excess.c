/* SPDX-License-Identifier: Apache-2.0 */
#include "localize/witness/excess.h"

#include "base/stats.h"
#include "localize/witness/gil.h"
#include "model/thresholds.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define LOADER "enumerate(DataLoader)"

static bool is_loader(const struct job_frame *frame)
{
	return strncmp(frame->name, LOADER, sizeof(LOADER) - 1) == 0;
}

static bool loads_data(const struct job_frame *frames, uint32_t frame)
{
	while (frame != FRAME_NONE && !is_loader(&frames[frame]))
		frame = frames[frame].parent;
	return frame != FRAME_NONE;
}

bool excess_rule_applies(const struct job_frame *frames, uint32_t frame)
{
	uint8_t kind = frames[frame].kind;

	return kind == KIND_PYTHON || kind == KIND_GC || loads_data(frames, frame);
}

bool excess_is_stretch(const struct job_frame *frame)
{
	return frame->kind == KIND_OTHER && strncmp(frame->name, "idle ", 5) == 0;
}

bool excess_is_builtin(const struct job_frame *frame)
{
	return frame->kind == KIND_PYTHON && frame->name[0] == '<' && !gil_is_wait(frame);
}

uint32_t excess_caller(const struct job_frame *frames, uint32_t frame)
{
	uint32_t parent = frames[frame].parent;

	if (!excess_is_builtin(&frames[frame]) || parent == FRAME_NONE)
		return FRAME_NONE;
	return frames[parent].kind == KIND_PYTHON ? parent : FRAME_NONE;
}

uint32_t excess_loader(const struct job_frame *frames, uint32_t frame)
{
	uint32_t found = FRAME_NONE;

	if (frames[frame].kind == KIND_PYTHON)
		return FRAME_NONE;
	for (; frame != FRAME_NONE; frame = frames[frame].parent) {
		if (frames[frame].kind == KIND_ANNOTATION && is_loader(&frames[frame]))
			found = frame;
	}
	return found;
}

bool excess_is_accused(const struct job_frame *frames, uint32_t frame, const accusations *list)
{
	vec_foreach(a, list) {
		if (a->frame != FRAME_NONE && (frames_below(frames, frame, a->frame) ||
					       frames_below(frames, a->frame, frame)))
			return true;
	}
	return false;
}

/*
 * Where the job's pace is known, a cause costs about what the job lost. A trigger averages
 * iterations from before the slowdown, so what the window itself lost counts as well.
 */
static bool explains(double gain_ns, double iteration_ns, const struct accuse_options *options)
{
	double slowdown = options->slowdown_ns;
	double most = fmax(slowdown, iteration_ns - options->baseline_ns);

	if (options->baseline_ns <= 0)
		most = slowdown;
	return !options->live || (slowdown > 0 && gain_ns >= EXCESS_SLOWDOWN * slowdown &&
				  gain_ns <= EXPECT_USUAL * most);
}

/* The slowdown of which a place is a small part; 0: there is none, or it is no small part. */
static double part_of(double gain_ns, const struct accuse_options *options)
{
	return options->slow && gain_ns < EXCESS_SLOWDOWN * options->slowdown_ns
		       ? options->slowdown_ns
		       : 0;
}

int excess_accuse(const struct excess *e, size_t worker_cnt, double iteration_ns,
		  const struct accuse_options *options, struct arena *arena, accusations *out)
{
	_cleanup_free_ double *above = calloc(worker_cnt + 1, sizeof(*above));
	uint32_t *workers = arena_calloc(arena, worker_cnt + 1, sizeof(*workers));
	double high = options->expect.of_class[e->class].beta[1];
	size_t above_cnt = 0;
	struct accusation a = {
		.witness = WITNESS_EXPECTATION,
		.workers = workers,
		.frame = e->frame,
		.function = e->function,
		.class = e->class,
		.expectation_distance = e->distance,
	};

	if (workers == NULL || above == NULL)
		return -ENOMEM;
	for (uint32_t w = 0; w < worker_cnt; w++) {
		bool is_above = e->of[w] > fmax(high, EXCESS_MIN_BETA);

		if (is_above)
			above[above_cnt++] = e->of[w];
		if (is_above || (e->alike != NULL && e->alike[w]))
			workers[a.worker_cnt++] = w;
	}
	a.own_ns = a.gain_ns = (stats_middle(above, above_cnt) - high) * iteration_ns;
	a.usual = !explains(a.gain_ns, iteration_ns, options);
	a.part_of_ns = a.usual ? part_of(a.gain_ns, options) : 0;
	return vec_push(out, a);
}
