/* SPDX-License-Identifier: Apache-2.0 */
#include "base/stats.h"
#include "localize/accuse.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define ROLLUP_FRAC 0.6	   /* a place must hold this share of a worker's lost time */
#define STANDS_OUT 3.0	   /* times the typical worker's lost time */
#define ROTATE_FRAC 0.03   /* of an iteration: rotating stragglers need more than jitter */
#define SINGLE_FRAC 0.6	   /* of all lost time: one iteration is one throw of the dice */
#define REGION_FACTOR 3.0  /* a place that normally takes this many times the loss is a region */
#define PLACE_FRAC 0.15	   /* of the lost time: one of several places */
#define EXPLAIN_FRAC 0.4   /* of the lost time: what the places must hold together */
#define SHARE_FRAC 0.1	   /* of everybody's lost time: beside a culprit, less is noise */
#define SPREAD_DEVICE 0.03 /* of an iteration: a device that is slower in everything */
#define SPREAD_HOST 0.1	   /* the same for a host: CPUs differ by some percent */
#define SPREAD_SURE 4.0	   /* standard errors by which its loss must exceed all others' */
#define PLACES_MAX 4

/* What the accused workers lost, by function, and its sums over subtrees. */
struct ledger {
	double *of_function; /* by job function */
	double *below;	     /* by frame: its subtree */
	double total;	     /* with what no function explains */
	double listed;	     /* of it, in functions */
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
	for (int c = 0; c < CLASS_CNT; c++) {
		if (by_class[c] > by_class[a->class])
			a->class = (uint8_t)c;
	}
	/* Of something spread, the function shown is the largest of the main class. */
	for (uint32_t f = 0; f < job->functions.cnt && a->frame == FRAME_NONE; f++) {
		bool fits = job->functions.data[f].class == a->class && l->of_function[f] > 0;

		if (fits && (a->function == FRAME_NONE ||
			     job->functions.data[a->function].class != a->class ||
			     l->of_function[f] > l->of_function[a->function]))
			a->function = f;
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
	ledger_main(l, job, &a);
	a.own_ns = (l->listed > 0 ? ledger_at(l, place) : l->total) / iterations;
	if (a.function != FRAME_NONE)
		a.main_ns = l->of_function[a.function] / iterations;
	/* Lost time that no function explains belongs to the places in proportion. */
	a.gain_ns = l->listed > 0 ? a.own_ns * l->total / l->listed : a.own_ns;
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
		if (l->of_function[f] > single &&
		    job_frame_below(job, job->functions.data[f].frame, place)) {
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
	uint32_t *places;  /* by worker, PLACES_MAX each; the first is the main one */
	size_t *place_cnt; /* 0: spread */
	bool *stands_out, *used;
	double *scratch;
};

static uint32_t main_place(const struct bench *b, uint32_t w)
{
	return b->place_cnt[w] > 0 ? b->places[w * PLACES_MAX] : FRAME_NONE;
}

static bool has_place(const struct bench *b, uint32_t w, uint32_t place)
{
	for (size_t i = 0; i < b->place_cnt[w]; i++) {
		if (b->places[w * PLACES_MAX + i] == place)
			return true;
	}
	return place == FRAME_NONE && b->place_cnt[w] == 0;
}

/* A place that its peers pass in much more time than was lost there is only slower. */
static bool is_region(const struct bench *b, uint32_t w, uint32_t place)
{
	_cleanup_free_ bool *skip = calloc(b->job->worker_cnt + 1, sizeof(bool));
	double loss = ledger_at(&b->of[w], place) / b->job->workers[w].iterations;

	if (skip == NULL)
		return true;
	for (uint32_t i = 0; i < b->job->worker_cnt; i++)
		skip[i] = i == w;
	return median_subtree(b->job, place, skip, b->scratch) > REGION_FACTOR * loss;
}

/* Whether the lost time below a frame lies mostly in one child: then that child is the place. */
static bool has_main_child(const struct bench *b, uint32_t w, uint32_t frame)
{
	const double *below = b->of[w].below;

	for (uint32_t i = frame + 1; i < b->job->frames.cnt; i++) {
		if (b->job->frames.data[i].parent == frame &&
		    below[i] >= ROLLUP_FRAC * below[frame])
			return true;
	}
	return false;
}

static bool is_device_frame(const struct job *job, uint32_t frame)
{
	return job->frames.data[frame].kind == KIND_KERNEL ||
	       job->frames.data[frame].kind == KIND_GPU_MEMOP;
}

/* Several places that each lost a part: a fault can sit in more than one line. */
static void find_places(struct bench *b, uint32_t w)
{
	const struct ledger *l = &b->of[w];
	uint32_t *places = &b->places[w * PLACES_MAX];
	uint32_t single = ledger_place(l, b->job);

	b->place_cnt[w] = 0;
	if (single != FRAME_NONE && !is_region(b, w, single)) {
		places[b->place_cnt[w]++] = single;
		return;
	}
	for (uint32_t i = 0; i < b->job->frames.cnt; i++) {
		size_t at = b->place_cnt[w];

		if (l->below[i] < PLACE_FRAC * l->listed || l->below[i] <= 0 ||
		    is_device_frame(b->job, i) || has_main_child(b, w, i) || is_region(b, w, i))
			continue;
		/* Largest first; callers of a place that is listed add nothing. */
		if (at < PLACES_MAX)
			b->place_cnt[w]++;
		else if (l->below[places[--at]] >= l->below[i])
			continue;
		for (; at > 0 && l->below[places[at - 1]] < l->below[i]; at--)
			places[at] = places[at - 1];
		places[at] = i;
	}
}

/* The largest loss of the other workers in an iteration. */
static double worst_other(const struct bench *b, uint32_t w, size_t iteration)
{
	double worst = 0;

	for (uint32_t i = 0; i < b->job->worker_cnt; i++) {
		if (i != w && iteration < b->job->workers[i].fp->iteration_cnt)
			worst = fmax(worst, b->blame->workers[i].iteration_lost_ns[iteration]);
	}
	return worst;
}

/*
 * Whether chance could have made w lose more than all others. Where the time was
 * lost everywhere a bit, nothing but its constancy tells a slow worker from one
 * that had bad luck.
 */
static bool may_be_chance(const struct bench *b, uint32_t w)
{
	size_t cnt = b->job->workers[w].fp->iteration_cnt;
	double sum = 0, square = 0, need, mean, variance;

	for (size_t i = 0; i < cnt; i++) {
		double lead = b->blame->workers[w].iteration_lost_ns[i] - worst_other(b, w, i);

		sum += lead;
		square += lead * lead;
	}
	if (cnt < 2)
		return false; /* judged by its share of all lost time */
	/* Of few iterations the scatter itself is uncertain (Student's t). */
	need = SPREAD_SURE * (1 + 16 / pow((double)cnt - 1, 2));
	mean = sum / (double)cnt;
	variance = fmax(0, square / (double)cnt - mean * mean) * (double)cnt / (double)(cnt - 1);
	return mean <= 0 || mean * mean * (double)cnt < need * need * variance;
}

/* Slower in everything: only worth an accusation beyond what machines differ by. */
static bool spread_matters(const struct bench *b, uint32_t w, double loss_ns)
{
	const struct ledger *l = &b->of[w];
	double by_class[CLASS_CNT] = { 0 }, need = SPREAD_HOST;

	for (uint32_t f = 0; f < b->job->functions.cnt; f++)
		by_class[b->job->functions.data[f].class] += l->of_function[f];
	if (b->job->workers[w].fp->has_device && by_class[CLASS_COMPUTE] > l->listed / 2)
		need = SPREAD_DEVICE;
	return loss_ns >= need * b->job->iteration_ns * b->job->workers[w].iterations;
}

/* Places are believed when together they explain the loss, or when one is long by itself. */
static void keep_places(struct bench *b, uint32_t w)
{
	const struct ledger *l = &b->of[w];
	double sum = 0, longest = 0;

	for (size_t i = 0; i < b->place_cnt[w]; i++) {
		sum += l->below[b->places[w * PLACES_MAX + i]];
		longest = fmax(longest, l->below[b->places[w * PLACES_MAX + i]]);
	}
	if (sum < EXPLAIN_FRAC * l->listed &&
	    longest < SPREAD_HOST * b->job->iteration_ns * b->job->workers[w].iterations)
		b->place_cnt[w] = 0;
}

static int bench_alloc(struct bench *b)
{
	size_t cnt = b->job->worker_cnt + 1;

	b->of = arena_calloc(b->arena, cnt, sizeof(*b->of));
	b->places = arena_calloc(b->arena, cnt * PLACES_MAX, sizeof(*b->places));
	b->place_cnt = arena_calloc(b->arena, cnt, sizeof(*b->place_cnt));
	b->stands_out = arena_calloc(b->arena, cnt, sizeof(bool));
	b->used = arena_calloc(b->arena, cnt, sizeof(bool));
	b->scratch = arena_calloc(b->arena, cnt, sizeof(double));
	return b->of == NULL || b->places == NULL || b->place_cnt == NULL ||
			       b->stands_out == NULL || b->used == NULL || b->scratch == NULL
		       ? -ENOMEM
		       : 0;
}

static int bench_init(struct bench *b)
{
	double total = 0;

	if (bench_alloc(b) < 0)
		return -ENOMEM;
	for (uint32_t w = 0; w < b->job->worker_cnt; w++)
		total += own_loss(b->blame, w);
	for (uint32_t w = 0; w < b->job->worker_cnt; w++) {
		double loss = own_loss(b->blame, w), typical, limit;

		if (worker_ledger(b->job, b->blame, w, b->arena, &b->of[w]) < 0)
			return -ENOMEM;
		find_places(b, w);
		keep_places(b, w);
		typical = median_of_others(b->job, b->blame, w, b->scratch);
		limit = b->options->min_gain_frac * b->job->iteration_ns *
			b->job->workers[w].iterations;
		b->stands_out[w] = loss - typical >= limit && loss >= STANDS_OUT * typical &&
				   loss >= SHARE_FRAC * total;
		if (b->job->workers[w].iterations < 2 && loss < SINGLE_FRAC * total)
			b->stands_out[w] = false;
		if (b->place_cnt[w] == 0 && (!spread_matters(b, w, loss) || may_be_chance(b, w)))
			b->stands_out[w] = false;
	}
	return 0;
}

/* One accusation of worker w and all others that lost time at the same place. */
static int accuse_with_company(struct bench *b, uint32_t w, uint32_t place, bool rotates,
			       accusations *out)
{
	bool *who = arena_calloc(b->arena, b->job->worker_cnt + 1, sizeof(bool));
	struct ledger sum;
	int error = ledger_init(&sum, b->job, b->arena);

	if (who == NULL || error < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < b->job->worker_cnt; i++) {
		if (i != w && (b->used[i] || b->stands_out[i] != b->stands_out[w] ||
			       b->of[i].total <= 0 || !has_place(b, i, place)))
			continue;
		who[i] = true;
		for (size_t k = 0; k < b->blame->why.cnt; k++) {
			if (b->blame->why.data[k].worker == i)
				ledger_add(&sum, &b->blame->why.data[k]);
		}
	}
	ledger_sum(&sum, b->job);
	return accuse(b->job, &sum, who, place, rotates, b->arena, out);
}

/* Whether an earlier worker of the same kind has the place: then it has been accused with it. */
static bool accused_before(const struct bench *b, uint32_t w, uint32_t place)
{
	for (uint32_t i = 0; i < w; i++) {
		if (b->stands_out[i] && has_place(b, i, place))
			return true;
	}
	return false;
}

static int accuse_culprit(struct bench *b, uint32_t w, accusations *out)
{
	int error = 0;

	if (b->place_cnt[w] == 0 && !accused_before(b, w, FRAME_NONE))
		return accuse_with_company(b, w, FRAME_NONE, false, out);
	for (size_t i = 0; i < b->place_cnt[w] && error == 0; i++) {
		uint32_t place = b->places[w * PLACES_MAX + i];

		if (!accused_before(b, w, place))
			error = accuse_with_company(b, w, place, false, out);
	}
	return error;
}

/* Lost time per iteration of all unaccused workers whose main place is that of w. */
static double turn_loss(const struct bench *b, uint32_t w, size_t *ret_cnt)
{
	uint32_t place = main_place(b, w);
	double sum = 0;

	*ret_cnt = 0;
	for (uint32_t i = 0; i < b->job->worker_cnt; i++) {
		if (b->used[i] || b->stands_out[i] || main_place(b, i) != place ||
		    b->of[i].total <= 0)
			continue;
		sum += ledger_at(&b->of[i], place) / b->job->workers[i].iterations;
		(*ret_cnt)++;
	}
	return sum;
}

static int accuse_turns(struct bench *b, uint32_t w, accusations *out)
{
	double need = fmax(ROTATE_FRAC, b->options->min_gain_frac) * b->job->iteration_ns;
	uint32_t place = main_place(b, w);
	size_t cnt;
	int error;

	if (b->used[w] || b->stands_out[w] || b->job->workers[w].iterations < 2 ||
	    !can_rotate(b->job, &b->of[w], place) || turn_loss(b, w, &cnt) < need || cnt < 2)
		return 0;
	error = accuse_with_company(b, w, place, true, out);
	for (uint32_t i = 0; i < b->job->worker_cnt; i++)
		b->used[i] |= !b->stands_out[i] && main_place(b, i) == place;
	return error;
}

int accuse_by_blame(const struct job *job, const struct blame *blame,
		    const struct accuse_options *options, struct arena *arena, accusations *out)
{
	struct bench b = { .job = job, .blame = blame, .options = options, .arena = arena };
	int error = bench_init(&b);

	for (uint32_t w = 0; w < job->worker_cnt && error == 0; w++) {
		if (b.stands_out[w])
			error = accuse_culprit(&b, w, out);
	}
	for (uint32_t w = 0; w < job->worker_cnt && error == 0; w++)
		error = accuse_turns(&b, w, out);
	return error;
}
