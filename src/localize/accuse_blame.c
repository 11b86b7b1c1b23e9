/* SPDX-License-Identifier: Apache-2.0 */
#include "base/stats.h"
#include "localize/accuse.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define ROLLUP_FRAC   0.6 /* a place must hold this share of a worker's lost time */
#define STANDS_OUT    3.0 /* times the typical worker's lost time */
#define ROTATE_FRAC   0.03 /* of an iteration: rotating stragglers need more than jitter */
#define SINGLE_FRAC   0.6  /* of all lost time: one iteration is one throw of the dice */
#define REGION_FACTOR 3.0  /* a place that normally takes this many times the loss is a region */

/* What the accused workers lost, by function, and its sums over subtrees. */
struct ledger {
	double *of_function; /* by job function */
	double *below;       /* by frame: its subtree */
	double total;        /* with what no function explains */
	double listed;       /* of it, in functions */
};

static int ledger_init(struct ledger *l, const struct job *job, struct arena *arena)
{
	l->of_function = arena_calloc(arena, job->functions.cnt + 1, sizeof(double));
	l->below = arena_calloc(arena, job->frames.cnt + 1, sizeof(double));
	l->total = l->listed = 0;
	return l->of_function != NULL && l->below != NULL ? 0 : -ENOMEM;
}

static void ledger_add(struct ledger *l, const struct blame_why *why)
{
	l->total += why->ns;
	if (why->function == FRAME_NONE)
		return;
	l->listed += why->ns;
	l->of_function[why->function] += why->ns;
}

static void ledger_sum(struct ledger *l, const struct job *job)
{
	for (size_t f = 0; f < job->functions.cnt; f++) {
		if (job->functions.data[f].frame != FRAME_NONE)
			l->below[job->functions.data[f].frame] += l->of_function[f];
	}
	for (size_t i = job->frames.cnt; i > 0; i--) {
		uint32_t parent = job->frames.data[i - 1].parent;

		if (parent != FRAME_NONE)
			l->below[parent] += l->below[i - 1];
	}
}

/*
 * The deepest place that still holds most of the lost time: one slow function
 * shows in many leaves below it, and in every caller above it.
 */
static uint32_t ledger_place(const struct ledger *l, const struct job *job)
{
	uint32_t place = FRAME_NONE;

	for (;;) {
		uint32_t best = FRAME_NONE;

		for (uint32_t i = 0; i < job->frames.cnt; i++) {
			if (job->frames.data[i].parent == place && l->below[i] > 0 &&
			    (best == FRAME_NONE || l->below[i] > l->below[best]))
				best = i;
		}
		if (best == FRAME_NONE || l->below[best] < ROLLUP_FRAC * l->listed)
			return place;
		place = best;
	}
}

static double ledger_at(const struct ledger *l, uint32_t place)
{
	return place == FRAME_NONE ? l->listed : l->below[place];
}

/* The function and class that hold most of a place's lost time. */
static void ledger_main(const struct ledger *l, const struct job *job, struct accusation *a)
{
	double by_class[CLASS_CNT] = { 0 };

	a->function = FRAME_NONE;
	for (uint32_t f = 0; f < job->functions.cnt; f++) {
		const struct job_function *fn = &job->functions.data[f];

		if (l->of_function[f] <= 0 ||
		    (a->frame != FRAME_NONE && !job_frame_below(job, fn->frame, a->frame)))
			continue;
		by_class[fn->class] += l->of_function[f];
		if (a->function == FRAME_NONE || l->of_function[f] > l->of_function[a->function])
			a->function = f;
	}
	for (uint8_t c = 0; c < CLASS_CNT; c++) {
		if (by_class[c] > by_class[a->class])
			a->class = c;
	}
}

