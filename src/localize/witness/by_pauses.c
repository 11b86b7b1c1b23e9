/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pauses that strike at random, by what workers were late for: at unrelated places, or of all workers by
 * turns in one function.
 */
#include "base/stats.h"
#include "localize/late/turns.h"
#include "localize/witness/excess.h"
#include "localize/witness/witness.h"
#include "model/place/pywait.h"
#include "model/thresholds.h"

#include <errno.h>
#include <math.h>

struct pause {
	uint32_t worker, function;
	double longest_ns; /* before one collective */
	double lost_ns;	   /* waiting it caused, over the window */
};

struct pauses {
	const struct job *job;
	const struct blame *blame;
	VEC(struct pause) found; /* by worker */
	double *longest;	 /* by function, of one worker */
	double *scratch;	 /* by worker */
	double *typical;	 /* by function and peer group; -1: not known yet */
	uint32_t *by_iteration;	 /* how many workers pause in it */
	bool *is_place;		 /* by function: a worker paused there, and did not wait */
	uint32_t place_cnt;	 /* that are unrelated */
	uint32_t worst;		 /* the function that cost most */
	double lost_ns;
	double own_ns; /* by turns: what a worker pauses per iteration */
	bool by_turns; /* all workers may pause there: each passes it at once in most iterations */
};

static int pauses_alloc(struct pauses *p, struct arena *arena)
{
	size_t cnt = p->job->functions.cnt * p->job->group_cnt, longest = 0;

	for (size_t w = 0; w < p->job->worker_cnt; w++)
		longest = MAX(longest, p->job->workers[w].fp->iteration_cnt);
	p->by_iteration = arena_calloc(arena, longest + 1, sizeof(*p->by_iteration));

	p->longest = arena_calloc(arena, p->job->functions.cnt + 1, sizeof(*p->longest));
	p->is_place = arena_calloc(arena, p->job->functions.cnt + 1, sizeof(*p->is_place));
	p->scratch = arena_calloc(arena, p->job->worker_cnt + 1, sizeof(*p->scratch));
	p->typical = arena_calloc(arena, cnt + 1, sizeof(*p->typical));
	if (p->by_iteration == NULL || p->longest == NULL || p->is_place == NULL ||
	    p->scratch == NULL || p->typical == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < cnt; i++)
		p->typical[i] = -1;
	return 0;
}

static void longest_of(struct pauses *p, const struct job_worker *w, uint32_t first, uint32_t cnt)
{
	for (uint32_t i = first; i < first + cnt; i++) {
		const struct fp_share *s = &w->fp->shares[i];

		if (s->function != FRAME_NONE)
			p->longest[w->function_of[s->function]] =
				fmax(p->longest[w->function_of[s->function]], (double)s->ns);
	}
}

/* The longest time that a worker was in each function before one collective. */
static void measure_longest(struct pauses *p, uint32_t worker)
{
	const struct job_worker *w = &p->job->workers[worker];

	for (size_t f = 0; f < p->job->functions.cnt; f++)
		p->longest[f] = 0;
	for (size_t i = 0; i < w->fp->collective_cnt; i++) {
		const struct fp_collective *c = &w->fp->collectives[i];

		longest_of(p, w, c->lead_first, c->lead_cnt);
		longest_of(p, w, c->host_first, c->host_cnt);
	}
}

static double thread_ns(const struct job *job, const struct job_function *f, uint32_t w)
{
	return f->of[w] != NULL ? (double)f->of[w]->thread_ns / job->workers[w].iterations : 0;
}

/*
 * What a quarter of the worker's peers take in a function per iteration at most: half may have
 * been struck. The same for all workers of a peer group, so it is kept.
 */
static double typical_ns(struct pauses *p, uint32_t function, uint32_t worker)
{
	uint32_t group = p->job->workers[worker].group;
	double *typical = &p->typical[function * p->job->group_cnt + group];
	size_t cnt = 0;

	if (*typical >= 0)
		return *typical;
	for (uint32_t w = 0; w < p->job->worker_cnt; w++) {
		if (p->job->workers[w].group == group)
			p->scratch[cnt++] = thread_ns(p->job, &p->job->functions.data[function], w);
	}
	(void)stats_median(p->scratch, cnt); /* leaves them sorted */
	*typical = p->scratch[cnt / 4];
	return *typical;
}

