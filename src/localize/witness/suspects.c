/* SPDX-License-Identifier: Apache-2.0 */
#include "localize/witness/suspects.h"

#include "model/thresholds.h"

#include <errno.h>
#include <math.h>

int suspects_init(struct suspects *s, const struct job *job, const struct accuse_options *options,
		  struct arena *arena)
{
	size_t cnt = job->worker_cnt + 1;

	*s = (struct suspects){ .job = job, .options = options, .arena = arena };
	s->of = arena_calloc(&s->own, cnt, sizeof(*s->of));
	s->places = arena_calloc(&s->own, cnt * SUSPECTS_PLACES, sizeof(*s->places));
	s->place_cnt = arena_calloc(&s->own, cnt, sizeof(*s->place_cnt));
	s->stands_out = arena_calloc(&s->own, cnt, sizeof(bool));
	s->used = arena_calloc(&s->own, cnt, sizeof(bool));
	s->usual = arena_calloc(&s->own, job->frames.cnt + 1, sizeof(*s->usual));
	s->scratch = arena_calloc(&s->own, cnt, sizeof(double));
	if (s->of == NULL || s->places == NULL || s->place_cnt == NULL || s->stands_out == NULL ||
	    s->used == NULL || s->usual == NULL || s->scratch == NULL)
		return -ENOMEM;
	for (size_t w = 0; w < job->worker_cnt; w++) {
		if (ledger_init(&s->of[w], job, &s->own) < 0)
			return -ENOMEM;
	}
	return 0;
}

void suspects_done(struct suspects *s)
{
	arena_done(&s->own);
}

/* What the typical worker but w spends in the subtree of a frame, per iteration. */
static double usual_subtree_ns(const struct suspects *s, uint32_t frame, uint32_t w)
{
	struct stats_others *usual = &s->usual[frame];

	if (usual->cnt == 0) {
		for (size_t i = 0; i < s->job->worker_cnt; i++)
			s->scratch[i] = job_subtree_ns(s->job, frame, i, ~0u);
		*usual = stats_others_of(s->scratch, s->job->worker_cnt);
	}
	return stats_others_median(usual, job_subtree_ns(s->job, frame, w, ~0u));
}

/* An accusation of workers (marked in who) from their summed ledger, for one place. */
static int accuse(const struct job *job, const struct ledger *l, const bool *who, uint32_t place,
		  bool rotates, struct arena *arena, accusations *out)
{
	struct accusation a = { .witness = WITNESS_BLAME,
				.rotates = rotates,
				.frame = place,
				.spread = place == FRAME_NONE };
	uint32_t *workers = arena_calloc(arena, job->worker_cnt + 1, sizeof(*workers));
	double iterations = 1;

	if (workers == NULL)
		return -ENOMEM;
	for (uint32_t w = 0; w < job->worker_cnt; w++) {
		if (who[w]) {
			workers[a.worker_cnt++] = w;
			iterations = fmax(iterations, job->workers[w].iterations);
		}
	}
	a.workers = workers;
	a.function = ledger_main(l, job, place, &a.class);
	a.own_ns = (l->listed > 0 ? ledger_at(l, place) : l->total) / iterations;
	if (a.function != FRAME_NONE)
		a.main_ns = l->of_function[a.function] / iterations;
	/* Lost time that no function explains belongs to the places in proportion. */
	a.gain_ns = l->listed > 0 ? a.own_ns * l->total / l->listed : a.own_ns;
	return vec_push(out, a);
}

uint32_t suspects_main_place(const struct suspects *s, uint32_t w)
{
	return s->place_cnt[w] > 0 ? s->places[w * SUSPECTS_PLACES] : FRAME_NONE;
}

bool suspects_has_place(const struct suspects *s, uint32_t w, uint32_t place)
{
	for (size_t i = 0; i < s->place_cnt[w]; i++) {
		if (s->places[w * SUSPECTS_PLACES + i] == place)
			return true;
	}
	return place == FRAME_NONE && s->place_cnt[w] == 0;
}