static double median_subtree(const struct job *job, uint32_t frame, const bool *skip,
			     double *scratch)
{
	size_t cnt = 0;

	for (size_t w = 0; w < job->worker_cnt; w++) {
		if (!skip[w])
			scratch[cnt++] = job_subtree_ns(job, frame, w, ~0u);
	}
	return stats_median(scratch, cnt);
}

/* An accusation of workers (marked in who) from their summed ledger. */
static int accuse(const struct job *job, const struct ledger *l, const bool *who, bool rotates,
		  struct arena *arena, accusations *out)
{
	struct accusation a = { .witness = WITNESS_BLAME, .rotates = rotates };
	uint32_t *workers = arena_calloc(arena, job->worker_cnt + 1, sizeof(*workers));
	_cleanup_free_ double *scratch = calloc(job->worker_cnt + 1, sizeof(*scratch));
	double iterations = 1, normal;

	if (workers == NULL || scratch == NULL)
		return -ENOMEM;
	for (uint32_t w = 0; w < job->worker_cnt; w++) {
		if (who[w]) {
			workers[a.worker_cnt++] = w;
			iterations = fmax(iterations, job->workers[w].iterations);
		}
	}
	a.workers = workers;
	a.frame = ledger_place(l, job);
	ledger_main(l, job, &a);
	a.own_ns = ledger_at(l, a.frame) / iterations;
	a.gain_ns = l->total / iterations;
	if (a.frame == FRAME_NONE) {
		a.spread = true;
	} else {
		normal = rotates ? 0 : median_subtree(job, a.frame, who, scratch);
		a.spread = normal > REGION_FACTOR * a.own_ns / (double)a.worker_cnt;
	}
	return vec_push(out, a);
}

/* Time a worker lost for the others by what it did itself. */
static double own_loss(const struct blame *blame, uint32_t w)
{
	return fmax(0, blame->workers[w].lost_ns - blame->workers[w].explained_by_comm_ns);
}

static double median_of_others(const struct job *job, const struct blame *blame, uint32_t w,
			       double *scratch)
{
	size_t cnt = 0;

	for (uint32_t i = 0; i < job->worker_cnt; i++) {
		if (i != w && blame->workers[i].matched)
			scratch[cnt++] = own_loss(blame, i);
	}
	return stats_median(scratch, cnt);
}

static int worker_ledger(const struct job *job, const struct blame *blame, uint32_t w,
			 struct arena *arena, struct ledger *ret)
{
	int error = ledger_init(ret, job, arena);

	for (size_t i = 0; i < blame->why.cnt && error == 0; i++) {
		if (blame->why.data[i].worker == w)
			ledger_add(ret, &blame->why.data[i]);
	}
	if (error == 0)
		ledger_sum(ret, job);
	return error;
}

/*
 * Pauses that may hit any worker at any time: a collection, or one place on the
 * host that passes at once otherwise. Compute that jitters is not one.
 */
static bool can_rotate(const struct job *job, const struct ledger *l, uint32_t place)
{
	double single = 0;
	uint8_t class = CLASS_COMPUTE;

	if (place == FRAME_NONE)
		return false;
	if (job->frames.data[place].kind == KIND_GC)
		return true;
	for (uint32_t f = 0; f < job->functions.cnt; f++) {
		if (l->of_function[f] > single && job_frame_below(job, job->functions.data[f].frame, place)) {
			single = l->of_function[f];
			class = job->functions.data[f].class;
		}
	}
	return (class == CLASS_HOST || class == CLASS_IDLE) && single >= ROLLUP_FRAC * l->listed;
}

struct bench {
	const struct job *job;
	const struct blame *blame;
	const struct accuse_options *options;
	struct arena *arena;
	struct ledger *of; /* by worker */
	uint32_t *place;   /* by worker */
	bool *stands_out, *used;
	double *scratch;
};

