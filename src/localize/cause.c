/* SPDX-License-Identifier: Apache-2.0 */
#include "localize/cause.h"

#include "base/stats.h"
#include "localize/late/work.h"
#include "localize/usercode.h"
#include "localize/waits/waits.h"
#include "localize/witness/gil.h"
#include "model/place/place.h"
#include "model/thresholds.h"
#include "model/usage/gpucall.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CAUSE_NEW_FACTOR 5.0
#define MAX_ACCUSED 33 /* compared with their peers; the median of so many is as good */

const struct cause_text *cause_text(enum cause cause)
{
	static const struct cause_text texts[CAUSE_CNT] = {
#define X(id, number, name, title, advice) { number, name, title, advice },
		CAUSE_LIST(X)
#undef X
	};

	return &texts[cause < CAUSE_CNT ? cause : CAUSE_DIFFERENCE];
}

/* --- facts --- */

typedef double (*fact_of)(const struct job *job, size_t w, const struct accusation *a);

static double per_iteration(const struct job *job, size_t w, double frac)
{
	if (frac < 0)
		return (double)NAN;
	return frac * (double)job->workers[w].fp->window_ns / job->workers[w].iterations;
}

static double fact_run_delay(const struct job *job, size_t w, _unused_ const struct accusation *a)
{
	return per_iteration(job, w, job->workers[w].fp->host_stats.run_delay_frac);
}

static double fact_cpu(const struct job *job, size_t w, _unused_ const struct accusation *a)
{
	return per_iteration(job, w, job->workers[w].fp->host_stats.cpu_frac);
}

static double fact_other_cpu(const struct job *job, size_t w, _unused_ const struct accusation *a)
{
	return per_iteration(job, w, job->workers[w].fp->host_stats.other_cpu_frac);
}

static double fact_gc(const struct job *job, size_t w, _unused_ const struct accusation *a)
{
	return (double)job->workers[w].fp->host_stats.gc_ns / job->workers[w].iterations;
}

static double fact_throttled(const struct job *job, size_t w, _unused_ const struct accusation *a)
{
	double frac = job->workers[w].fp->host_stats.gpu_throttled_frac;

	return frac >= 0 ? frac : (double)NAN;
}

static double fact_clock(const struct job *job, size_t w, _unused_ const struct accusation *a)
{
	double frac = job->workers[w].fp->host_stats.gpu_clock_frac;

	return frac >= 0 ? frac : (double)NAN;
}

static const struct fp_function *main_of(const struct job *job, size_t w,
					 const struct accusation *a)
{
	return a->function != FRAME_NONE ? job->functions.data[a->function].of[w] : NULL;
}

static double fact_mu(const struct job *job, size_t w, const struct accusation *a)
{
	const struct fp_function *f = main_of(job, w, a);

	return f != NULL ? f->mu_frac : (double)NAN;
}

static double fact_sigma(const struct job *job, size_t w, const struct accusation *a)
{
	const struct fp_function *f = main_of(job, w, a);

	return f != NULL ? f->sigma_frac : (double)NAN;
}

static double median_fact(const struct job *job, const struct accusation *a, fact_of fact,
			  bool accused, double *scratch)
{
	size_t cnt = 0;

	for (size_t w = 0; w < job->worker_cnt; w++) {
		double value;

		if (accusation_has(a, w) != accused)
			continue;
		value = fact(job, w, a);
		if (!isnan(value))
			scratch[cnt++] = value;
	}
	return cnt > 0 ? stats_median(scratch, cnt) : (double)NAN;
}

typedef double (*work_ratio)(const struct job *job, size_t a, size_t b);

static bool is_peer(const struct job *job, uint32_t w, size_t other, bool same_work)
{
	return same_work ? work_is_same(job, other, w)
			 : job->workers[other].group == job->workers[w].group;
}