/* A place that its peers pass in much more time than was lost there is only slower. */
static bool is_region(const struct suspects *s, uint32_t w, uint32_t place)
{
	double loss = ledger_at(&s->of[w], place) / s->job->workers[w].iterations;

	return usual_subtree_ns(s, place, w) > PLACE_REGION_FACTOR * loss;
}

/* Whether the lost time below a frame lies mostly in one child: then that child is the place. */
static bool has_main_child(const struct suspects *s, uint32_t w, uint32_t frame)
{
	const double *below = s->of[w].below;

	for (uint32_t i = frame + 1; i < s->job->frames.cnt; i++) {
		if (s->job->frames.data[i].parent == frame &&
		    below[i] >= LEDGER_MOST * below[frame])
			return true;
	}
	return false;
}

static bool is_device_frame(const struct job *job, uint32_t frame)
{
	return job->frames.data[frame].kind == KIND_KERNEL ||
	       job->frames.data[frame].kind == KIND_GPU_MEMOP;
}

/*
 * The outermost place that the worker's peers never enter, and in which it spends most of what it
 * lost: what lies between two collectives is compared as a whole, so such work is not always where
 * the loss shows. FRAME_NONE: none.
 */
static uint32_t find_extra_place(const struct suspects *s, uint32_t w)
{
	const struct ledger *l = &s->of[w];
	double loss = l->total / s->job->workers[w].iterations;

	for (uint32_t i = 0; i < s->job->frames.cnt; i++) {
		double own = job_subtree_ns(s->job, i, w, ~0u);

		if (l->below[i] >= PLACE_FRAC * l->listed && own > 0 && own >= LEDGER_MOST * loss &&
		    !is_device_frame(s->job, i) &&
		    usual_subtree_ns(s, i, w) <= PLACE_EXTRA_FRAC * own)
			return i;
	}
	return FRAME_NONE;
}

/* Several places that each lost a part: a fault can sit in more than one line. */
static void find_places(struct suspects *s, uint32_t w)
{
	const struct ledger *l = &s->of[w];
	uint32_t *places = &s->places[w * SUSPECTS_PLACES];
	uint32_t single = ledger_place(l, s->job);

	s->place_cnt[w] = 0;
	if (single != FRAME_NONE && !is_region(s, w, single)) {
		places[s->place_cnt[w]++] = single;
		return;
	}
	single = find_extra_place(s, w);
	if (single != FRAME_NONE) {
		double own = job_subtree_ns(s->job, single, w, ~0u) * s->job->workers[w].iterations;

		ledger_move(&s->of[w], s->job, single, fmin(own, l->listed));
		places[s->place_cnt[w]++] = single;
		return;
	}
	for (uint32_t i = 0; i < s->job->frames.cnt; i++) {
		size_t at = s->place_cnt[w];

		if (l->below[i] < PLACE_FRAC * l->listed || l->below[i] <= 0 ||
		    is_device_frame(s->job, i) || has_main_child(s, w, i) || is_region(s, w, i))
			continue;
		/* Largest first; callers of a place that is listed add nothing. */
		if (at < SUSPECTS_PLACES)
			s->place_cnt[w]++;
		else if (l->below[places[--at]] >= l->below[i])
			continue;
		for (; at > 0 && l->below[places[at - 1]] < l->below[i]; at--)
			places[at] = places[at - 1];
		places[at] = i;
	}
}

bool suspects_spread_matters(const struct suspects *s, uint32_t w, double loss_ns)
{
	const struct ledger *l = &s->of[w];
	double by_class[CLASS_CNT] = { 0 }, need = SPREAD_HOST_FRAC;

	for (uint32_t f = 0; f < s->job->functions.cnt; f++)
		by_class[s->job->functions.data[f].class] += l->of_function[f];
	if (s->job->workers[w].fp->has_device && by_class[CLASS_COMPUTE] > l->listed / 2)
		need = SPREAD_DEVICE_FRAC;
	return loss_ns >= need * s->job->iteration_ns * s->job->workers[w].iterations;
}

