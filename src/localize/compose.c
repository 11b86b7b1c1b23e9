/* SPDX-License-Identifier: Apache-2.0 */
#include "localize/compose.h"

#include "base/stats.h"
#include "base/str.h"
#include "localize/compose_parts.h"
#include "localize/waits/waits.h"
#include "model/place/place.h"
#include "model/rankset.h"
#include "model/thresholds.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

const char *draft_text(struct draft *d, const char *s)
{
	const char *copy = arena_strdup(d->arena, s);

	d->no_memory |= copy == NULL;
	return copy != NULL ? copy : "";
}

bool draft_accused(const struct draft *d, size_t w)
{
	return accusation_has(d->a, (uint32_t)w);
}

/* beta of all the places that the accused fault strikes. */
static double strikes_beta(const struct draft *d, size_t w)
{
	double sum = 0;

	for (size_t i = 0; i < d->job->functions.cnt; i++) {
		const struct fp_function *f = d->job->functions.data[i].of[w];

		sum += d->a->strikes[i] && f != NULL ? f->beta_frac : 0;
	}
	return fmin(1, sum);
}

static bool strikes_many(const struct draft *d)
{
	return d->a->strikes != NULL && d->a->place_cnt == 0;
}

/* beta of the place on a worker: the whole subtree, host side and device side alike. */
static double place_beta(const struct draft *d, size_t w)
{
	const struct job_worker *jw = &d->job->workers[w];
	bool named = d->a->function != FRAME_NONE;
	const struct job_function *f = named ? &d->job->functions.data[d->a->function] : NULL;
	uint32_t frame = d->a->spread && named ? f->frame : d->a->frame;

	if (strikes_many(d))
		return strikes_beta(d, w);
	if (d->a->class == CLASS_COMM && named)
		return f->of[w] != NULL ? f->of[w]->beta_frac : 0;
	if (frame == FRAME_NONE)
		return 0;
	return fmin(1, job_subtree_ns(d->job, frame, w, ~0u) * jw->iterations /
			       (double)jw->fp->window_ns);
}

static double place_ms(const struct draft *d, size_t w)
{
	const struct job_worker *jw = &d->job->workers[w];

	return place_beta(d, w) * (double)jw->fp->window_ns / jw->iterations / 1e6;
}

/* Where the thread itself stood: the place takes that long, hidden behind the device or not. */
double draft_thread_ms(const struct draft *d, size_t w)
{
	if (d->a->spread || d->a->frame == FRAME_NONE || strikes_many(d) ||
	    (d->a->class != CLASS_HOST && d->a->class != CLASS_IDLE))
		return 0;
	return job_thread_ns(d->job, d->a->frame, w) / 1e6;
}

typedef double (*measure)(const struct draft *d, size_t w);

static double median_of(struct draft *d, measure m, bool of_accused, bool *ret_any)
{
	size_t cnt = 0;

	for (size_t w = 0; w < d->job->worker_cnt; w++) {
		if (draft_accused(d, w) == of_accused)
			d->scratch[cnt++] = m(d, w);
	}
	*ret_any = cnt > 0;
	return stats_median(d->scratch, cnt);
}

/* --- names --- */

uint32_t draft_named_frame(const struct draft *d)
{
	uint32_t main = d->a->function != FRAME_NONE ? d->job->functions.data[d->a->function].frame
						     : FRAME_NONE;

	/* A slowdown of everything is named by a function only if that function has much of it. */
	if (d->a->witness == WITNESS_BLAME && d->a->frame == FRAME_NONE &&
	    d->a->main_ns < SPREAD_NAMED_FRAC * fmax(d->a->own_ns, d->a->gain_ns))
		return FRAME_NONE;
	/* A region is named by what it mostly does; a place by itself. */
	return d->a->spread || d->a->frame == FRAME_NONE ? main : d->a->frame;
}