/* Of worker w to the typical peer that is not accused; NAN: none, or nothing known of them. */
static double to_some(const struct job *job, const struct accusation *a, uint32_t w,
		      work_ratio ratio, bool same_work, double *scratch)
{
	size_t cnt = 0;

	for (size_t i = 0; i < job->worker_cnt; i++) {
		if (accusation_has(a, i) || !is_peer(job, w, i, same_work))
			continue;
		scratch[cnt] = ratio(job, w, i);
		cnt += !isnan(scratch[cnt]);
	}
	return cnt > 0 ? stats_median(scratch, cnt) : (double)NAN;
}

/* To those with the same to do; where it has more than all others, to all peers. */
static double to_peers(const struct job *job, const struct accusation *a, uint32_t w,
		       work_ratio ratio, double *scratch)
{
	double same = to_some(job, a, w, ratio, true, scratch);

	return isnan(same) ? to_some(job, a, w, ratio, false, scratch) : same;
}

/* The same of the typical accused. Stages of a pipeline differ: each has peers of its own. */
static double ratio_to_peers(const struct job *job, const struct accusation *a, work_ratio ratio_of,
			     double *scratch, double *ratios)
{
	size_t cnt = 0;

	for (size_t i = 0; i < a->worker_cnt; i += 1 + a->worker_cnt / MAX_ACCUSED) {
		double ratio = to_peers(job, a, a->workers[i], ratio_of, scratch);

		if (!isnan(ratio))
			ratios[cnt++] = ratio;
	}
	return cnt > 0 ? stats_median(ratios, cnt) : (double)NAN;
}

static bool same_function(const struct awaited *a, const struct awaited *b)
{
	size_t a_len, b_len;
	const char *x = place_innermost(a->place, &a_len), *y = place_innermost(b->place, &b_len);

	return a->by == b->by && a_len == b_len && memcmp(x, y, a_len) == 0;
}

/* The longest stay in one place of those that the accused wait for. */
static void find_awaited(const struct job *job, const struct accusation *a, struct cause_facts *ret)
{
	struct awaited awaited;
	int rank = -1;

	ret->awaited_rank = -1;
	for (size_t i = 0; i < a->worker_cnt; i++) {
		const struct fingerprint *fp = job->workers[a->workers[i]].fp;

		if (fp->host_stats.awaited != NULL &&
		    awaited_read(fp->host_stats.awaited, &awaited) &&
		    awaited.frac > ret->awaited.frac) {
			ret->awaited = awaited;
			rank = fp->rank;
		}
	}
	for (size_t i = 0; i < a->worker_cnt && rank >= 0; i++) {
		const char *text = job->workers[a->workers[i]].fp->host_stats.awaited;

		if (text != NULL && awaited_read(text, &awaited) &&
		    !same_function(&awaited, &ret->awaited))
			ret->awaited_rank = rank;
	}
}

int cause_measure(const struct job *job, const struct accusation *a, struct cause_facts *ret)
{
	_cleanup_free_ double *scratch = calloc(job->worker_cnt + 1, sizeof(*scratch));
	_cleanup_free_ double *ratios = calloc(job->worker_cnt + 1, sizeof(*ratios));
	double other_cpu = -1;

	if (scratch == NULL || ratios == NULL)
		return -ENOMEM;
	*ret = (struct cause_facts){
		.run_delay_ns = median_fact(job, a, fact_run_delay, true, scratch),
		.run_delay_peers_ns = median_fact(job, a, fact_run_delay, false, scratch),
		.cpu_ns = median_fact(job, a, fact_cpu, true, scratch),
		.cpu_peers_ns = median_fact(job, a, fact_cpu, false, scratch),
		.other_cpu_ns = median_fact(job, a, fact_other_cpu, true, scratch),
		.other_cpu_peers_ns = median_fact(job, a, fact_other_cpu, false, scratch),
		.gc_ns = median_fact(job, a, fact_gc, true, scratch),
		.gc_peers_ns = median_fact(job, a, fact_gc, false, scratch),
		.throttled_frac = median_fact(job, a, fact_throttled, true, scratch),
		.throttled_peers_frac = median_fact(job, a, fact_throttled, false, scratch),
		.clock_frac = median_fact(job, a, fact_clock, true, scratch),
		.clock_peers_frac = median_fact(job, a, fact_clock, false, scratch),
		.mu = median_fact(job, a, fact_mu, true, scratch),
		.mu_peers = median_fact(job, a, fact_mu, false, scratch),
		.sigma = median_fact(job, a, fact_sigma, true, scratch),
		.sigma_peers = median_fact(job, a, fact_sigma, false, scratch),
		.work_ratio = ratio_to_peers(job, a, work_elements_ratio, scratch, ratios),
		.compute_ratio = ratio_to_peers(job, a, work_compute_ratio, scratch, ratios),
	};
	ret->extra_ns = usercode_extra_ns(job, a, scratch);
	find_awaited(job, a, ret);
	for (size_t i = 0; i < a->worker_cnt; i++) {
		const struct fp_host *h = &job->workers[a->workers[i]].fp->host_stats;

		if (h->thief_frac > ret->thief_frac) {
			ret->thief_frac = h->thief_frac;
			ret->thief = h->thief;
		}
		if (h->other_cpu_frac > other_cpu) {
			other_cpu = h->other_cpu_frac;
			ret->other_name = h->other_name;
		}
	}
	return 0;
}

