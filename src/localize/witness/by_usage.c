/* SPDX-License-Identifier: Apache-2.0 */
#include "localize/witness/by_usage.h"

#include "base/stats.h"
#include "base/text/number.h"
#include "model/thresholds.h"
#include "model/usage/gpucall.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define LINES_MAX 8
#define PART_ITERATIONS 64 /* of more, every second, third or so is looked at */
#define NAMES_SHOWN 3	   /* lines of totals */
#define NAMED_ALSO 0.2	   /* of the first: a second call is named beside it */

struct look {
	const struct job *job;
	const struct report *report;
	struct arena *arena;
	accusations *list;
	double *fracs;	 /* by worker: the share of the window that a sign holds */
	double *waiting; /* by worker: the share of the window that it waits for late ranks */
	const char **lines;
	size_t line_cnt;
	size_t last; /* worker that the others wait for, while their collectives spin */
	bool spins;  /* there is one, and its host is as fast as theirs */
	bool no_memory;
};

#define LINE(look, ...)                                                       \
	do {                                                                  \
		const char *_line = arena_printf((look)->arena, __VA_ARGS__); \
		(look)->no_memory |= _line == NULL;                           \
		if (_line != NULL && (look)->line_cnt < LINES_MAX)            \
			(look)->lines[(look)->line_cnt++] = _line;            \
	} while (0)

/* --- what a worker lost, as a share of its window --- */

static const struct report_use *use_of(const struct look *look, size_t w)
{
	return &look->report->workers[w].use;
}

/*
 * A part of iterations: the median, where there are some. A checkpoint or an evaluation, which
 * comes once in a window, is no property of the job.
 */
static double part_frac(const struct look *look, size_t w, size_t part_off, double window_frac)
{
	const struct fingerprint *fp = look->job->workers[w].fp;
	double fracs[PART_ITERATIONS];
	size_t step = 1 + fp->use_cnt / PART_ITERATIONS, cnt = 0;

	if (fp->use_cnt < USAGE_ITERATIONS)
		return window_frac;
	for (size_t i = 0; i < fp->use_cnt; i += step) {
		const char *at = (const char *)&fp->uses[i] + part_off;
		double of = (double)fp->iterations[i].dur_ns;

		fracs[cnt++] =
			of > 0 ? fmin(1, (double)*(const int64_t *)(const void *)at / of) : 0;
	}
	return fmin(window_frac, stats_median(fracs, cnt));
}

#define PART_FRAC(look, w, field, window_frac) \
	part_frac(look, w, offsetof(struct fp_iteration_use, field), window_frac)

static double copies_frac(const struct look *look, size_t w)
{
	return PART_FRAC(look, w, memory_alone_ns, use_of(look, w)->memory_alone_frac);
}

static double launches_frac(const struct look *look, size_t w)
{
	if (use_of(look, w)->blocking_frac < USAGE_BLOCKING_FRAC)
		return 0;
	return PART_FRAC(look, w, launch_loss_ns, use_of(look, w)->launch_loss_frac);
}

static double syncs_frac(const struct look *look, size_t w)
{
	/* Behind a single wait, the fault is what the host does then. */
	if (use_of(look, w)->syncs < USAGE_SYNCS_MIN)
		return 0;
	return PART_FRAC(look, w, sync_loss_ns, use_of(look, w)->sync_loss_frac);
}

static double starved_frac(const struct look *look, size_t w)
{
	return PART_FRAC(look, w, starved_ns, use_of(look, w)->starved_frac);
}

/* Share of the window of runtime calls of one or the other kind in which the GPU had no work. */
static double calls_frac(const struct fingerprint *fp, enum gpucall call)
{
	double ns = 0;

	for (size_t i = 0; i < fp->total_cnt; i++) {
		if (fp->totals[i].kind == KIND_RUNTIME && gpucall_of(fp->totals[i].name) == call)
			ns += (double)fp->totals[i].idle_ns;
	}
	return ns / (double)fp->window_ns;
}

/*
 * The first iteration fills the caches of allocators: it does not count where there are others,
 * and of several others two must be struck.
 */