/* Whether the thread is known to have computed there. */
static bool is_busy(const struct job_function *f, uint32_t worker)
{
	return f->of[worker]->resource == RESOURCE_CPU_THREAD &&
	       f->of[worker]->mu_frac >= THREAD_BUSY;
}

/* Without CPUs a whole worker pauses; its run delay shows that. */
static bool may_compute(const struct job *job, const struct job_function *f, uint32_t worker,
			double pause_ns)
{
	const struct fingerprint *fp = job->workers[worker].fp;

	return (isnan(f->of[worker]->mu_frac) || is_busy(f, worker)) &&
	       fp->host_stats.run_delay_frac * (double)fp->window_ns < pause_ns / 2;
}

/*
 * Python, a collection, or, without stacks, a stretch between what was recorded. No collection begins
 * while a thread waits.
 */
static bool can_pause(const struct job *job, const struct job_function *f)
{
	uint8_t kind = f->frame != FRAME_NONE ? job->frames.data[f->frame].kind : KIND_OTHER;

	if (f->frame == FRAME_NONE)
		return false;
	if (f->class == CLASS_IDLE)
		return excess_is_stretch(&job->frames.data[f->frame]);
	return f->class == CLASS_HOST &&
	       (kind == KIND_GC ||
		(kind == KIND_PYTHON && !pywait_is(job->frames.data[f->frame].name)));
}

static bool is_pause_of(struct pauses *p, uint32_t worker, uint32_t function)
{
	const struct job_function *f = &p->job->functions.data[function];
	double longest = p->longest[function];

	return f->of[worker] != NULL && can_pause(p->job, f) &&
	       longest >= PAUSE_MIN_FRAC * p->job->iteration_ns &&
	       longest >= PAUSE_SOME_FACTOR * thread_ns(p->job, f, worker) &&
	       may_compute(p->job, f, worker, longest) &&
	       (p->by_turns ? turns_seldom(p->job, worker, function, longest)
			    : typical_ns(p, function, worker) <= PAUSE_AT_ONCE * longest);
}

static int find_pauses(struct pauses *p)
{
	p->found.cnt = 0;
	for (size_t f = 0; f < p->job->functions.cnt; f++)
		p->is_place[f] = false;
	for (uint32_t w = 0; w < p->job->worker_cnt; w++) {
		measure_longest(p, w);
		for (uint32_t f = 0; f < p->job->functions.cnt; f++) {
			struct pause pause = { .worker = w, .function = f };

			if (!is_pause_of(p, w, f))
				continue;
			pause.longest_ns = p->longest[f];
			pause.lost_ns = blame_why_ns(p->blame, w, f);
			p->is_place[f] |=
				pause.lost_ns > 0 || is_busy(&p->job->functions.data[f], w);
			if (vec_push(&p->found, pause) < 0)
				return -ENOMEM;
		}
	}
	return 0;
}

/* By worker, as p->found is: the next pause that is another worker's. */
static size_t next_worker(const struct pauses *p, size_t i)
{
	uint32_t worker = p->found.data[i].worker;

	while (i < p->found.cnt && p->found.data[i].worker == worker)
		i++;
	return i;
}

/*
 * Whether half of the workers stop for the same time: collections of one program. Nothing that
 * waits for another worker lasts as long on each.
 */
static bool are_alike(const struct pauses *p)
{
	double shortest = (double)INFINITY, longest = 0;
	size_t struck = 0;

	for (size_t i = 0; i < p->found.cnt; i = next_worker(p, i)) {
		double own = 0;

		for (size_t k = i; k < next_worker(p, i); k++)
			own = fmax(own, p->found.data[k].longest_ns);
		shortest = fmin(shortest, own);
		longest = fmax(longest, own);
		struck++;
	}
	return 2 * struck >= p->job->worker_cnt && longest <= PAUSE_ALIKE * shortest;
}

/*
 * A thread may be blocked because it waits for the one that paused. A function is a place
 * only if a worker that paused in it lost time there or is known to have computed there, or if
 * all pauses are alike.
 */