/* --- patterns --- */

/* The name of an idle stretch is made of what ran before and after it, and is no place. */
static bool path_has(const struct job *job, uint32_t frame, const char *const *words, size_t cnt)
{
	for (; frame != FRAME_NONE; frame = job->frames.data[frame].parent) {
		for (size_t i = 0; i < cnt && job->frames.data[frame].kind != KIND_OTHER; i++) {
			if (strstr(job->frames.data[frame].name, words[i]) != NULL)
				return true;
		}
	}
	return false;
}

static bool is_gc(const struct job *job, const struct accusation *a)
{
	uint32_t frame = waits_frame(a, job);

	/* What a collection frees is below it. */
	while (frame != FRAME_NONE && frame != a->frame && !job_frame_collects(job, frame))
		frame = job->frames.data[frame].parent;
	return frame != FRAME_NONE && !a->spread && job_frame_collects(job, frame);
}

static bool is_data_loading(const struct job *job, const struct accusation *a)
{
	static const char *const words[] = {
		"enumerate(DataLoader)", "dataloader.py", "recv_into",	   "dataset.__getitem__",
		"data/datapipes",	 "_next_data",	  "wait_for_batch"
	};

	return !a->spread && path_has(job, waits_frame(a, job), words, ARRAY_SIZE(words));
}

/* Whether the place is a call of this kind or inside one. */
static bool is_in_call(const struct job *job, const struct accusation *a, enum gpucall call)
{
	uint32_t frame = waits_frame(a, job);

	while (frame != FRAME_NONE && gpucall_of(job->frames.data[frame].name) != call)
		frame = job->frames.data[frame].parent;
	return frame != FRAME_NONE && !a->spread;
}

static bool is_pinned_allocation(const struct job *job, const struct accusation *a)
{
	static const char *const words[] = { "pin_memory" };

	return is_in_call(job, a, GPUCALL_PIN) ||
	       (!a->spread && path_has(job, waits_frame(a, job), words, ARRAY_SIZE(words)));
}

/* value - peers explains at least half of the lost time. */
static bool explains(double value, double peers, const struct accusation *a)
{
	double per_worker = a->own_ns / (double)(a->worker_cnt > 0 ? a->worker_cnt : 1);
	double more = value - (isnan(peers) ? 0 : peers);

	/* Nothing explains nothing: without the first test 0 would explain a loss of 0. */
	return more > 0 && more >= CAUSE_EXPLAINS * per_worker;
}

/* Another thread computes while the training thread neither computes nor lacks a CPU. */
static bool is_gil(const struct accusation *a, const struct cause_facts *f)
{
	if (f->other_name == NULL || f->other_name[0] == '\0')
		return false;
	return explains(f->other_cpu_ns, f->other_cpu_peers_ns, a) &&
	       !explains(f->cpu_ns, f->cpu_peers_ns, a);
}