/* An empty place has no name of its own: "idle in CONTEXT, after A, before B". */
const char *draft_idle_name(struct draft *d, uint32_t frame)
{
	const struct job_frame *f = &d->job->frames.data[frame];
	const char *context = "the training thread", *where = f->name;

	if (strncmp(where, "idle", 4) != 0) {
		const char *name = arena_printf(d->arena, "idle in %s", where);

		d->no_memory |= name == NULL;
		return name != NULL ? name : "";
	}
	if (f->parent != FRAME_NONE)
		context = d->job->frames.data[f->parent].name;
	where = where[4] == ' ' ? where + 5 : "";
	where = arena_printf(d->arena, "idle in %s%s%s", context, where[0] != '\0' ? ", " : "",
			     where);
	d->no_memory |= where == NULL;
	return where != NULL ? where : "";
}

static void set_name(struct draft *d)
{
	struct finding *f = d->out;
	uint32_t frame = draft_named_frame(d);
	char hex[33] = "00000000000000000000000000000000";
	const char **stack;
	size_t depth = 0;

	f->key = draft_text(d, hex);
	f->name = "the whole iteration";
	f->class = d->a->class;
	if (d->a->use.label != NULL)
		f->name = draft_text(d, d->a->use.label);
	if (frame == FRAME_NONE)
		return;
	(void)snprintf(hex, sizeof(hex), "%016llx%016llx",
		       (unsigned long long)d->job->frames.data[frame].key.hi,
		       (unsigned long long)d->job->frames.data[frame].key.lo);
	f->key = draft_text(d, hex);
	if (d->a->use.label == NULL)
		f->name = d->a->class == CLASS_IDLE
				  ? draft_idle_name(d, frame)
				  : draft_text(d, d->job->frames.data[frame].name);
	for (uint32_t i = frame; i != FRAME_NONE; i = d->job->frames.data[i].parent)
		depth++;
	stack = arena_calloc(d->arena, depth + 1, sizeof(*stack));
	d->no_memory |= stack == NULL;
	if (stack == NULL)
		return;
	f->stack_cnt = depth;
	for (uint32_t i = frame; i != FRAME_NONE; i = d->job->frames.data[i].parent)
		stack[--depth] = draft_text(d, d->job->frames.data[i].name);
	f->stack = stack;
}

/* --- ranks --- */

static void set_workers(struct draft *d)
{
	struct finding *f = d->out;
	int *ranks = arena_calloc(d->arena, d->job->worker_cnt + 1, sizeof(int));
	const char **hosts = arena_calloc(d->arena, d->a->worker_cnt + 1, sizeof(*hosts));
	_cleanup_free_ bool *known = calloc(d->job->worker_cnt + 1, sizeof(*known)); /* by host */

	if (ranks == NULL || hosts == NULL || known == NULL) {
		d->no_memory = true;
		return;
	}
	for (size_t i = 0; i < d->a->worker_cnt; i++) {
		const struct job_worker *worker = &d->job->workers[d->a->workers[i]];

		ranks[f->rank_cnt++] = worker->fp->rank;
		if (worker->fp->host[0] != '\0' && !known[worker->host])
			hosts[f->host_cnt++] = draft_text(d, worker->fp->host);
		known[worker->host] = true;
	}
	f->ranks = ranks;
	f->hosts = hosts;
	f->all_workers = f->rank_cnt == d->job->worker_cnt;
	f->apart = d->job->apart;
}

/* Sums what each worker waited for the accused. */
static void sum_waits(struct draft *d)
{
	for (size_t w = 0; w < d->job->worker_cnt; w++)
		d->scratch[w] = draft_accused(d, w) ? 1 : 0;
	blame_sum_waits(d->blame, d->scratch, d->waited_ns);
}

/* Time per iteration a worker waited for the accused. */
double draft_waited_ms(const struct draft *d, size_t w)
{
	return d->waited_ns[w] / d->job->workers[w].iterations / 1e6;
}

static void set_victims(struct draft *d)
{
	struct finding *f = d->out;
	int *victims = arena_calloc(d->arena, d->job->worker_cnt + 1, sizeof(int));
	double longest = 0;

	d->no_memory |= victims == NULL;
	if (victims == NULL || d->a->witness != WITNESS_BLAME)
		return;
	for (size_t w = 0; w < d->job->worker_cnt; w++)
		longest = fmax(longest, draft_accused(d, w) ? 0 : draft_waited_ms(d, w));
	for (size_t w = 0; w < d->job->worker_cnt; w++) {
		if (!draft_accused(d, w) && draft_waited_ms(d, w) > VICTIM_FRAC * longest)
			victims[f->victim_cnt++] = d->job->workers[w].fp->rank;
	}
	f->victims = victims;
}