static int bench_init(struct bench *b)
{
	size_t cnt = b->job->worker_cnt;
	double limit, total = 0;

	b->of = arena_calloc(b->arena, cnt + 1, sizeof(*b->of));
	b->place = arena_calloc(b->arena, cnt + 1, sizeof(*b->place));
	b->stands_out = arena_calloc(b->arena, cnt + 1, sizeof(bool));
	b->used = arena_calloc(b->arena, cnt + 1, sizeof(bool));
	b->scratch = arena_calloc(b->arena, cnt + 1, sizeof(double));
	if (b->of == NULL || b->place == NULL || b->stands_out == NULL || b->used == NULL ||
	    b->scratch == NULL)
		return -ENOMEM;
	for (uint32_t w = 0; w < cnt; w++)
		total += own_loss(b->blame, w);
	for (uint32_t w = 0; w < cnt; w++) {
		double loss = own_loss(b->blame, w), typical;

		if (worker_ledger(b->job, b->blame, w, b->arena, &b->of[w]) < 0)
			return -ENOMEM;
		b->place[w] = ledger_place(&b->of[w], b->job);
		typical = median_of_others(b->job, b->blame, w, b->scratch);
		limit = b->options->min_gain_frac * b->job->iteration_ns * b->job->workers[w].iterations;
		b->stands_out[w] = loss - typical >= limit && loss >= STANDS_OUT * typical;
		if (b->job->workers[w].iterations < 2 && loss < SINGLE_FRAC * total)
			b->stands_out[w] = false;
	}
	return 0;
}

/* Joins worker w and all others of the same place into one accusation. */
static int accuse_with_company(struct bench *b, uint32_t w, bool rotates, accusations *out)
{
	bool *who = arena_calloc(b->arena, b->job->worker_cnt + 1, sizeof(bool));
	struct ledger sum;
	int error = ledger_init(&sum, b->job, b->arena);

	if (who == NULL || error < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < b->job->worker_cnt; i++) {
		bool same = i == w || (!b->used[i] && b->place[i] == b->place[w] &&
				       b->stands_out[i] == b->stands_out[w] && b->of[i].total > 0);

		if (!same)
			continue;
		who[i] = b->used[i] = true;
		for (size_t k = 0; k < b->blame->why.cnt; k++) {
			if (b->blame->why.data[k].worker == i)
				ledger_add(&sum, &b->blame->why.data[k]);
		}
	}
	ledger_sum(&sum, b->job);
	return accuse(b->job, &sum, who, rotates, b->arena, out);
}

/* Lost time per iteration of all unaccused workers whose place is that of w. */
static double turn_loss(const struct bench *b, uint32_t w, size_t *ret_cnt)
{
	double sum = 0;

	*ret_cnt = 0;
	for (uint32_t i = 0; i < b->job->worker_cnt; i++) {
		if (b->used[i] || b->stands_out[i] || b->place[i] != b->place[w] || b->of[i].total <= 0)
			continue;
		sum += ledger_at(&b->of[i], b->place[i]) / b->job->workers[i].iterations;
		(*ret_cnt)++;
	}
	return sum;
}

int accuse_by_blame(const struct job *job, const struct blame *blame,
		    const struct accuse_options *options, struct arena *arena, accusations *out)
{
	struct bench b = { .job = job, .blame = blame, .options = options, .arena = arena };
	int error = bench_init(&b);

	for (uint32_t w = 0; w < job->worker_cnt && error == 0; w++) {
		if (b.stands_out[w] && !b.used[w])
			error = accuse_with_company(&b, w, false, out);
	}
	for (uint32_t w = 0; w < job->worker_cnt && error == 0; w++) {
		double need = fmax(ROTATE_FRAC, options->min_gain_frac) * job->iteration_ns;
		size_t cnt;

		if (b.used[w] || b.stands_out[w] || job->workers[w].iterations < 2 ||
		    !can_rotate(job, &b.of[w], b.place[w]))
			continue;
		if (turn_loss(&b, w, &cnt) >= need && cnt >= 2)
			error = accuse_with_company(&b, w, true, out);
	}
	return error;
}