/* The samples saw it wait. */
static bool waits_for_gil(const struct job *job, const struct accusation *a)
{
	uint32_t frame = waits_frame(a, job);

	return frame != FRAME_NONE && !a->spread && gil_is_wait(&job->frames.data[frame]);
}

/* Whether most of the others that run the accused's function run it over NVLink. */
static bool others_use_nvlink(const struct job *job, const struct accusation *a)
{
	size_t nvlink = 0, cnt = 0, accused = 0;

	for (uint32_t w = 0; w < job->worker_cnt; w++) {
		const struct fp_function *f = main_of(job, w, a);

		while (accused < a->worker_cnt && a->workers[accused] < w)
			accused++;
		if (f == NULL || (accused < a->worker_cnt && a->workers[accused] == w))
			continue;
		nvlink += f->resource == RESOURCE_NVLINK_TX;
		cnt++;
	}
	return 2 * nvlink > cnt;
}

static enum cause cause_of_comm(const struct job *job, const struct accusation *a,
				const struct cause_facts *f)
{
	const struct fp_function *main = a->worker_cnt > 0 ? main_of(job, a->workers[0], a) : NULL;

	if (a->witness == WITNESS_EXPECTATION || isnan(f->mu))
		return CAUSE_SLOW_COLLECTIVE;
	/* Figure 13: more traffic on PCIe than the rest of the slow group. */
	if (main != NULL && main->resource == RESOURCE_PCIE_TX &&
	    (f->mu > f->mu_peers || others_use_nvlink(job, a)))
		return CAUSE_NVLINK;
	/* More of the network than its peers is no fault of a link. */
	if (f->mu > f->mu_peers)
		return CAUSE_SLOW_COLLECTIVE;
	return CAUSE_SLOW_LINK;
}

/* Share of time in which the thread would have computed, had it got a CPU. */
static double wanted_cpu(const struct job *job, const struct cause_facts *f)
{
	return isnan(f->run_delay_ns) ? 0 : f->run_delay_ns / job->iteration_ns;
}

/*
 * It was on a CPU for less of its time there than it waited for one, and computed no more than its
 * peers, which lack CPUs as well: the frame is only where the scheduler took the CPU away.
 */
static bool is_pushed_aside(const struct job *job, const struct accusation *a,
			    const struct cause_facts *f)
{
	double per_worker = a->own_ns / (double)(a->worker_cnt > 0 ? a->worker_cnt : 1);

	return f->mu < THREAD_BUSY && f->mu < wanted_cpu(job, f) &&
	       f->cpu_ns - f->cpu_peers_ns < CAUSE_EXPLAINS * f->mu * per_worker;
}

static enum cause cause_of_host(const struct job *job, const struct accusation *a,
				const struct cause_facts *f)
{
	uint32_t frame = waits_frame(a, job);
	uint8_t kind = frame != FRAME_NONE ? job->frames.data[frame].kind : KIND_OTHER;

	bool busy = f->mu + wanted_cpu(job, f) >= THREAD_BUSY; /* false: not, or not measured */

	if (a->class == CLASS_IDLE || waits_sleeps(job, frame) ||
	    (!busy && waits_in_call(job, frame)))
		return CAUSE_HOST_STALL;
	if (kind == KIND_PYTHON && busy && is_pushed_aside(job, a, f))
		return CAUSE_CPU_STARVED;
	if (kind == KIND_PYTHON)
		return isnan(f->mu) || busy ? CAUSE_CPU_PYTHON : CAUSE_HOST_STALL;
	if (kind == KIND_OPERATOR && f->extra_ns > 0)
		return CAUSE_EXTRA_WORK;
	if (kind == KIND_OPERATOR && a->spread)
		return CAUSE_SLOW_OPERATOR;
	/* Time inside an operator that calls nothing: the host stood there. */
	return kind == KIND_OPERATOR ? CAUSE_HOST_STALL : CAUSE_SLOW_OPERATOR;
}