/* --- numbers --- */

/* A reference of NAN: no peer runs the function, or none was measured. */
static void set_value(struct finding_value *v, double value, double reference)
{
	v->present = !isnan(value);
	v->value = isnan(value) ? 0 : value;
	v->reference = reference;
	v->reference_kind = REFERENCE_PEERS;
}

/* By how much the accused exceed their peers in a measure. */
static double more_in(struct draft *d, measure m)
{
	bool any;
	double mine = median_of(d, m, true, &any);

	return mine - median_of(d, m, false, &any);
}

/* The reference of what grew is what it was. */
static void compare_with_past(struct draft *d)
{
	struct finding *f = d->out;

	f->time_ms_per_iteration = d->a->now_ns / 1e6;
	f->delta_ms_per_iteration = (d->a->now_ns - d->a->before_ns) / 1e6;
	f->beta.reference =
		fmax(0, f->beta.value - (d->a->now_ns - d->a->before_ns) / d->job->iteration_ns);
	f->beta.reference_kind = REFERENCE_PAST;
}

/* What the GPUs lost, whatever the critical path says of it. */
static void compare_with_usual(struct draft *d)
{
	struct finding *f = d->out;
	double usual_frac = d->a->use.usual_ns / d->job->iteration_ns;

	f->time_ms_per_iteration = d->a->own_ns / 1e6;
	f->delta_ms_per_iteration = (d->a->own_ns - d->a->use.usual_ns) / 1e6;
	set_value(&f->beta, fmin(1, d->a->own_ns / d->job->iteration_ns), usual_frac);
	f->beta.reference_kind = REFERENCE_EXPECTED;
	f->gain_at_most = true;
}

/*
 * The one of a place's two times that differs more from the peers': a stall can hide behind
 * the device's work, and the peers' threads can be in the same place because they wait.
 */
static void set_numbers(struct draft *d)
{
	struct finding *f = d->out;
	bool any, peers;
	double high = d->expect->of_class[d->a->class].beta[1];
	double thread_more = more_in(d, draft_thread_ms);
	measure time = thread_more > fmax(0, more_in(d, place_ms)) ? draft_thread_ms : place_ms;

	f->time_ms_per_iteration = median_of(d, time, true, &any);
	f->delta_ms_per_iteration = f->time_ms_per_iteration - median_of(d, time, false, &peers);
	set_value(&f->beta, median_of(d, place_beta, true, &any),
		  median_of(d, place_beta, false, &peers));
	if (!peers || d->a->witness == WITNESS_EXPECTATION) {
		f->beta.reference = high;
		f->beta.reference_kind = REFERENCE_EXPECTED;
		f->delta_ms_per_iteration =
			f->time_ms_per_iteration - high * d->job->iteration_ns / 1e6;
	}
	if (d->a->witness == WITNESS_PAST)
		compare_with_past(d);
	/* Where it shows: some of the accused may hide it. */
	if (d->a->witness == WITNESS_EXPECTATION)
		f->beta.value = fmax(f->beta.value, high + d->a->own_ns / d->job->iteration_ns);
	/* Slower in everything: what was lost is the only honest length. */
	if (draft_named_frame(d) == FRAME_NONE && d->a->witness == WITNESS_BLAME) {
		f->time_ms_per_iteration = f->delta_ms_per_iteration =
			d->a->gain_ns / (double)d->a->worker_cnt / 1e6;
		set_value(&f->beta, fmin(1, d->a->gain_ns / d->job->iteration_ns), 0);
	}
	/* Taking turns, each is its own peer: what counts is what they lost together. */
	if (d->a->rotates) {
		f->delta_ms_per_iteration = fmin(d->a->own_ns, d->a->gain_ns) / 1e6;
		f->time_ms_per_iteration =
			fmax(f->time_ms_per_iteration, f->delta_ms_per_iteration);
	}
	if (d->a->witness == WITNESS_USE)
		compare_with_usual(d);
	set_value(&f->mu, d->facts.mu, d->facts.mu_peers);
	set_value(&f->sigma, d->facts.sigma, d->facts.sigma_peers);
	f->expectation_distance = d->a->expectation_distance;
	f->differential_distance = d->a->differential_distance;
	f->threshold = d->a->threshold;
	f->gain_ms_per_iteration = (d->a->gain_ns - d->a->hidden_ns) / 1e6;
	f->gain_pct = 100 * (d->a->gain_ns - d->a->hidden_ns) /
		      job_iteration_of_ns(d->job, d->a->workers, d->a->worker_cnt);
	if (d->a->function != FRAME_NONE) {
		const struct fp_function *fn =
			d->job->functions.data[d->a->function].of[d->a->workers[0]];

		if (fn != NULL && fn->resource < RESOURCE_CNT)
			f->resource = resource_name((enum resource)fn->resource);
	}
}

