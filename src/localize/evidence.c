/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of evidence of a finding, and how sure it is. */
#include "base/stats.h"
#include "base/str.h"
#include "localize/compose_parts.h"
#include "localize/waits/waits.h"
#include "model/rankset.h"
#include "model/thresholds.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define GAIN_WIDER_FRAC 0.01 /* less of a gain in other functions is not reported */
#define PATH_CALLERS 2	     /* shown between a place and the function below it */

const char *draft_ranks_text(struct draft *d, const int *ranks, size_t cnt)
{
	struct str s = { 0 };
	const char *copy;

	rankset_format(&s, ranks, cnt);
	copy = draft_text(d, str_borrow(&s));
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
	EVIDENCE(d, "arrived last at %llu of %llu collective%s, in %llu of %.0f iteration%s%s",
		 (unsigned long long)MIN(last, matched), (unsigned long long)matched,
		 plural(matched), (unsigned long long)MIN(iterations, (uint64_t)analyzed), analyzed,
		 plural(analyzed), d->a->rotates ? ", taking turns" : "");
	for (size_t w = 0; w < d->job->worker_cnt; w++)
		wait = fmax(wait,
			    draft_accused(d, w) && !d->a->rotates ? 0 : draft_waited_ms(d, w));
	if (d->out->victim_cnt > 0)
		EVIDENCE(d, "made rank%s %s wait up to %.1f ms per iteration",
			 plural(d->out->victim_cnt),
			 draft_ranks_text(d, d->out->victims, d->out->victim_cnt), wait);
}

/* The last calls from the place to the function below it: "select > <system call poll>". */
static const char *path_below(struct draft *d, uint32_t frame)
{
	const char *path = d->job->frames.data[frame].name;
	uint32_t caller = d->job->frames.data[frame].parent;

	for (int i = 0; i < PATH_CALLERS; i++) {
		if (path == NULL || caller == FRAME_NONE || caller == d->a->frame ||
		    !job_frame_below(d->job, caller, d->a->frame))
			break;
		path = arena_printf(d->arena, "%s > %s", d->job->frames.data[caller].name, path);
		caller = d->job->frames.data[caller].parent;
	}
	d->no_memory |= path == NULL;
	return path != NULL ? path : "";
}