/* "Memcpy DtoH (Device -> Pageable)" and "(Device -> Pinned)" go the same way. */
static bool is_same_way(const char *a, const char *b)
{
	size_t len = strcspn(a, "(");

	return len == strcspn(b, "(") && strncmp(a, b, len) == 0;
}

/* Whether another worker copies that way, too, be it from or to other memory. */
static bool peers_copy(const struct job *job, const struct accusation *a)
{
	const char *name = job->frames.data[a->frame].name;

	vec_foreach(f, &job->functions) {
		if (f->class != CLASS_MEMORY || f->frame == FRAME_NONE ||
		    !is_same_way(job->frames.data[f->frame].name, name))
			continue;
		for (uint32_t w = 0; w < job->worker_cnt; w++) {
			if (f->of[w] != NULL && !accusation_has(a, w))
				return true;
		}
	}
	return false;
}

static bool has_device(const struct job *job, const struct accusation *a)
{
	return a->worker_cnt > 0 && job->workers[a->workers[0]].fp->has_device;
}

static enum cause cause_of_work(const struct job *job, const struct accusation *a,
				const struct cause_facts *f)
{
	bool device = has_device(job, a);

	if (is_in_call(job, a, GPUCALL_ALLOCATE))
		return CAUSE_ALLOCATION;
	if (f->extra_ns > 0 && !device)
		return CAUSE_EXTRA_WORK;
	if (a->class == CLASS_MEMORY)
		return f->extra_ns > 0 && !peers_copy(job, a) ? CAUSE_EXTRA_WORK : CAUSE_SLOW_COPY;
	return device ? CAUSE_SLOW_GPU : CAUSE_SLOW_OPERATOR;
}

/* A fault of all workers: what the paper's distance from expectation finds. */
static enum cause cause_of_all(const struct job *job, const struct accusation *a,
			       const struct cause_facts *f)
{
	if (is_gc(job, a))
		return CAUSE_GC;
	if (waits_for_gil(job, a))
		return CAUSE_GIL;
	if (is_data_loading(job, a))
		return CAUSE_SLOW_DATA;
	if (a->class == CLASS_COMM)
		return cause_of_comm(job, a, f);
	/* Pauses by turns are no property of the function. */
	return a->worker_cnt == job->worker_cnt && job->worker_cnt > 1 && !a->rotates
		       ? CAUSE_EVERYWHERE
		       : cause_of_host(job, a, f);
}

/* A lack of CPUs makes all longer; it does not make a place that was not there before. */
static bool is_new(const struct accusation *a)
{
	return a->recalled && a->frame != FRAME_NONE && a->now_ns > CAUSE_NEW_FACTOR * a->before_ns;
}

/* What grew has no pattern by which peers are known: a few causes show without them. */
static enum cause cause_of_growth(const struct job *job, const struct accusation *a)
{
	if (a->held)
		return CAUSE_GIL;
	if (a->delay_growth_ns >= CAUSE_EXPLAINS * a->own_ns && !is_new(a))
		return CAUSE_CPU_STARVED;
	if (is_gc(job, a))
		return CAUSE_GC;
	return is_data_loading(job, a) ? CAUSE_SLOW_DATA : CAUSE_MORE_THAN_BEFORE;
}

/*
 * It takes longer because it has more to do: with uneven inputs for all by turns, or with as
 * many more elements than its peers as explain the time.
 */
static bool is_imbalance(const struct accusation *a, const struct cause_facts *f)
{
	if (a->class != CLASS_COMPUTE && a->class != CLASS_MEMORY)
		return false;
	if (a->rotates && a->class == CLASS_COMPUTE)
		return true;
	return f->work_ratio >= CAUSE_MORE_WORK &&
	       f->work_ratio - 1 >= CAUSE_EXPLAINS * (f->compute_ratio - 1);
}

