/* SPDX-License-Identifier: Apache-2.0 */
#include "localize/compose.h"

#include "base/stats.h"
#include "base/str.h"
#include "model/rankset.h"
#include "model/thresholds.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define MAX_EVIDENCE 12

/* What is put together for one finding. */
struct draft {
	const struct job *job;
	const struct blame *blame;
	const struct accusation *a;
	const struct expect_table *expect;
	struct arena *arena;
	struct cause_facts facts;
	enum cause cause;
	double *scratch;
	double *waited_ns; /* by worker: for the accused */
	const char **evidence;
	struct finding *out;
	bool no_memory;
};

static const char *text(struct draft *d, const char *s)
{
	const char *copy = arena_strdup(d->arena, s);

	d->no_memory |= copy == NULL;
	return copy != NULL ? copy : "";
}

#define EVIDENCE(d, ...)                                                    \
	do {                                                                \
		const char *_line = arena_printf((d)->arena, __VA_ARGS__);  \
		(d)->no_memory |= _line == NULL;                            \
		if (_line != NULL && (d)->out->evidence_cnt < MAX_EVIDENCE) \
			(d)->evidence[(d)->out->evidence_cnt++] = _line;    \
	} while (0)

static bool accused(const struct draft *d, size_t w)
{
	return accusation_has(d->a, (uint32_t)w);
}

/* beta of the place on a worker: the whole subtree, host side and device side alike. */
static double place_beta(const struct draft *d, size_t w)
{
	const struct job_worker *jw = &d->job->workers[w];
	const struct job_function *f =
		d->a->function != FRAME_NONE ? &d->job->functions.data[d->a->function] : NULL;
	uint32_t frame = d->a->spread && f != NULL ? f->frame : d->a->frame;

	if (d->a->class == CLASS_COMM && f != NULL)
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
static double thread_ms(const struct draft *d, size_t w)
{
	if (d->a->spread || d->a->frame == FRAME_NONE ||
	    (d->a->class != CLASS_HOST && d->a->class != CLASS_IDLE))
		return 0;
	return job_thread_ns(d->job, d->a->frame, w) / 1e6;
}

typedef double (*measure)(const struct draft *d, size_t w);

static double median_of(struct draft *d, measure m, bool of_accused, bool *ret_any)
{
	size_t cnt = 0;

	for (size_t w = 0; w < d->job->worker_cnt; w++) {
		if (accused(d, w) == of_accused)
			d->scratch[cnt++] = m(d, w);
	}
	*ret_any = cnt > 0;
	return stats_median(d->scratch, cnt);
}

/* --- names --- */

static uint32_t named_frame(const struct draft *d)
{
	uint32_t main = d->a->function != FRAME_NONE ? d->job->functions.data[d->a->function].frame
						     : FRAME_NONE;

	/* Nothing stands for a slowdown of everything when nothing has much of it. */
	if (d->a->witness == WITNESS_BLAME && d->a->frame == FRAME_NONE &&
	    d->a->main_ns < SPREAD_NAMED_FRAC * d->a->own_ns)
		return FRAME_NONE;
	/* A region is named by what it mostly does; a place by itself. */
	return d->a->spread || d->a->frame == FRAME_NONE ? main : d->a->frame;
}

/* An empty place has no name of its own: "idle in CONTEXT, after A, before B". */
static const char *idle_name(struct draft *d, uint32_t frame)
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
	uint32_t frame = named_frame(d);
	char hex[33] = "00000000000000000000000000000000";
	const char **stack;
	size_t depth = 0;

	f->key = text(d, hex);
	f->name = "the whole iteration";
	f->class = d->a->class;
	if (frame == FRAME_NONE)
		return;
	(void)snprintf(hex, sizeof(hex), "%016llx%016llx",
		       (unsigned long long)d->job->frames.data[frame].key.hi,
		       (unsigned long long)d->job->frames.data[frame].key.lo);
	f->key = text(d, hex);
	f->name = d->a->class == CLASS_IDLE ? idle_name(d, frame)
					    : text(d, d->job->frames.data[frame].name);
	for (uint32_t i = frame; i != FRAME_NONE; i = d->job->frames.data[i].parent)
		depth++;
	stack = arena_calloc(d->arena, depth + 1, sizeof(*stack));
	d->no_memory |= stack == NULL;
	if (stack == NULL)
		return;
	f->stack_cnt = depth;
	for (uint32_t i = frame; i != FRAME_NONE; i = d->job->frames.data[i].parent)
		stack[--depth] = text(d, d->job->frames.data[i].name);
	f->stack = stack;
}