static void set_distances(struct draft *d)
{
	struct fp_function probe = { .class = d->a->class,
				     .mu_frac = (double)NAN,
				     .sigma_frac = (double)NAN };

	if (d->a->witness != WITNESS_BLAME)
		return;
	probe.beta_frac = d->out->beta.value;
	d->out->expectation_distance = expect_distance(d->expect, &probe);
}

static void set_points(struct draft *d)
{
	struct finding *f = d->out;
	struct finding_point *points =
		arena_calloc(d->arena, d->job->worker_cnt + 1, sizeof(*points));

	d->no_memory |= points == NULL;
	if (points == NULL)
		return;
	for (size_t w = 0; w < d->job->worker_cnt; w++) {
		const struct fp_function *fn =
			d->a->function != FRAME_NONE ? d->job->functions.data[d->a->function].of[w]
						     : NULL;

		points[w] = (struct finding_point){
			.rank = d->job->workers[w].fp->rank,
			.accused = draft_accused(d, w),
			.beta_frac = place_beta(d, w),
			.mu_frac = fn != NULL ? fn->mu_frac : (double)NAN,
			.sigma_frac = fn != NULL ? fn->sigma_frac : (double)NAN,
			.time_ms = place_ms(d, w),
		};
	}
	f->points = points;
	f->point_cnt = d->job->worker_cnt;
}

/* Adds the function that those are in for whom it waits: of "collate > decode", decode. */
static void name_awaited(struct draft *d)
{
	static const char *const whose[AWAITED_BY_CNT] = {
		[AWAITED_LOADER] = "whose worker processes are",
		[AWAITED_THREAD] = "which waits for another thread",
		[AWAITED_CHILD] = "which waits for a child process",
	};
	const struct awaited *awaited = &d->facts.awaited;
	struct finding *f = d->out;
	const char *function;
	const char *coroutine = waits_coroutine(d->job, d->a);
	enum awaited_by by;
	size_t len;

	if (f->title != NULL && coroutine != NULL)
		f->title = arena_printf(d->arena, "%s, an event loop in which %s waits", f->title,
					coroutine);
	if (f->title == NULL || !draft_awaits(d, &by) || awaited->place == NULL ||
	    awaited->by != by)
		return;
	function = place_innermost(awaited->place, &len);
	f->title =
		arena_printf(d->arena, "%s, %s in %.*s", f->title, whose[by], (int)len, function);
	if (f->title != NULL && d->facts.awaited_rank >= 0)
		f->title = arena_printf(d->arena, "%s (rank %d)", f->title, d->facts.awaited_rank);
}

/* What helps depends on the ends of the copies: "Memcpy HtoD (Pageable -> Device)". */
static const char *copies_advice(const char *name)
{
	if (strstr(name, "Pageable") != NULL)
		return "Pin the host's memory (pin_memory=True in the DataLoader) and copy with "
		       "non_blocking=True: copies of pageable memory are slower, and the host "
		       "waits for them.";
	if (strstr(name, "HtoD") != NULL || strstr(name, "DtoH") != NULL)
		return "Keep what is used again on the GPU, copy less or in a smaller type, and "
		       "copy on a stream of its own (prefetch) while the GPU computes.";
	if (strstr(name, "DtoD") != NULL)
		return "Copy less within the GPU: no contiguous(), clone() or cat() of large "
		       "tensors in the step; write results in place.";
	return cause_text(CAUSE_COPIES)->advice;
}