static enum cause cause_of_usage(const struct accusation *a)
{
	static const enum cause causes[] = {
		[USAGE_NONE] = CAUSE_DIFFERENCE,	[USAGE_COPIES] = CAUSE_COPIES,
		[USAGE_ALLOCATIONS] = CAUSE_ALLOCATION, [USAGE_PINNING] = CAUSE_PINNED,
		[USAGE_LAUNCHES] = CAUSE_LAUNCHES,	[USAGE_SYNCS] = CAUSE_SYNCS,
		[USAGE_STARVED] = CAUSE_HOST_BOUND,	[USAGE_STALLS] = CAUSE_RANDOM_STALLS,
		[USAGE_SWITCHES] = CAUSE_GIL,
	};

	return causes[a->use.sign];
}

/*
 * It would not take longer with CPUs of its own. Who does more than its peers is without a CPU for
 * longer, too: then most of what it does more must be that.
 */
static bool is_starved(const struct accusation *a, const struct cause_facts *f)
{
	double peers_ns = isnan(f->run_delay_peers_ns) ? 0 : f->run_delay_peers_ns;

	return explains(f->run_delay_ns, f->run_delay_peers_ns, a) && !is_new(a) &&
	       f->run_delay_ns - peers_ns >= CAUSE_EXPLAINS * f->extra_ns;
}

enum cause cause_find(const struct job *job, const struct accusation *a,
		      const struct cause_facts *f)
{
	if (a->witness == WITNESS_USE)
		return cause_of_usage(a);
	if (a->witness == WITNESS_EXPECTATION)
		return cause_of_all(job, a, f);
	if (a->witness == WITNESS_PAST)
		return cause_of_growth(job, a);
	if (a->groups.uneven_stages)
		return CAUSE_UNEVEN_STAGES;
	if (a->groups.sister_cnt > 0 || a->flow.slow_cnt > 0)
		return CAUSE_SLOW_LINK;
	if (is_gc(job, a) || (a->place_cnt > 0 && a->class == CLASS_HOST) ||
	    explains(f->gc_ns, f->gc_peers_ns, a))
		return CAUSE_GC;
	if (is_starved(a, f) && !waits_for_others(job, a))
		return CAUSE_CPU_STARVED;
	if ((is_gil(a, f) && !waits_for_others(job, a)) || waits_for_gil(job, a))
		return CAUSE_GIL;
	if (is_pinned_allocation(job, a))
		return CAUSE_PINNED;
	if (is_data_loading(job, a))
		return CAUSE_SLOW_DATA;
	if (a->class == CLASS_COMM)
		return cause_of_comm(job, a, f);
	if (is_imbalance(a, f))
		return CAUSE_IMBALANCE;
	if (a->class == CLASS_COMPUTE && !has_device(job, a) && is_pushed_aside(job, a, f))
		return CAUSE_CPU_STARVED;
	if (a->class == CLASS_COMPUTE || a->class == CLASS_MEMORY)
		return cause_of_work(job, a, f);
	/* No one place: nothing to look at, only a worker that is slower. */
	if (a->witness == WITNESS_BLAME && a->frame == FRAME_NONE)
		return CAUSE_DIFFERENCE;
	return cause_of_host(job, a, f);
}

/* Advice about one rank does not fit where all of them have the fault. NULL: it fits all. */
static const char *advice_of_all(enum cause cause)
{
	if (cause == CAUSE_SLOW_OPERATOR)
		return "All ranks are slow there: check drivers, libraries and CPU frequency of the "
		       "hosts, and whether the call can be made less often.";
	if (cause == CAUSE_CPU_STARVED)
		return "The hosts have fewer free CPUs than the job has busy threads: move other "
		       "processes away, use fewer threads or loader workers, check cgroup limits.";
	if (cause == CAUSE_MORE_THAN_BEFORE)
		return "Compare inputs, files, caches, and what else runs on the hosts, with those "
		       "before.";
	return NULL;
}

const char *cause_advice(enum cause cause, bool all_workers, const char *name)
{
	const char *advice = all_workers ? advice_of_all(cause) : NULL;

	if (cause == CAUSE_SLOW_COPY && gpucall_is_memory(name)) /* uses no link */
		return "Keep allocations out of the step: reuse buffers, and let torch's allocator "
		       "keep what it has (PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True).";
	return advice != NULL ? advice : cause_text(cause)->advice;
}