static void keep_places(struct pauses *p)
{
	bool alike = are_alike(p);
	size_t kept = 0;

	vec_foreach(pause, &p->found)
		p->is_place[pause->function] |= alike;
	for (size_t i = 0; i < p->found.cnt; i++) {
		if (p->is_place[p->found.data[i].function])
			p->found.data[kept++] = p->found.data[i];
	}
	p->found.cnt = kept;
}

/* One slow function shows in all that it calls. Stretches have names of what is around them. */
static bool is_related(const struct job *job, uint32_t a, uint32_t b)
{
	const struct job_frame *frames = job->frames.data;

	a = job->functions.data[a].frame;
	b = job->functions.data[b].frame;
	if (excess_is_stretch(&frames[a]) && excess_is_stretch(&frames[b]))
		return false;
	return frames_below(frames, a, b) || frames_below(frames, b, a) ||
	       frames[a].parent == frames[b].parent;
}

/* How many places have nothing to do with each other. */
static uint32_t count_places(const struct pauses *p)
{
	uint32_t cnt = 0;

	for (uint32_t f = 0; f < p->job->functions.cnt; f++) {
		bool related = !p->is_place[f];

		for (uint32_t other = 0; other < f && !related; other++)
			related = p->is_place[other] && is_related(p->job, f, other);
		cnt += !related;
	}
	return cnt;
}

/* Whether each place has workers of its own: not one thing that takes long in many functions. */
static bool have_own_workers(const struct pauses *p)
{
	size_t places = 0, struck = 0;

	for (uint32_t f = 0; f < p->job->functions.cnt; f++)
		places += p->is_place[f];
	for (size_t i = 0; i < p->found.cnt; i = next_worker(p, i))
		struck++;
	return (double)p->found.cnt <= PAUSE_APART_FRAC * (double)places * (double)struck;
}

/* How many of the worker's places, from first to end, it paused at since p->longest was cleared. */
static size_t count_paused(struct pauses *p, size_t first, size_t end)
{
	size_t cnt = 0;

	for (size_t i = first; i < end; i++) {
		const struct pause *pause = &p->found.data[i];

		cnt += 2 * p->longest[pause->function] >= pause->longest_ns;
	}
	for (size_t f = 0; f < p->job->functions.cnt; f++)
		p->longest[f] = 0;
	return cnt;
}

/* Adds the iterations in which a worker paused, and at how many places. */
static void add_events(struct pauses *p, size_t first, size_t end, size_t *iterations,
		       size_t *places)
{
	const struct job_worker *w = &p->job->workers[p->found.data[first].worker];
	const struct fingerprint *fp = w->fp;
	size_t k = 0;

	(void)count_paused(p, first, end);
	for (size_t i = 0; i < fp->iteration_cnt; i++) {
		int64_t until = fp->iterations[i].start_ns + fp->iterations[i].dur_ns;
		size_t cnt;

		for (; k < fp->collective_cnt && fp->collectives[k].start_ns < until; k++) {
			const struct fp_collective *c = &fp->collectives[k];

			longest_of(p, w, c->lead_first, c->lead_cnt);
			longest_of(p, w, c->host_first, c->host_cnt);
		}
		cnt = count_paused(p, first, end);
		*iterations += cnt > 0;
		*places += cnt;
	}
}

/*
 * Whether the places have nothing to do with each other: each has workers of its own, or, in a long
 * window in which each worker pauses everywhere sooner or later, it is at one place at a time.
 */
static bool are_apart(struct pauses *p)
{
	size_t iterations = 0, places = 0;

	if (have_own_workers(p))
		return true;
	for (size_t i = 0; i < p->found.cnt; i = next_worker(p, i))
		add_events(p, i, next_worker(p, i), &iterations, &places);
	return (double)places <= PAUSE_AT_A_TIME * (double)iterations;
}

/* The longest pause of a worker, of those from index first on. */
static const struct pause *longest_of_worker(const struct pauses *p, size_t first)
{
	const struct pause *ret = &p->found.data[first];

	for (size_t i = first; i < next_worker(p, first); i++)
		ret = p->found.data[i].longest_ns > ret->longest_ns ? &p->found.data[i] : ret;
	return ret;
}