/* --- who --- */

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
			hosts[f->host_cnt++] = text(d, worker->fp->host);
		known[worker->host] = true;
	}
	f->ranks = ranks;
	f->hosts = hosts;
	f->all_workers = f->rank_cnt == d->job->worker_cnt;
}

/* Sums what each worker waited for the accused. */
static void sum_waits(struct draft *d)
{
	vec_foreach(wait, &d->blame->waits)
		d->waited_ns[wait->to] += accused(d, wait->from) ? wait->ns : 0;
}

/* Time per iteration a worker waited for the accused. */
static double waited_ms(const struct draft *d, size_t w)
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
		longest = fmax(longest, accused(d, w) ? 0 : waited_ms(d, w));
	for (size_t w = 0; w < d->job->worker_cnt; w++) {
		if (!accused(d, w) && waited_ms(d, w) > longest / 10)
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

/*
 * Of the two times of a place the one that tells more: a stall can hide behind the
 * device's work, and the peers' threads can stand in the same place because they wait.
 */
static void set_numbers(struct draft *d)
{
	struct finding *f = d->out;
	bool any, peers;
	double high = d->expect->of_class[d->a->class].beta[1];
	measure time = more_in(d, thread_ms) > more_in(d, place_ms) ? thread_ms : place_ms;

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
	/* Where it shows: some of the accused may hide it. */
	if (d->a->witness == WITNESS_EXPECTATION)
		f->beta.value = fmax(f->beta.value, high + d->a->own_ns / d->job->iteration_ns);
	/* Slower in everything: what was lost is the only honest length. */
	if (named_frame(d) == FRAME_NONE && d->a->witness == WITNESS_BLAME) {
		f->time_ms_per_iteration = f->delta_ms_per_iteration =
			d->a->gain_ns / (double)d->a->worker_cnt / 1e6;
		set_value(&f->beta, fmin(1, d->a->gain_ns / d->job->iteration_ns), 0);
	}
	/* Taking turns, each is its own peer: what counts is what they lost together. */
	if (d->a->rotates)
		f->delta_ms_per_iteration = fmin(d->a->own_ns, d->a->gain_ns) / 1e6;
	set_value(&f->mu, d->facts.mu, d->facts.mu_peers);
	set_value(&f->sigma, d->facts.sigma, d->facts.sigma_peers);
	f->expectation_distance = d->a->expectation_distance;
	f->differential_distance = d->a->differential_distance;
	f->threshold = d->a->threshold;
	f->gain_ms_per_iteration = (d->a->gain_ns - d->a->hidden_ns) / 1e6;
	f->gain_pct = 100 * (d->a->gain_ns - d->a->hidden_ns) / d->job->iteration_ns;
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
			.accused = accused(d, w),
			.beta_frac = place_beta(d, w),
			.mu_frac = fn != NULL ? fn->mu_frac : (double)NAN,
			.sigma_frac = fn != NULL ? fn->sigma_frac : (double)NAN,
			.time_ms = place_ms(d, w),
		};
	}
	f->points = points;
	f->point_cnt = d->job->worker_cnt;
}

/* --- evidence --- */

static const char *ranks_text(struct draft *d, const int *ranks, size_t cnt)
{
	struct str s = { 0 };
	const char *copy;

	rankset_format(&s, ranks, cnt);
	copy = text(d, str_borrow(&s));
	str_done(&s);
	return copy;
}

static void evidence_of_blame(struct draft *d)
{
	uint64_t last = 0, matched = 0, iterations = 0;
	double wait = 0, analyzed = 1;

	if (d->a->witness != WITNESS_BLAME)
		return;
	for (size_t i = 0; i < d->a->worker_cnt; i++) {
		const struct blame_worker *b = &d->blame->workers[d->a->workers[i]];

		last += b->last_cnt;
		iterations += b->late_iterations;
		matched = MAX(matched, b->matched_cnt);
		analyzed = fmax(analyzed, d->job->workers[d->a->workers[i]].iterations);
	}
	EVIDENCE(d, "arrived last at %llu of %llu collectives, in %llu of %.0f iterations%s",
		 (unsigned long long)last, (unsigned long long)matched,
		 (unsigned long long)MIN(iterations, (uint64_t)analyzed), analyzed,
		 d->a->rotates ? ", taking turns" : "");
	for (size_t w = 0; w < d->job->worker_cnt; w++)
		wait = fmax(wait, accused(d, w) && !d->a->rotates ? 0 : waited_ms(d, w));
	if (d->out->victim_cnt > 0)
		EVIDENCE(d, "made rank%s %s wait up to %.1f ms per iteration",
			 plural(d->out->victim_cnt),
			 ranks_text(d, d->out->victims, d->out->victim_cnt), wait);
}