static double alloc_frac(const struct look *look, size_t w)
{
	const struct fingerprint *fp = look->job->workers[w].fp;
	size_t first = fp->use_cnt > 1 ? 1 : 0, struck = 0;
	double alloc_ns = 0, all_ns = 0;

	if (fp->use_cnt == 0)
		return calls_frac(fp, GPUCALL_ALLOCATE) + calls_frac(fp, GPUCALL_PIN);
	for (size_t i = first; i < fp->use_cnt; i++) {
		double ns = (double)fp->uses[i].alloc_ns, of = (double)fp->iterations[i].dur_ns;

		struck += ns >= USAGE_ALLOC_FRAC * of;
		alloc_ns += ns;
		all_ns += of;
	}
	return struck >= MIN(fp->use_cnt - first, (size_t)2) && all_ns > 0 ? alloc_ns / all_ns : 0;
}

static bool mostly_pins(const struct look *look, size_t w)
{
	const struct fingerprint *fp = look->job->workers[w].fp;

	return calls_frac(fp, GPUCALL_PIN) > calls_frac(fp, GPUCALL_ALLOCATE);
}

static double device_alloc_frac(const struct look *look, size_t w)
{
	return mostly_pins(look, w) ? 0 : alloc_frac(look, w);
}

static double pin_frac(const struct look *look, size_t w)
{
	return mostly_pins(look, w) ? alloc_frac(look, w) : 0;
}

/* --- signs --- */

static bool is_copy(const struct report_total *t)
{
	return t->kind == KIND_GPU_MEMOP;
}

static bool is_call(const struct report_total *t, enum gpucall call)
{
	return t->kind == KIND_RUNTIME && gpucall_of(t->name) == call;
}

static bool is_allocation(const struct report_total *t)
{
	return is_call(t, GPUCALL_ALLOCATE);
}

static bool is_pin(const struct report_total *t)
{
	return is_call(t, GPUCALL_PIN);
}

static bool is_launch(const struct report_total *t)
{
	return is_call(t, GPUCALL_LAUNCH);
}

static bool is_wait(const struct report_total *t)
{
	return is_call(t, GPUCALL_WAIT);
}

static const struct sign_rule {
	enum usage_sign sign;
	double least_frac; /* of the window, on the typical worker */
	double usual_frac; /* a healthy job has no more */
	double (*frac)(const struct look *look, size_t w);
	bool (*names)(const struct report_total *t); /* totals that name it; NULL: none */
	enum event_class class;
} rules[] = {
	{ USAGE_COPIES, USAGE_COPIES_FRAC, USAGE_COPIES_FRAC, copies_frac, is_copy, CLASS_MEMORY },
	{ USAGE_ALLOCATIONS, USAGE_ALLOC_FRAC, USAGE_ALLOC_FRAC, device_alloc_frac, is_allocation,
	  CLASS_MEMORY },
	{ USAGE_PINNING, USAGE_ALLOC_FRAC, USAGE_ALLOC_FRAC, pin_frac, is_pin, CLASS_MEMORY },
	{ USAGE_LAUNCHES, USAGE_SYNC_FRAC, USAGE_SYNC_FRAC, launches_frac, is_launch, CLASS_HOST },
	{ USAGE_SYNCS, USAGE_SYNC_FRAC, USAGE_SYNC_FRAC, syncs_frac, is_wait, CLASS_HOST },
	{ USAGE_STARVED, USAGE_STARVED_FRAC, NOTE_HOST_FRAC, starved_frac, NULL, CLASS_HOST },
};

/* The total with most time of those that name a sign, and the next one of them; NULL: none. */
static const struct report_total *next_total(const struct look *look, const struct sign_rule *rule,
					     const struct report_total *after)
{
	const struct report_total *t = after == NULL ? look->report->totals : after + 1;

	for (; t < look->report->totals + look->report->total_cnt && rule->names != NULL; t++) {
		if (rule->names(t))
			return t;
	}
	return NULL;
}

/* "cudaFree, cudaMalloc": the call or copy with most time, and the next if it has much, too. */
static const char *label_of(struct look *look, const struct sign_rule *rule)
{
	const struct report_total *first = next_total(look, rule, NULL), *second;
	const char *label;

	if (first == NULL)
		return rule->sign == USAGE_STARVED ? "the host's work between launches"
						   : "the whole iteration";
	second = next_total(look, rule, first);
	label = second != NULL && second->ms >= NAMED_ALSO * first->ms
			? arena_printf(look->arena, "%s, %s", first->name, second->name)
			: arena_strdup(look->arena, first->name);
	look->no_memory |= label == NULL;
	return label != NULL ? label : "";
}