static void evidence_of_place(struct draft *d)
{
	const struct finding *f = d->out;
	uint32_t main = d->a->function != FRAME_NONE ? d->job->functions.data[d->a->function].frame
						     : FRAME_NONE;

	for (size_t i = 0; i < d->a->use.line_cnt; i++)
		EVIDENCE(d, "%s", d->a->use.lines[i]);
	if (d->a->witness == WITNESS_USE)
		return;
	if (draft_named_frame(d) == FRAME_NONE && d->a->witness == WITNESS_BLAME) {
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
	else if (f->beta.reference_kind == REFERENCE_PAST)
		; /* the line of the past says it */
	else if (d->a->flow.slow_cnt > 0)
		; /* all members of a collective spend the same time in it */
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
		EVIDENCE(d, "most of it in %s", path_below(d, main));
}

static void evidence_of_sisters(struct draft *d)
{
	if (d->a->groups.sister_cnt > 0)
		EVIDENCE(d,
			 "takes %.1f times as long in this process group as in %zu other group%s "
			 "that do%s the same: a link between these ranks is slow",
			 d->a->groups.sister_factor, d->a->groups.sister_cnt,
			 plural(d->a->groups.sister_cnt), d->a->groups.sister_cnt == 1 ? "es" : "");
}

#define MBIT_PER_SEC(bytes) (8 * (bytes) / 1e6)

/* The pattern of a slow link: used all the time at a low rate, while the others wait for it. */
static void evidence_of_flow(struct draft *d)
{
	const struct flow_facts *f = &d->a->flow;

	if (f->slow_cnt == 0)
		return;
	EVIDENCE(
		d,
		"%s%s%s sends to %s (%s to %s) at %.0f Mbit/s while data is on the way, for %.0f %% of "
		"the window",
		f->card, f->card[0] != '\0' ? " of " : "", f->from_host, f->to_host, f->local,
		f->remote, MBIT_PER_SEC(f->bytes_per_sec), 100 * f->busy_frac);
	if (f->usual_cnt > 0)
		EVIDENCE(
			d,
			"the other %zu path%s between hosts carr%s %.0f Mbit/s, for %.0f %% of it: "
			"they wait for this one",
			f->usual_cnt, plural(f->usual_cnt), f->usual_cnt == 1 ? "ies" : "y",
			MBIT_PER_SEC(f->usual_bytes_per_sec), 100 * f->usual_busy_frac);
	if (f->before_bytes_per_sec > 0)
		EVIDENCE(d, "in the job's own past: %.0f Mbit/s between these two",
			 MBIT_PER_SEC(f->before_bytes_per_sec));
	if (f->slow_cnt > 1)
		EVIDENCE(d, "%zu paths from or to this host are slow", f->slow_cnt);
	if (f->either_end)
		EVIDENCE(d,
			 "which end of the path is slow cannot be told: no other path shares one");
	if (f->retransmitted_frac >= FLOW_LOSSY)
		EVIDENCE(d, "%.1f %% of the bytes were sent again: packets are lost on the way",
			 100 * f->retransmitted_frac);
}

static void evidence_of_stages(struct draft *d)
{
	if (d->a->groups.uneven_stages)
		EVIDENCE(d,
			 "this stage of the pipeline computes for %.1f ms per iteration, the mean "
			 "stage for %.1f ms: it runs more kernels, and each takes as long as "
			 "elsewhere",
			 d->a->groups.stage_ns / 1e6, d->a->groups.stage_mean_ns / 1e6);
}

static void evidence_of_past(struct draft *d)
{
	if (d->a->recalled)
		EVIDENCE(d,
			 "in the job's own past: %.1f ms per iteration there before, %.1f ms now",
			 d->a->before_ns / 1e6, d->a->now_ns / 1e6);
}

/* A gain beyond the time in the function that is named: the fault strikes others, too. */
static void evidence_of_wider_gain(struct draft *d)
{
	double more_ms = d->out->gain_ms_per_iteration - d->out->time_ms_per_iteration;

	if (d->a->witness == WITNESS_BLAME || d->a->part_of_ns > 0 || d->a->rotates)
		return;
	if (more_ms > GAIN_WIDER_FRAC * d->out->gain_ms_per_iteration)
		EVIDENCE(d, EVIDENCE_WIDER_GAIN, more_ms);
}

static void evidence_of_gain(struct draft *d)
{
	if (d->a->part_of_ns > 0)
		EVIDENCE(
			d,
			"the largest part found: it explains %.1f of %.1f ms by which an iteration "
			"became longer",
			d->a->gain_ns / 1e6, d->a->part_of_ns / 1e6);
	if (d->a->hidden_ns >= GAIN_HIDDEN_FRAC * d->a->gain_ns && d->a->hidden_ns > 0)
		EVIDENCE(d,
			 "of the %.1f ms per iteration that it loses, %.1f ms are recoverable by "
			 "fixing it alone: others are late too, or would wait anyway",
			 d->a->gain_ns / 1e6, d->out->gain_ms_per_iteration);
	evidence_of_wider_gain(d);
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
	    draft_thread_ms(d, d->a->workers[0]) <= 0)
		return;
	for (size_t i = 0; i < d->job->functions.cnt; i++) {
		const struct job_function *f = &d->job->functions.data[i];
		double mine = function_thread_ms(d, f, d->a->workers[0]), peers;
		size_t cnt = 0;

		if ((f->class != CLASS_HOST && f->class != CLASS_IDLE) || f->frame == FRAME_NONE ||
		    mine < need || job_frame_below(d->job, f->frame, d->a->frame))
			continue;
		for (size_t w = 0; w < d->job->worker_cnt; w++) {
			if (!draft_accused(d, w))
				d->scratch[cnt++] = function_thread_ms(d, f, w);
		}
		peers = stats_median(d->scratch, cnt);
		if (cnt > 0 && mine - peers >= need)
			EVIDENCE(
				d,
				"it also spends %.1f ms per iteration in %s (peers: %.1f ms), partly hidden "
				"behind other work",
				mine,
				f->class == CLASS_IDLE ? draft_idle_name(d, f->frame)
						       : d->job->frames.data[f->frame].name,
				peers);
	}
}

static void pressure_line(struct draft *d, const char *name, double frac)
{
	if (frac > HOST_PRESSURE_FRAC)
		EVIDENCE(d, "%s pressure of the host: some task stalled for %.0f %% of the window",
			 name, 100 * frac);
}

/* Communication without a device, on hosts where tasks waited for CPUs most of the time. */
static bool lacks_cpus(const struct draft *d)
{
	double pressure = 0;

	if (d->cause != CAUSE_SLOW_COLLECTIVE && d->cause != CAUSE_SLOW_LINK)
		return false;
	for (size_t i = 0; i < d->a->worker_cnt; i++) {
		const struct fingerprint *fp = d->job->workers[d->a->workers[i]].fp;

		if (fp->has_device)
			return false;
		pressure = fmax(pressure, fp->host_stats.psi_cpu_frac);
	}
	return pressure > HOST_CROWDED_FRAC;
}

