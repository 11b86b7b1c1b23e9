/* SPDX-License-Identifier: Apache-2.0 */
#include "localize/growth.h"

#include "base/stats.h"
#include "localize/usercode.h"
#include "model/thresholds.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define GROWTH_MAX 8 /* places that a report lists */

/* Time per place, by worker and frame of now; a place is named as usercode_around() says. */
struct table {
	const struct past *past;
	size_t frame_cnt;
	double *now_ns, *before_ns; /* worker * frame_cnt + frame */
};

static void table_done(struct table *t)
{
	free(t->now_ns);
	free(t->before_ns);
}

static int table_init(struct table *t, const struct past *past)
{
	size_t cells = (past->now->worker_cnt + 1) * (past->now->frames.cnt + 1);

	*t = (struct table){ .past = past, .frame_cnt = past->now->frames.cnt };
	t->now_ns = calloc(cells, sizeof(double));
	t->before_ns = calloc(cells, sizeof(double));
	return t->now_ns == NULL || t->before_ns == NULL ? -ENOMEM : 0;
}

/* What is alone in the past did not grow. */
static void fill_worker(struct table *t, size_t w)
{
	const struct job *now = t->past->now, *then = &t->past->then;
	size_t then_w = t->past->workers[w].then;

	vec_foreach(f, &now->functions) {
		uint32_t place;

		if (f->frame == FRAME_NONE || f->of[w] == NULL)
			continue;
		place = usercode_around(now->frames.data, f->frame);
		t->now_ns[w * t->frame_cnt + place] += job_time_ns(now, f, w);
	}
	vec_foreach(f, &then->functions) {
		uint32_t place,
			to = f->frame != FRAME_NONE ? t->past->now_of[f->frame] : FRAME_NONE;

		if (to == FRAME_NONE || f->of[then_w] == NULL)
			continue;
		place = usercode_around(now->frames.data, to);
		t->before_ns[w * t->frame_cnt + place] += job_time_ns(then, f, then_w);
	}
}

static double grown_ns(const struct table *t, size_t w, uint32_t frame)
{
	size_t at = w * t->frame_cnt + frame;

	return t->now_ns[at] - t->before_ns[at];
}

/* The worker on which a place grew most. */
static size_t worst_of(const struct table *t, uint32_t frame)
{
	size_t worst = 0;

	for (size_t w = 1; w < t->past->now->worker_cnt; w++) {
		if (grown_ns(t, w, frame) > grown_ns(t, worst, frame))
			worst = w;
	}
	return worst;
}

static int describe(const struct table *t, uint32_t frame, struct report *out,
		    struct report_growth *ret)
{
	const struct job *job = t->past->now;
	size_t worst = worst_of(t, frame), at = worst * t->frame_cnt + frame;
	int *ranks = arena_calloc(&out->arena, job->worker_cnt + 1, sizeof(int));

	*ret = (struct report_growth){
		.function = arena_strdup(&out->arena, job->frames.data[frame].name),
		.ranks = ranks,
		.before_ms = t->before_ns[at] / 1e6,
		.now_ms = t->now_ns[at] / 1e6,
	};
	if (ranks == NULL || ret->function == NULL)
		return -ENOMEM;
	for (size_t w = 0; w < job->worker_cnt; w++) {
		if (grown_ns(t, w, frame) >= PAST_ALIKE * grown_ns(t, worst, frame))
			ranks[ret->rank_cnt++] = job->workers[w].fp->rank;
	}
	return 0;
}

static double growth_of(const struct report_growth *g)
{
	return g->now_ms - g->before_ms;
}

/* Keeps the list sorted, largest first; equal ones in order of frames. */
static void insert(struct report_growth *list, size_t *cnt, struct report_growth g)
{
	size_t at = *cnt;

	while (at > 0 && growth_of(&list[at - 1]) < growth_of(&g))
		at--;
	if (at == GROWTH_MAX)
		return;
	*cnt = MIN(*cnt + 1, (size_t)GROWTH_MAX);
	memmove(&list[at + 1], &list[at], (*cnt - at - 1) * sizeof(*list));
	list[at] = g;
}

static int list_places(const struct table *t, double min_ns, struct report *out)
{
	struct report_growth *list = arena_calloc(&out->arena, GROWTH_MAX + 1, sizeof(*list));

	if (list == NULL)
		return -ENOMEM;
	out->growth = list;
	for (uint32_t frame = 0; frame < t->frame_cnt; frame++) {
		struct report_growth g;

		if (grown_ns(t, worst_of(t, frame), frame) < min_ns)
			continue;
		if (describe(t, frame, out, &g) < 0)
			return -ENOMEM;
		insert(list, &out->growth_cnt, g);
	}
	return 0;
}

int growth_list(const struct past *past, double min_ns, struct report *out)
{
	struct table t;
	int error;

	if (past->known_cnt == 0)
		return 0;
	error = table_init(&t, past);
	for (size_t w = 0; w < past->now->worker_cnt && error == 0; w++) {
		if (past->workers[w].known)
			fill_worker(&t, w);
	}
	if (error == 0)
		error = list_places(&t, min_ns, out);
	table_done(&t);
	return error;
}