static const char *advice_of(const struct draft *d)
{
	const struct finding *f = d->out;

	if (d->cause == CAUSE_COPIES)
		return copies_advice(f->name);
	if (d->cause == CAUSE_HOST_STALL && d->a->place_cnt > 0)
		return "Record Python stacks (torch.profiler: with_stack=True), which show the garbage "
		       "collections: gc.freeze() after start-up, and gc.collect() at the same step "
		       "on all ranks. Pauses without them come from a lack of CPUs.";
	return cause_advice(d->cause, f->all_workers && f->rank_cnt > 1, f->name);
}

/* What all that are here have is not known of those that are missing. */
static const char *all_words(const struct draft *d)
{
	return d->a->witness == WITNESS_USE &&
			       d->job->workers[0].fp->world_size > (int)d->job->worker_cnt
		       ? "all analyzed ranks"
		       : "all ranks";
}

static void set_words(struct draft *d)
{
	const struct cause_text *words = cause_text(d->cause);
	struct finding *f = d->out;

	f->id = words->number;
	f->cause = words->name;
	f->advice = advice_of(d);
	f->title = arena_printf(
		d->arena, "%s%s%s: %s%s %s",
		f->rank_cnt == 1 ? "rank "
		: f->all_workers ? all_words(d)
				 : "ranks ",
		f->all_workers && f->rank_cnt > 1 ? "" : draft_ranks_text(d, f->ranks, f->rank_cnt),
		d->a->rotates ? ", taking turns" : "", words->title,
		f->class == CLASS_IDLE && d->a->use.label == NULL ? "," : " in", f->name);
	/* The culprit is what holds the lock; where the victim stood is chance. */
	if (d->cause == CAUSE_GIL && f->title != NULL)
		f->title = arena_printf(d->arena, "rank%s %s: %s, held by another thread%s%s",
					plural(f->rank_cnt),
					draft_ranks_text(d, f->ranks, f->rank_cnt), words->title,
					draft_holder_known(d) ? " in " : "",
					draft_holder_known(d) ? d->facts.other_name : "");
	name_awaited(d);
	if (d->a->part_of_ns > 0 && f->title != NULL)
		f->title = arena_printf(d->arena, "%s, which explains %.1f of %.1f ms", f->title,
					d->a->gain_ns / 1e6, d->a->part_of_ns / 1e6);
	d->no_memory |= f->title == NULL;
	if (f->title == NULL)
		f->title = "";
}

int compose_finding(const struct job *job, const struct blame *blame, const struct accusation *a,
		    const struct expect_table *expect, struct arena *arena, struct finding *ret)
{
	struct finding out = { 0 };
	_cleanup_free_ double *scratch = calloc(job->worker_cnt + 1, sizeof(*scratch));
	_cleanup_free_ double *waited_ns = calloc(job->worker_cnt + 1, sizeof(*waited_ns));
	struct draft d = { .job = job,
			   .blame = blame,
			   .a = a,
			   .expect = expect,
			   .arena = arena,
			   .scratch = scratch,
			   .waited_ns = waited_ns,
			   .out = &out };

	d.evidence = arena_calloc(arena, MAX_EVIDENCE, sizeof(*d.evidence));
	if (scratch == NULL || waited_ns == NULL || d.evidence == NULL ||
	    cause_measure(job, a, &d.facts) < 0)
		return -ENOMEM;
	sum_waits(&d);
	d.cause = cause_find(job, a, &d.facts);
	set_name(&d);
	set_workers(&d);
	set_victims(&d);
	set_numbers(&d);
	set_distances(&d);
	set_points(&d);
	set_words(&d);
	evidence_add(&d);
	out.evidence = d.evidence;
	out.confidence = evidence_confidence(&d);
	if (d.no_memory)
		return -ENOMEM;
	*ret = out;
	return 0;
}