/*
 * Whether some workers pause again and again, each in iterations of its own: what all do in the same
 * iteration, or once, such as a checkpoint, belongs to the job.
 */
static bool take_turns(struct pauses *p)
{
	size_t struck = 0, cnt = 0, iterations = 1;

	for (size_t i = 0; i < p->found.cnt; i = next_worker(p, i)) {
		const struct pause *pause = longest_of_worker(p, i);
		size_t own = turns_count(p->job, pause->worker, pause->function,
					 pause->longest_ns / 2, p->by_iteration);

		struck++;
		cnt += own;
		p->own_ns += (double)own * pause->longest_ns;
		iterations = MAX(iterations, p->job->workers[pause->worker].fp->iteration_cnt);
	}
	for (size_t i = 0; i < iterations; i++) {
		if ((double)p->by_iteration[i] > PAUSE_TURNS_FRAC * (double)struck)
			return false;
	}
	p->own_ns /= (double)MAX(struck, (size_t)1) * (double)iterations;
	return struck >= PAUSE_TURNS_WORKERS && (double)cnt >= PAUSE_TURNS_CNT * (double)struck;
}

static bool is_pause(const struct pauses *p, uint32_t worker, uint32_t function)
{
	vec_foreach(pause, &p->found) {
		if (pause->worker == worker && pause->function == function)
			return true;
	}
	return false;
}

static bool accuses(const struct accusation *a, uint32_t worker)
{
	for (size_t i = 0; i < a->worker_cnt; i++) {
		if (a->workers[i] == worker)
			return true;
	}
	return false;
}

/* Whether most of what the accused lost at the place they lost in pauses. */
static bool is_explained(const struct pauses *p, const struct accusation *a)
{
	double lost = 0, paused = 0;

	vec_foreach(why, &p->blame->why) {
		uint32_t frame = why->function != FRAME_NONE
					 ? p->job->functions.data[why->function].frame
					 : FRAME_NONE;

		if (!accuses(a, why->worker) ||
		    (a->frame != FRAME_NONE && !job_frame_below(p->job, frame, a->frame)))
			continue;
		lost += why->ns;
		if (is_pause(p, why->worker, why->function))
			paused += why->ns;
	}
	return paused > PAUSE_EXPLAINED * lost;
}

/* Whether those that pause also stall inside operators, where no collection begins: they lack CPUs. */
static bool stall_in_operators(const struct pauses *p)
{
	uint64_t cnt = 0, inside = 0;

	for (size_t i = 0; i < p->found.cnt; i = next_worker(p, i)) {
		const struct fp_stalls *stalls =
			&p->job->workers[p->found.data[i].worker].fp->stalls;

		cnt += stalls->cnt;
		inside += stalls->inside_cnt;
	}
	return cnt >= STALLS_MIN && (double)inside >= STALL_INSIDE_FRAC * (double)cnt;
}

/*
 * Whether one worker lost most of it at one place, again and again: that place is slow, and pauses beside
 * it are few. One long pause has no place.
 */
static bool has_one_place(const struct pauses *p)
{
	const struct pause *worst = NULL;
	double most = 0, sum = 0;

	vec_foreach(pause, &p->found) {
		double ns = pause->lost_ns / p->job->workers[pause->worker].iterations;

		worst = ns > most ? pause : worst;
		most = fmax(most, ns);
		sum += ns;
	}
	return worst != NULL && most > PAUSE_ONE_FRAC * sum &&
	       turns_count(p->job, worst->worker, worst->function, worst->longest_ns / 2, NULL) > 1;
}

/* Whether they are a part that counts of all lateness: pauses of the scheduler come beside any fault. */
static bool are_much(const struct pauses *p)
{
	double late = 0;

	for (size_t w = 0; w < p->job->worker_cnt; w++)
		late += p->blame->workers[w].lost_ns / p->job->workers[w].iterations;
	return p->lost_ns >= PAUSE_MUCH_FRAC * late;
}