static void evidence_of_place(struct draft *d)
{
	const struct finding *f = d->out;
	uint32_t main = d->a->function != FRAME_NONE ? d->job->functions.data[d->a->function].frame
						     : FRAME_NONE;

	if (named_frame(d) == FRAME_NONE && d->a->witness == WITNESS_BLAME) {
		EVIDENCE(
			d,
			"the extra time is spread over everything it does: no function has much of it");
		return;
	}
	if (d->a->place_cnt > 0)
		EVIDENCE(d,
			 "together they lost %.1f ms per iteration in %zu places that have nothing "
			 "to do with each other, most of it there",
			 d->a->own_ns / 1e6, d->a->place_cnt);
	else if (d->a->rotates)
		EVIDENCE(d, "together they lost %.1f ms per iteration there", d->a->own_ns / 1e6);
	else if (f->beta.reference_kind == REFERENCE_PEERS)
		EVIDENCE(d, "spends %.1f ms per iteration there, its peers %.1f ms",
			 f->time_ms_per_iteration,
			 f->time_ms_per_iteration - f->delta_ms_per_iteration);
	else
		EVIDENCE(d, "takes %.1f %% of the window; expected at most %.0f %%",
			 100 * f->beta.value, 100 * f->beta.reference);
	if (d->a->spread)
		EVIDENCE(d,
			 "the extra time is spread over many functions; this one has most of it");
	else if (main != FRAME_NONE && main != d->a->frame)
		EVIDENCE(d, "most of it in %s", d->job->frames.data[main].name);
}

static void evidence_of_gain(struct draft *d)
{
	if (d->a->hidden_ns >= GAIN_HIDDEN_FRAC * d->a->gain_ns && d->a->hidden_ns > 0)
		EVIDENCE(d,
			 "of %.1f ms that it loses per iteration repair alone gives back %.1f ms: "
			 "others arrive late too, or would wait anyway",
			 d->a->gain_ns / 1e6, d->out->gain_ms_per_iteration);
}

static double function_thread_ms(const struct draft *d, const struct job_function *f, size_t w)
{
	return f->of[w] != NULL ? (double)f->of[w]->thread_ns / d->job->workers[w].iterations / 1e6
				: 0;
}

/*
 * Other places where the thread stood about as long, and its peers did not: the
 * same fault can sit in the forward and in the backward pass, one of them hidden
 * behind the device's work.
 */
static void evidence_of_other_stalls(struct draft *d)
{
	double need = d->out->delta_ms_per_iteration / 2;

	if (d->a->witness != WITNESS_BLAME || d->a->spread || need <= 0 ||
	    thread_ms(d, d->a->workers[0]) <= 0)
		return;
	for (size_t i = 0; i < d->job->functions.cnt; i++) {
		const struct job_function *f = &d->job->functions.data[i];
		double mine = function_thread_ms(d, f, d->a->workers[0]), peers;
		size_t cnt = 0;

		if ((f->class != CLASS_HOST && f->class != CLASS_IDLE) || f->frame == FRAME_NONE ||
		    mine < need || job_frame_below(d->job, f->frame, d->a->frame))
			continue;
		for (size_t w = 0; w < d->job->worker_cnt; w++) {
			if (!accused(d, w))
				d->scratch[cnt++] = function_thread_ms(d, f, w);
		}
		peers = stats_median(d->scratch, cnt);
		if (cnt > 0 && mine - peers >= need)
			EVIDENCE(
				d,
				"also stands %.1f ms per iteration in %s (peers %.1f ms), hidden in part "
				"behind other work",
				mine,
				f->class == CLASS_IDLE ? idle_name(d, f->frame)
						       : d->job->frames.data[f->frame].name,
				peers);
	}
}