/*
 * Whether most of the lost time has no reason, not even that the worker is at the place for so much longer
 * than its peers: what lies between two collectives of a group also has those of others.
 */
static bool is_unknown(const struct suspects *s, uint32_t w)
{
	const struct ledger *l = &s->of[w];
	double longer = 0;

	for (size_t i = 0; i < s->place_cnt[w]; i++) {
		uint32_t place = s->places[w * SUSPECTS_PLACES + i];

		longer += job_subtree_ns(s->job, place, w, ~0u) - usual_subtree_ns(s, place, w);
	}
	return l->listed < PLACE_LISTED * l->total &&
	       longer * s->job->workers[w].iterations < CAUSE_EXPLAINS * l->total;
}

/* Places are believed when together they explain the loss, or when one is long by itself. */
static void keep_places(struct suspects *s, uint32_t w)
{
	const struct ledger *l = &s->of[w];
	double sum = 0, longest = 0;

	for (size_t i = 0; i < s->place_cnt[w]; i++) {
		sum += l->below[s->places[w * SUSPECTS_PLACES + i]];
		longest = fmax(longest, l->below[s->places[w * SUSPECTS_PLACES + i]]);
	}
	if ((sum < PLACE_EXPLAIN_FRAC * l->listed &&
	     longest < SPREAD_HOST_FRAC * s->job->iteration_ns * s->job->workers[w].iterations) ||
	    is_unknown(s, w))
		s->place_cnt[w] = 0;
}

void suspects_find_places(struct suspects *s)
{
	for (uint32_t w = 0; w < s->job->worker_cnt; w++) {
		ledger_sum(&s->of[w], s->job);
		find_places(s, w);
		keep_places(s, w);
	}
}

int suspects_accuse_at(struct suspects *s, uint32_t w, uint32_t place, bool rotates,
		       accusations *out)
{
	bool *who = arena_calloc(&s->own, s->job->worker_cnt + 1, sizeof(bool));
	struct ledger sum;
	int error = ledger_init(&sum, s->job, &s->own);

	if (who == NULL || error < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->job->worker_cnt; i++) {
		if (i != w && (s->used[i] || s->stands_out[i] != s->stands_out[w] ||
			       s->of[i].total <= 0 || !suspects_has_place(s, i, place)))
			continue;
		who[i] = true;
		ledger_merge(&sum, &s->of[i], s->job);
	}
	ledger_sum(&sum, s->job);
	return accuse(s->job, &sum, who, place, rotates, s->arena, out);
}

/* Whether an earlier worker of the same kind has the place: then it has been accused with it. */
static bool accused_before(const struct suspects *s, uint32_t w, uint32_t place)
{
	for (uint32_t i = 0; i < w; i++) {
		if (s->stands_out[i] && suspects_has_place(s, i, place))
			return true;
	}
	return false;
}

static int accuse_worker(struct suspects *s, uint32_t w, accusations *out)
{
	int error = 0;

	if (s->place_cnt[w] == 0 && !accused_before(s, w, FRAME_NONE))
		return suspects_accuse_at(s, w, FRAME_NONE, false, out);
	for (size_t i = 0; i < s->place_cnt[w] && error == 0; i++) {
		uint32_t place = s->places[w * SUSPECTS_PLACES + i];

		if (!accused_before(s, w, place))
			error = suspects_accuse_at(s, w, place, false, out);
	}
	return error;
}

int suspects_accuse(struct suspects *s, accusations *out)
{
	int error = 0;

	for (uint32_t w = 0; w < s->job->worker_cnt && error == 0; w++) {
		if (s->stands_out[w])
			error = accuse_worker(s, w, out);
	}
	return error;
}