static bool is_one_cause(struct pauses *p)
{
	if (p->place_cnt == 0 || stall_in_operators(p))
		return false;
	if (p->by_turns)
		return are_alike(p) && take_turns(p);
	/* What strikes at random strikes several workers. */
	return p->place_cnt >= PAUSE_STRUCK_CNT && next_worker(p, 0) < p->found.cnt &&
	       are_apart(p) && (are_alike(p) || !has_one_place(p));
}

/* Sums up what the pauses cost, and where most. */
static int weigh(struct pauses *p)
{
	_cleanup_free_ double *lost = calloc(p->job->functions.cnt + 1, sizeof(*lost));

	if (lost == NULL)
		return -ENOMEM;
	p->worst = FRAME_NONE;
	vec_foreach(pause, &p->found) {
		p->lost_ns += pause->lost_ns / p->job->workers[pause->worker].iterations;
		lost[pause->function] += pause->lost_ns;
		if (p->worst == FRAME_NONE || lost[pause->function] > lost[p->worst])
			p->worst = pause->function;
	}
	return 0;
}

/* The accusation of all that pause, at the place where that cost most. */
static int accusation_of(const struct pauses *p, struct arena *arena, struct accusation *ret)
{
	uint32_t *workers = arena_calloc(arena, p->found.cnt + 1, sizeof(*workers));
	struct accusation a = {
		.witness = WITNESS_BLAME,
		.workers = workers,
		.frame = p->job->functions.data[p->worst].frame,
		.function = p->worst,
		.class = p->job->functions.data[p->worst].class,
		.rotates = true,
		.place_cnt = p->by_turns ? 0 : p->place_cnt,
		.strikes = p->is_place,
		.own_ns = p->lost_ns,
	};
	int error;

	if (workers == NULL)
		return -ENOMEM;
	vec_foreach(pause, &p->found) {
		if (a.worker_cnt == 0 || workers[a.worker_cnt - 1] != pause->worker)
			workers[a.worker_cnt++] = pause->worker;
	}
	if (a.class == CLASS_IDLE && a.place_cnt > 0) {
		a.use.label =
			arena_printf(arena, "%u unrelated places between operators", p->place_cnt);
		if (a.use.label == NULL)
			return -ENOMEM;
	}
	error = blame_cost(p->job, p->blame, workers, a.worker_cnt, &a.gain_ns);
	a.gain_ns = fmin(a.gain_ns, p->lost_ns);
	*ret = a;
	return error;
}

static int accuse_all(struct pauses *p, const struct accuse_options *options, struct arena *arena,
		      accusations *list)
{
	struct accusation a;
	size_t kept = 0;
	int error = weigh(p);

	if (error == 0)
		error = accusation_of(p, arena, &a);
	/* What all do at once makes none of them wait. */
	if (error == 0 && p->by_turns && a.gain_ns < p->own_ns / 2)
		return 0;
	if (error < 0 || a.gain_ns < options->min_gain_frac * p->job->iteration_ns || !are_much(p))
		return error;
	for (size_t i = 0; i < list->cnt; i++) {
		if (!is_explained(p, &list->data[i]))
			list->data[kept++] = list->data[i];
	}
	list->cnt = kept;
	return vec_push(list, a);
}

/*
 * Where blame knows what each worker was late for: accuses all workers of such pauses once,
 * and removes the accusations that they explain. A pause is a time that a worker computed in a
 * function of Python in some iterations but not in all, while its peers pass the function
 * at once. Different workers pause in different functions; one function that is slow
 * now and then is not one of these pauses, nor are the functions below it. O(shares of collectives).
 */
int accuse_by_pauses(const struct job *job, const struct blame *blame,
		     const struct accuse_options *options, struct arena *arena, accusations *list)
{
	struct pauses p = { .job = job, .blame = blame };
	int error = pauses_alloc(&p, arena);

	for (int turn = 0; turn < 2 && error == 0; turn++) {
		p.by_turns = turn > 0;
		error = find_pauses(&p);
		keep_places(&p);
		p.place_cnt = count_places(&p);
		if (error < 0 || !is_one_cause(&p))
			continue;
		error = accuse_all(&p, options, arena, list);
		break;
	}
	vec_done(&p.found);
	return error;
}