/* The job's function with most time of those with this name; FRAME_NONE: it is not listed. */
static uint32_t function_of(const struct look *look, const char *name)
{
	const struct job *job = look->job;
	uint32_t found = FRAME_NONE;
	double most = 0;

	for (uint32_t i = 0; i < job->functions.cnt; i++) {
		const struct job_function *f = &job->functions.data[i];
		double ns = 0;

		if (f->frame == FRAME_NONE || strcmp(job->frames.data[f->frame].name, name) != 0)
			continue;
		for (size_t w = 0; w < job->worker_cnt; w++)
			ns += f->of[w] != NULL ? (double)(f->of[w]->share_ns + f->of[w]->thread_ns)
					       : 0;
		if (ns > most) {
			most = ns;
			found = i;
		}
	}
	return found;
}

/* --- evidence --- */

static double median_use(const struct look *look, double (*of)(const struct report_use *use))
{
	size_t cnt = 0;

	for (size_t w = 0; w < look->job->worker_cnt; w++) {
		double value = of(use_of(look, w));

		if (!isnan(value))
			look->fracs[cnt++] = value;
	}
	return cnt > 0 ? stats_median(look->fracs, cnt) : (double)NAN;
}

static double use_busy(const struct report_use *use)
{
	return use->busy_frac;
}

static double use_starved(const struct report_use *use)
{
	return use->starved_frac;
}

static double use_kernels(const struct report_use *use)
{
	return use->kernels;
}

static double use_short(const struct report_use *use)
{
	return use->short_frac;
}

static double use_delay(const struct report_use *use)
{
	return use->launch_delay_us;
}

/* "12 times per iteration, 31.2 ms in all, at 12.3 GB/s" */
static void total_lines(struct look *look, const struct sign_rule *rule)
{
	const struct report_total *t = NULL;

	for (int i = 0; i < NAMES_SHOWN && (t = next_total(look, rule, t)) != NULL; i++) {
		if (i > 0 && t->ms < NAMED_ALSO * next_total(look, rule, NULL)->ms)
			break;
		if (isfinite(t->gbytes_per_s))
			LINE(look, "%s: %s times per iteration, %s ms in all, at %s GB/s", t->name,
			     number_text(t->cnt).text, number_text(t->ms).text,
			     number_text(t->gbytes_per_s).text);
		else if (t->kind == KIND_RUNTIME)
			LINE(look,
			     "%s: %s calls per iteration, %s ms in all; the GPU had no work for "
			     "%s ms of them",
			     t->name, number_text(t->cnt).text, number_text(t->ms).text,
			     number_text(t->idle_ms).text);
		else
			LINE(look, "%s: %s times per iteration, %s ms in all", t->name,
			     number_text(t->cnt).text, number_text(t->ms).text);
	}
}

static void launcher_line(struct look *look, uint32_t function)
{
	const struct job_function *f =
		function != FRAME_NONE ? &look->job->functions.data[function] : NULL;

	for (size_t w = 0; w < look->job->worker_cnt && f != NULL; w++) {
		if (f->of[w] == NULL || f->of[w]->launched_by == NULL)
			continue;
		LINE(look, "most of it launched by %s", f->of[w]->launched_by);
		return;
	}
}

static void starved_lines(struct look *look, bool *ret_unsure)
{
	double delay_us = median_use(look, use_delay);
	bool stacks = false;

	for (size_t w = 0; w < look->job->worker_cnt; w++)
		stacks |= look->job->workers[w].fp->has_stacks;
	*ret_unsure = stacks;
	LINE(look,
	     "GPUs have no work for %.0f %% of the window, and for %.0f %% of it the host had "
	     "launched none",
	     100 * (1 - median_use(look, use_busy)), 100 * median_use(look, use_starved));
	LINE(look, "%.0f kernels per iteration, %.0f %% of them shorter than 10 us",
	     median_use(look, use_kernels), 100 * median_use(look, use_short));
	if (delay_us > 0)
		LINE(look, "a kernel begins %s us after its launch (median)",
		     number_text(delay_us).text);
	if (stacks)
		LINE(look, "the profiler recorded Python stacks, which makes the host slower than "
			   "it is without");
	if (look->spins)
		LINE(look,
		     "GPUs only wait in collectives meanwhile: that of rank %d, for which they wait, "
		     "has no work for %.0f %% of the window, though its host is as fast as theirs",
		     look->job->workers[look->last].fp->rank,
		     100 * use_of(look, look->last)->starved_frac);
	else
		LINE(look,
		     "the work of the GPUs takes %s ms per iteration: no repair of the host saves "
		     "more than the rest",
		     number_text(median_use(look, use_busy) * look->job->iteration_ns / 1e6).text);
}