/* Only beside a cause that it bears on: a busy host is no fault by itself. */
static void evidence_of_pressure(struct draft *d)
{
	double cpu = 0, io = 0, memory = 0;
	enum awaited_by by;

	for (size_t i = 0; i < d->a->worker_cnt; i++) {
		const struct fp_host *h = &d->job->workers[d->a->workers[i]].fp->host_stats;

		cpu = fmax(cpu, h->psi_cpu_frac);
		io = fmax(io, h->psi_io_frac);
		memory = fmax(memory, h->psi_memory_frac);
	}
	if (d->cause == CAUSE_CPU_STARVED || lacks_cpus(d) ||
	    (cpu > HOST_CROWDED_FRAC && d->cause == CAUSE_SLOW_DATA && draft_awaits(d, &by) &&
	     by == AWAITED_LOADER))
		pressure_line(d, "CPU", cpu);
	if (lacks_cpus(d))
		EVIDENCE(d,
			 "the communication is done by threads of the host, which may have waited "
			 "for a CPU, too");
	if (d->cause == CAUSE_SLOW_DATA || d->cause == CAUSE_HOST_STALL) {
		pressure_line(d, "I/O", io);
		pressure_line(d, "memory", memory);
	}
}

/* peers_ns NAN: all workers are accused, so there is no peer to compare with. */
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

static bool awaits_loader(const struct draft *d)
{
	uint32_t frame = d->a->function != FRAME_NONE ? d->job->functions.data[d->a->function].frame
						      : FRAME_NONE;

	for (; frame != FRAME_NONE && d->cause == CAUSE_SLOW_DATA;
	     frame = d->job->frames.data[frame].parent) {
		const char *name = d->job->frames.data[frame].name;

		if (strstr(name, "multiprocessing/") != NULL ||
		    strstr(name, "_try_get_data") != NULL)
			return true;
	}
	return false;
}

bool draft_awaits(const struct draft *d, enum awaited_by *ret)
{
	const struct awaited *awaited = &d->facts.awaited;

	*ret = awaits_loader(d) ? AWAITED_LOADER : awaited->by;
	if (*ret == AWAITED_LOADER)
		return awaits_loader(d);
	return awaited->place != NULL && waits_for_others(d->job, d->a);
}

/* What those do that it waits for, or, where their stacks are unknown, where to look. */
static void evidence_of_awaited(struct draft *d)
{
	const struct awaited *awaited = &d->facts.awaited;
	const char *coroutine = waits_coroutine(d->job, d->a);
	enum awaited_by by;

	if (coroutine != NULL)
		EVIDENCE(
			d,
			"the event loop had nothing to run: what it ran most, %s, waits for another "
			"coroutine, a timer or I/O",
			coroutine);
	if (!draft_awaits(d, &by))
		return;
	if (awaited->place != NULL && awaited->by == by && d->facts.awaited_rank >= 0)
		EVIDENCE(d,
			 "rank %d waits for %s, which spend %.0f %% in %s; those of the others are "
			 "elsewhere",
			 d->facts.awaited_rank, awaited_name(by), 100 * awaited->frac,
			 awaited->place);
	else if (awaited->place != NULL && awaited->by == by)
		EVIDENCE(d, "it waits for %s, which spend %.0f %% in %s", awaited_name(by),
			 100 * awaited->frac, awaited->place);
	else
		EVIDENCE(d, "it waits for the DataLoader's worker processes: their dataset or "
			    "collate function is slow, or they lack CPUs");
}

bool draft_holder_known(const struct draft *d)
{
	const struct cause_facts *f = &d->facts;

	return f->other_name != NULL && f->other_name[0] != '\0' && f->other_cpu_ns > 0;
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
	if (d->cause == CAUSE_CPU_PYTHON && isnan(f->cpu_ns) && isnan(f->mu))
		EVIDENCE(d,
			 "CPU times were not recorded: it may wait there, for a lock or in a call "
			 "without a frame of its own");
	if (d->cause == CAUSE_GIL && draft_holder_known(d))
		EVIDENCE(
			d,
			isnan(f->cpu_ns)
				? "another thread of the process executed for %.1f ms per iteration, "
				  "mostly in these stalls: %s"
				: "another thread of the process used %.1f ms of CPU time per "
				  "iteration in %s",
			f->other_cpu_ns / 1e6, f->other_name);
	if (d->cause == CAUSE_GC && f->gc_ns > 0)
		EVIDENCE(d, "garbage collections took %.1f ms per iteration", f->gc_ns / 1e6);
	evidence_of_awaited(d);
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

	return d->a->witness == WITNESS_BLAME && d->a->worker_cnt == 1 &&
	       b->matched_cnt >= CONFIDENCE_LAST_CNT &&
	       (double)b->last_cnt >= CONFIDENCE_LAST_FRAC * (double)b->matched_cnt;
}