static void pressure_line(struct draft *d, const char *name, double frac)
{
	if (frac > HOST_PRESSURE_FRAC)
		EVIDENCE(d, "the host's %s pressure was %.0f %% (some)", name, 100 * frac);
}

/* Only beside a cause that it bears on: a busy host is no fault by itself. */
static void evidence_of_pressure(struct draft *d)
{
	double cpu = 0, io = 0, memory = 0;

	for (size_t i = 0; i < d->a->worker_cnt; i++) {
		const struct fp_host *h = &d->job->workers[d->a->workers[i]].fp->host_stats;

		cpu = fmax(cpu, h->psi_cpu_frac);
		io = fmax(io, h->psi_io_frac);
		memory = fmax(memory, h->psi_memory_frac);
	}
	if (d->cause == CAUSE_CPU_STARVED)
		pressure_line(d, "CPU", cpu);
	if (d->cause == CAUSE_SLOW_DATA || d->cause == CAUSE_HOST_STALL) {
		pressure_line(d, "I/O", io);
		pressure_line(d, "memory", memory);
	}
}

/* peers_ns NAN: all are accused, and there is nobody to compare with. */
static void per_iteration(struct draft *d, const char *what, double own_ns, double peers_ns)
{
	if (isnan(own_ns))
		return;
	if (isnan(peers_ns))
		EVIDENCE(d, "%s for %.1f ms per iteration", what, own_ns / 1e6);
	else
		EVIDENCE(d, "%s for %.1f ms per iteration (peers %.1f ms)", what, own_ns / 1e6,
			 peers_ns / 1e6);
}

/* A share and that of the peers; NAN: there are none to compare with. */
static void share_line(struct draft *d, const char *what, double frac, const char *of,
		       double peers_frac)
{
	if (isnan(peers_frac))
		EVIDENCE(d, "%s %.0f %% of %s", what, 100 * frac, of);
	else
		EVIDENCE(d, "%s %.0f %% of %s (peers %.0f %%)", what, 100 * frac, of,
			 100 * peers_frac);
}

/* What explains a slow GPU: a limit that slowed it down, a clock below that of its peers. */
static void evidence_of_gpu(struct draft *d)
{
	const struct cause_facts *f = &d->facts;
	double throttled = isnan(f->throttled_peers_frac) ? 0 : f->throttled_peers_frac;
	double clock = isnan(f->clock_peers_frac) ? 1 : f->clock_peers_frac;

	if (f->throttled_frac >= throttled + GPU_DIFFERENCE_FRAC)
		share_line(d, "a limit of power or heat slowed the GPU down for", f->throttled_frac,
			   "the window", f->throttled_peers_frac);
	if (f->clock_frac <= clock - GPU_DIFFERENCE_FRAC)
		share_line(d, "the GPU's cores ran at", f->clock_frac, "their highest clock",
			   f->clock_peers_frac);
}

static void evidence_of_host(struct draft *d)
{
	const struct cause_facts *f = &d->facts;

	if (d->cause == CAUSE_CPU_STARVED)
		per_iteration(d, "the training thread was runnable without a CPU", f->run_delay_ns,
			      f->run_delay_peers_ns);
	if (d->cause == CAUSE_CPU_STARVED && f->thief != NULL && f->thief[0] != '\0')
		EVIDENCE(d, "meanwhile %s", f->thief);
	if (d->cause == CAUSE_GIL || d->cause == CAUSE_HOST_STALL || d->cause == CAUSE_SLOW_DATA ||
	    d->cause == CAUSE_CPU_PYTHON)
		per_iteration(d, "the training thread used a CPU", f->cpu_ns, f->cpu_peers_ns);
	if (d->cause == CAUSE_GIL)
		EVIDENCE(d, "another thread of the process used %.1f ms of CPU per iteration in %s",
			 f->other_cpu_ns / 1e6, f->other_name);
	if (d->cause == CAUSE_GC && f->gc_ns > 0)
		EVIDENCE(d, "garbage collections took %.1f ms per iteration", f->gc_ns / 1e6);
	evidence_of_pressure(d);
	if (d->cause == CAUSE_SLOW_GPU || d->cause == CAUSE_SLOW_COPY ||
	    d->cause == CAUSE_DIFFERENCE)
		evidence_of_gpu(d);
	if (d->cause == CAUSE_IMBALANCE && !isnan(f->work_ratio))
		EVIDENCE(d,
			 "its computing functions processed %.2f times the elements of its peers",
			 f->work_ratio);
}