/* --- accusations --- */

/*
 * What other accusations explain of an iteration, in ns. Where a GPU communicates it has work: that explains
 * nothing of the time in which it has none.
 */
static double explained_ns(const struct look *look, const struct sign_rule *rule)
{
	double ns = 0;

	vec_foreach(a, look->list) {
		bool comm = rule->sign == USAGE_STARVED && a->class == CLASS_COMM &&
			    a->witness == WITNESS_EXPECTATION;

		ns += a->usual || comm ? 0 : a->gain_ns;
	}
	return ns;
}

static bool is_caller(const struct look *look, const struct accusation *a,
		      const struct accusation *new)
{
	return a->witness == WITNESS_EXPECTATION && a->frame != FRAME_NONE &&
	       new->frame != FRAME_NONE &&job_frame_below(look->job, new->frame, a->frame);
}

/*
 * A function that is accused because of the calls that it makes: the calls are the fault. Returns
 * whether they are accused already.
 */
static bool settle_callers(struct look *look, const struct accusation *new)
{
	size_t kept = 0;

	vec_foreach(a, look->list) {
		if (is_caller(look, a, new) && new->gain_ns < USAGE_OF_CALLER * a->gain_ns)
			return true;
	}
	for (size_t i = 0; i < look->list->cnt; i++) {
		struct accusation a = look->list->data[i];

		if (!is_caller(look, &a, new))
			look->list->data[kept++] = a;
	}
	look->list->cnt = kept;
	return false;
}

static int accuse(struct look *look, const struct sign_rule *rule, uint32_t *workers, size_t cnt,
		  double own_ns)
{
	const struct report_total *first = next_total(look, rule, NULL);
	struct accusation a = {
		.witness = WITNESS_USE,
		.use = { .sign = rule->sign,
			 .usual_ns = rule->usual_frac * look->job->iteration_ns },
		.workers = workers,
		.worker_cnt = cnt,
		.frame = FRAME_NONE,
		.function = first != NULL ? function_of(look, first->name) : FRAME_NONE,
		.class = rule->class,
		.own_ns = own_ns,
		.gain_ns = own_ns,
	};

	if (a.function != FRAME_NONE)
		a.frame = look->job->functions.data[a.function].frame;
	if (settle_callers(look, &a))
		return 0;
	look->lines = arena_calloc(look->arena, LINES_MAX, sizeof(*look->lines));
	if (look->lines == NULL)
		return -ENOMEM;
	look->line_cnt = 0;
	a.use.label = label_of(look, rule);
	if (rule->sign == USAGE_STARVED)
		starved_lines(look, &a.unsure);
	total_lines(look, rule);
	launcher_line(look, a.function);
	a.use.lines = look->lines;
	a.use.line_cnt = look->line_cnt;
	return look->no_memory ? -ENOMEM : vec_push(look->list, a);
}

/* What the worker's threads do on the host, without calls that wait for the device; per iteration. */
static double host_ns(const struct job *job, size_t w)
{
	double sum = 0;

	vec_foreach(f, &job->functions) {
		const char *name = f->frame != FRAME_NONE ? job->frames.data[f->frame].name : "";

		if (f->of[w] != NULL && f->class == CLASS_HOST && gpucall_of(name) != GPUCALL_WAIT)
			sum += (double)f->of[w]->thread_ns;
	}
	return sum / job->workers[w].iterations;
}

/* Whether a rank is late for a reason that is known. */
static bool blames(const struct look *look)
{
	vec_foreach(a, look->list) {
		if (a->witness == WITNESS_BLAME && !a->usual)
			return true;
	}
	return false;
}

/*
 * Whether the device of the rank that all others wait for has no work, though its host has no more to
 * do than theirs: collectives on the other devices spin meanwhile, and by turns any host is the last.
 */
static bool are_alike_slow(struct look *look, const struct sign_rule *rule)
{
	size_t cnt = look->job->worker_cnt, most = 0;
	double usual;

	if (rule->sign != USAGE_STARVED || cnt < 2 || blames(look))
		return false;
	for (size_t w = 0; w < cnt; w++) {
		double frac = use_of(look, w)->known ? rule->frac(look, w) : 0;

		if (frac + look->waiting[w] < rule->least_frac)
			return false;
		if (frac > rule->frac(look, most))
			most = w;
		look->fracs[w] = host_ns(look->job, w);
	}
	usual = stats_median(look->fracs, cnt);
	look->last = most;
	return rule->frac(look, most) >= rule->least_frac && usual > 0 &&
	       host_ns(look->job, most) <= USAGE_HOST_ALIKE * usual &&
	       usual >= rule->least_frac * look->job->iteration_ns;
}