/* One iteration is enough where one rank is in one function for half of it, and two others wait. */
static bool holds_half(const struct draft *d)
{
	double half_ms = CONFIDENCE_HALF_PCT / 100.0 * d->job->iteration_ns / 1e6;

	return d->a->witness == WITNESS_BLAME && d->a->worker_cnt == 1 && !d->a->spread &&
	       d->a->frame != FRAME_NONE && d->out->victim_cnt >= 2 &&
	       d->out->gain_ms_per_iteration >= half_ms &&
	       d->out->delta_ms_per_iteration >= half_ms;
}

/* The share of a worker's samples without a stack because its recorder was full. */
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

static void evidence_of_once(struct draft *d)
{
	if (d->a->once)
		EVIDENCE(d, "nearly all of it lies in one iteration: it may be chance");
}

/* A place that is unsure, and whose cause has no sign of its own but the time it takes. */
static bool is_only_long(const struct draft *d)
{
	return d->a->unsure && (d->cause == CAUSE_EVERYWHERE || d->cause == CAUSE_HOST_STALL ||
				d->cause == CAUSE_CPU_PYTHON || d->cause == CAUSE_SLOW_OPERATOR);
}

/* Pauses at places that have nothing in common look like collections, and may be a lack of CPUs. */
static bool is_only_like_collections(const struct draft *d)
{
	uint32_t frame = waits_frame(d->a, d->job);

	return d->cause == CAUSE_GC && d->a->place_cnt > 0 && !(d->facts.gc_ns > 0) &&
	       (frame == FRAME_NONE || !job_frame_collects(d->job, frame));
}

/* All communicate for long, and their links are as fast as links get: the job sends as much. */
static bool is_by_design(const struct draft *d)
{
	return d->a->witness == WITNESS_EXPECTATION && d->a->class == CLASS_COMM &&
	       d->a->worker_cnt == d->job->worker_cnt && d->facts.mu >= LINK_BUSY;
}

static void evidence_of_design(struct draft *d)
{
	if (is_by_design(d))
		EVIDENCE(d,
			 "the links carry %.0f %% of their peak meanwhile: they are not slow, "
			 "the job sends as much",
			 100 * d->facts.mu);
}

/* How much may be believed: enough iterations, late in most of them, a real loss. */
enum confidence evidence_confidence(const struct draft *d)
{
	double late = 0, analyzed = 1, cost_pct = 100 * d->a->gain_ns / d->job->iteration_ns;

	for (size_t i = 0; i < d->a->worker_cnt; i++) {
		late += (double)d->blame->workers[d->a->workers[i]].late_iterations;
		analyzed = fmax(analyzed, d->job->workers[d->a->workers[i]].iterations);
	}
	if (host_is_unknown(d) || d->a->part_of_ns > 0 || is_only_long(d) || d->a->once ||
	    lacks_cpus(d) || is_by_design(d))
		return CONFIDENCE_LOW;
	if (analyzed < 2)
		return always_last(d) || holds_half(d) ? CONFIDENCE_MEDIUM : CONFIDENCE_LOW;
	if (d->a->witness == WITNESS_PAST)
		return analyzed >= CONFIDENCE_ITERATIONS && cost_pct >= CONFIDENCE_PAST_PCT
			       ? CONFIDENCE_HIGH
			       : CONFIDENCE_MEDIUM;
	if (d->a->witness == WITNESS_USE && (analyzed < CONFIDENCE_ITERATIONS || d->a->unsure))
		return CONFIDENCE_MEDIUM;
	if (d->a->flow.slow_cnt > 0)
		return d->a->flow.usual_cnt > 0 && d->a->flow.before_bytes_per_sec > 0 &&
				       analyzed >= CONFIDENCE_ITERATIONS
			       ? CONFIDENCE_HIGH
			       : CONFIDENCE_MEDIUM;
	if (d->a->witness != WITNESS_BLAME) {
		bool many = d->job->worker_cnt >= CONFIDENCE_WORKERS ||
			    d->a->worker_cnt == d->job->worker_cnt;

		return many && cost_pct >= CONFIDENCE_DIFFER_PCT ? CONFIDENCE_HIGH
								 : CONFIDENCE_MEDIUM;
	}
	if (analyzed >= CONFIDENCE_ITERATIONS && late >= analyzed / 2 &&
	    cost_pct >= CONFIDENCE_COST_PCT && !is_only_like_collections(d))
		return CONFIDENCE_HIGH;
	return cost_pct >= CONFIDENCE_COST_PCT || late >= analyzed / 2 ? CONFIDENCE_MEDIUM
								       : CONFIDENCE_LOW;
}

void evidence_add(struct draft *d)
{
	evidence_of_blame(d);
	evidence_of_place(d);
	evidence_of_once(d);
	evidence_of_sisters(d);
	evidence_of_flow(d);
	evidence_of_stages(d);
	evidence_of_past(d);
	evidence_of_gain(d);
	evidence_of_other_stalls(d);
	evidence_of_host(d);
	evidence_of_unknown(d);
	evidence_of_design(d);
}