/* One iteration with many collectives, and always the same one late, is no chance. */
static bool always_last(const struct draft *d)
{
	const struct blame_worker *b = &d->blame->workers[d->a->workers[0]];

	return d->a->witness == WITNESS_BLAME && d->a->worker_cnt == 1 && b->matched_cnt >= 10 &&
	       (double)b->last_cnt >= 0.8 * (double)b->matched_cnt;
}

/* The share of a worker's samples whose stacks its recorder had no room for. */
static double unknown_frac(const struct draft *d, size_t w)
{
	const struct fingerprint *fp = d->job->workers[w].fp;
	double samples = (double)fp->window_ns / 1e9 * JOB_SAMPLE_HZ;

	return samples > 0 ? fmin(1, (double)fp->drops.flight_tables / samples) : 0;
}

/* The host's functions that are known may have the time of others that aren't. */
static bool host_is_unknown(const struct draft *d)
{
	bool unknown = false;

	if (d->a->class != CLASS_HOST && d->a->class != CLASS_IDLE)
		return false;
	for (size_t i = 0; i < d->a->worker_cnt; i++)
		unknown |= unknown_frac(d, d->a->workers[i]) > STACKS_UNKNOWN_FRAC;
	return unknown;
}

static void evidence_of_unknown(struct draft *d)
{
	if (host_is_unknown(d))
		EVIDENCE(d, "the recorder had no room for stacks of part of the window: what ran "
			    "then is not known");
}

/* How much may be believed: enough iterations, late in most of them, a real loss. */
static enum confidence confidence_of(const struct draft *d)
{
	double late = 0, analyzed = 1, cost_pct = 100 * d->a->gain_ns / d->job->iteration_ns;

	for (size_t i = 0; i < d->a->worker_cnt; i++) {
		late += (double)d->blame->workers[d->a->workers[i]].late_iterations;
		analyzed = fmax(analyzed, d->job->workers[d->a->workers[i]].iterations);
	}
	if (host_is_unknown(d))
		return CONFIDENCE_LOW;
	if (analyzed < 2)
		return always_last(d) ? CONFIDENCE_MEDIUM : CONFIDENCE_LOW;
	if (d->a->witness != WITNESS_BLAME) {
		bool many = d->job->worker_cnt >= 8 || d->a->worker_cnt == d->job->worker_cnt;

		return many && cost_pct >= 5 ? CONFIDENCE_HIGH : CONFIDENCE_MEDIUM;
	}
	if (analyzed >= 3 && late >= analyzed / 2 && cost_pct >= 3)
		return CONFIDENCE_HIGH;
	return cost_pct >= 3 || late >= analyzed / 2 ? CONFIDENCE_MEDIUM : CONFIDENCE_LOW;
}

static void set_words(struct draft *d)
{
	const struct cause_text *words = cause_text(d->cause);
	struct finding *f = d->out;

	f->id = words->number;
	f->cause = words->name;
	f->advice = words->advice;
	f->title = arena_printf(d->arena, "%s%s%s%s: %s%s %s",
				f->all_workers	  ? "all ranks"
				: f->rank_cnt > 1 ? "ranks "
						  : "rank ",
				f->all_workers ? "" : ranks_text(d, f->ranks, f->rank_cnt),
				f->all_workers && d->job->worker_cnt == 1 ? " (one)" : "",
				d->a->rotates ? ", taking turns" : "", words->title,
				f->class == CLASS_IDLE ? "," : " in", f->name);
	/* The culprit is what holds the lock; where the victim stood is chance. */
	if (d->cause == CAUSE_GIL && f->title != NULL)
		f->title = arena_printf(d->arena, "rank%s %s: %s, held by another thread in %s",
					plural(f->rank_cnt), ranks_text(d, f->ranks, f->rank_cnt),
					words->title, d->facts.other_name);
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
	evidence_of_blame(&d);
	evidence_of_place(&d);
	evidence_of_gain(&d);
	evidence_of_other_stalls(&d);
	evidence_of_host(&d);
	evidence_of_unknown(&d);
	out.evidence = d.evidence;
	out.confidence = confidence_of(&d);
	if (d.no_memory)
		return -ENOMEM;
	*ret = out;
	return 0;
}