/* From which share of the window on the sign is a fault: for hosts, of the part without communication. */
static double least_frac(const struct look *look, const struct sign_rule *rule, size_t w)
{
	double rest = 1 - use_of(look, w)->comm_alone_frac;

	return rule->sign == USAGE_STARVED
		       ? fmin(rule->least_frac, fmax(NOTE_HOST_FRAC, rule->least_frac * rest))
		       : rule->least_frac;
}

/*
 * A rank whose host was a little faster waits in a collective for those of the others, and its device
 * is at work then: it has as little to do.
 */
static bool is_struck(const struct look *look, const struct sign_rule *rule, size_t w, double frac)
{
	return frac >= least_frac(look, rule, w) ||
	       (rule->sign == USAGE_STARVED && frac >= USAGE_STARVED_SELF * rule->least_frac &&
		frac + look->waiting[w] >= rule->least_frac);
}

/* Workers that the sign holds of, and look->fracs. Returns how many. */
static size_t list_struck(struct look *look, const struct sign_rule *rule, uint32_t *workers)
{
	size_t cnt = 0;

	for (uint32_t w = 0; w < look->job->worker_cnt; w++) {
		double frac = use_of(look, w)->known ? rule->frac(look, w) : 0;

		if (!look->spins && !is_struck(look, rule, w, frac))
			continue;
		look->fracs[cnt] = look->spins ? fmin(1, frac + look->waiting[w]) : frac;
		workers[cnt++] = w;
	}
	return cnt;
}

static int try_rule(struct look *look, const struct sign_rule *rule)
{
	size_t cnt = look->job->worker_cnt, above;
	uint32_t *workers = arena_calloc(look->arena, cnt + 1, sizeof(*workers));
	bool rest = rule->sign == USAGE_STARVED || rule->sign == USAGE_SYNCS;
	double own_ns, explained = rest ? explained_ns(look, rule) : 0;

	if (workers == NULL)
		return -ENOMEM;
	look->spins = false;
	above = list_struck(look, rule, workers);
	if ((double)above < EXPECT_ALL_FRAC * (double)cnt && are_alike_slow(look, rule)) {
		look->spins = true;
		above = list_struck(look, rule, workers);
	}
	if (above == 0 || (double)above < EXPECT_ALL_FRAC * (double)cnt)
		return 0;
	own_ns = stats_median(look->fracs, above) * look->job->iteration_ns - explained;
	for (size_t i = 0; i < above; i++)
		look->fracs[i] = least_frac(look, rule, workers[i]);
	if (own_ns < stats_median(look->fracs, above) * look->job->iteration_ns)
		return 0;
	return accuse(look, rule, workers, above, own_ns);
}

/* By worker, how long it waits for late ranks: a share of its window. */
static void find_waiting(const struct look *look, const struct blame *blame)
{
	const struct job *job = look->job;

	for (size_t w = 0; w < job->worker_cnt; w++)
		look->fracs[w] = 1; /* each late rank counts */
	blame_sum_waits(blame, look->fracs, look->waiting);
	for (size_t w = 0; w < job->worker_cnt; w++)
		look->waiting[w] /= (double)MAX(job->workers[w].fp->window_ns, 1);
}

int accuse_by_usage(const struct job *job, const struct blame *blame, const struct report *report,
		    struct arena *arena, accusations *list)
{
	_cleanup_free_ double *fracs = calloc(job->worker_cnt + 1, sizeof(*fracs));
	_cleanup_free_ double *waiting = calloc(job->worker_cnt + 1, sizeof(*waiting));
	struct look look = { .job = job,
			     .report = report,
			     .arena = arena,
			     .list = list,
			     .fracs = fracs,
			     .waiting = waiting };
	int error = fracs != NULL && waiting != NULL ? 0 : -ENOMEM;

	if (error == 0)
		find_waiting(&look, blame);
	for (size_t i = 0; i < ARRAY_SIZE(rules) && error == 0; i++)
		error = try_rule(&look, &rules[i]);
	return error;
}

bool by_usage_says_starved(const accusations *list)
{
	vec_foreach(a, list) {
		if (a->use.sign == USAGE_STARVED)
			return true;
	}
	return false;
}
