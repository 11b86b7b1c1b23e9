/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A path has two ends. The host that the most slow paths share has the slow link; where a single
 * path is slow, another path of the same direction clears an end of it. Where neither end is
 * cleared, both are named. O(paths * culprits).
 */
#include "localize/flows/by_flow.h"

#include "base/stats.h"
#include "localize/flows/paths.h"
#include "localize/witness/weighing.h"
#include "model/thresholds.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define NO_HOST UINT32_MAX

struct flows {
	const struct job *job;
	const struct accuse_options *options;
	struct arena *arena;
	struct paths paths;
	bool *explained; /* by path */
	size_t *slow_of; /* by host: slow paths that are not explained */
	double *scratch;
};

static bool is_open(const struct flows *f, const struct path *path)
{
	return path->lost_ns > 0 && !f->explained[path - f->paths.list.data];
}

static void count_open(struct flows *f)
{
	memset(f->slow_of, 0, f->job->worker_cnt * sizeof(*f->slow_of));
	vec_foreach(path, &f->paths.list) {
		if (!is_open(f, path))
			continue;
		f->slow_of[path->from]++;
		f->slow_of[path->to]++;
	}
}

/* Whether the host sends, or receives, as fast as usual on another path. */
static bool is_cleared(const struct flows *f, const struct path *slow, uint32_t host)
{
	vec_foreach(path, &f->paths.list) {
		if (path->lost_ns <= 0 && (slow->from == host ? path->from : path->to) == host)
			return true;
	}
	return false;
}

static const struct path *slowest_of(const struct flows *f, uint32_t host)
{
	const struct path *ret = NULL;

	vec_foreach(path, &f->paths.list) {
		if (is_open(f, path) && path_touches(path, host) &&
		    (ret == NULL || path->lost_ns > ret->lost_ns))
			ret = path;
	}
	return ret;
}

/* The host that most open paths share; *other: one that shares the same paths. */
static uint32_t find_culprit(struct flows *f, uint32_t *other)
{
	uint32_t best = NO_HOST;
	const struct path *path;

	count_open(f);
	for (uint32_t h = 0; h < f->job->worker_cnt; h++) {
		if (f->slow_of[h] > 0 && (best == NO_HOST || f->slow_of[h] > f->slow_of[best]))
			best = h;
	}
	*other = NO_HOST;
	if (best == NO_HOST)
		return best;
	path = slowest_of(f, best);
	*other = path->from == best ? path->to : path->from;
	if (f->slow_of[*other] < f->slow_of[best])
		*other = NO_HOST;
	else if (f->slow_of[best] == 1 &&
		 is_cleared(f, path, path->from) != is_cleared(f, path, path->to)) {
		best = is_cleared(f, path, path->from) ? path->to : path->from;
		*other = NO_HOST;
	}
	return best;
}

/* --- one accusation --- */

static void describe(struct flows *f, const struct path *slow, struct flow_facts *ret)
{
	const struct job_worker *w = &f->job->workers[slow->worker];
	double *rates = f->scratch, *shares = f->scratch + f->paths.list.cnt;
	size_t cnt = 0;

	vec_foreach(path, &f->paths.list) {
		if (path->lost_ns > 0)
			continue;
		rates[cnt] = path->rate;
		shares[cnt++] = path->busy_ns / f->job->iteration_ns;
	}
	*ret = (struct flow_facts){
		.from_host = f->job->workers[slow->from].fp->host,
		.to_host = f->job->workers[slow->to].fp->host,
		.local = slow->flow->local,
		.remote = slow->flow->remote,
		.card = slow->flow->card,
		.bytes_per_sec = slow->rate * (double)NSEC_PER_SEC,
		.before_bytes_per_sec = slow->before * (double)NSEC_PER_SEC,
		.busy_frac = fmin(1, slow->busy_ns * w->iterations / (double)w->fp->window_ns),
		.retransmitted_frac =
			(double)slow->flow->retransmitted_bytes / (double)slow->flow->tx_bytes,
		.usual_cnt = cnt,
		.usual_bytes_per_sec =
			cnt > 0 ? stats_median(rates, cnt) * (double)NSEC_PER_SEC : 0,
		.usual_busy_frac = cnt > 0 ? fmin(1, stats_median(shares, cnt)) : 0,
	};
}

/* The communication that holds most of the accused workers' time; FRAME_NONE: none. */
static uint32_t main_function(const struct flows *f, const struct accusation *a)
{
	uint32_t ret = FRAME_NONE;
	double most = 0;

	for (uint32_t i = 0; i < f->job->functions.cnt; i++) {
		const struct job_function *fn = &f->job->functions.data[i];
		double ns = 0;

		if (fn->class != CLASS_COMM || fn->frame == FRAME_NONE)
			continue;
		for (size_t w = 0; w < a->worker_cnt; w++)
			ns += job_time_ns(f->job, fn, a->workers[w]);
		if (ns > most) {
			most = ns;
			ret = i;
		}
	}
	return ret;
}

/* What of an iteration the typical worker communicates and does nothing else. */
static double exposed_ns(struct flows *f)
{
	for (size_t w = 0; w < f->job->worker_cnt; w++) {
		const struct job_worker *worker = &f->job->workers[w];

		f->scratch[w] = (double)worker->fp->class_ns[CLASS_COMM] / worker->iterations;
	}
	return stats_median(f->scratch, f->job->worker_cnt);
}

static double gain_of(struct flows *f, double lost_ns)
{
	double gain = fmin(lost_ns, exposed_ns(f));

	/* A path that became slow costs no more than the job became slower: nothing if it did not. */
	return f->paths.by_past && f->options->live ? fmin(gain, f->options->slowdown_ns) : gain;
}

static int accuse_host(struct flows *f, uint32_t host, uint32_t other, accusations *out)
{
	uint32_t *workers = arena_calloc(f->arena, f->job->worker_cnt + 1, sizeof(*workers));
	const struct path *slow = slowest_of(f, host);
	struct accusation a = { .witness = WITNESS_DIFFERENCE,
				.workers = workers,
				.class = CLASS_COMM };

	if (workers == NULL)
		return -ENOMEM;
	for (uint32_t w = 0; w < f->job->worker_cnt; w++) {
		uint32_t of = f->job->workers[w].host;

		if (of == host || of == other)
			workers[a.worker_cnt++] = w;
	}
	describe(f, slow, &a.flow);
	a.flow.slow_cnt = f->slow_of[host];
	a.flow.either_end = other != NO_HOST;
	a.function = main_function(f, &a);
	a.own_ns = a.main_ns = a.gain_ns = gain_of(f, slow->lost_ns);
	if (a.function == FRAME_NONE ||
	    a.gain_ns < f->options->min_gain_frac * f->job->iteration_ns)
		return 0;
	a.frame = f->job->functions.data[a.function].frame;
	return vec_push(out, a);
}

static void explain(struct flows *f, uint32_t host)
{
	vec_foreach(path, &f->paths.list) {
		if (path_touches(path, host))
			f->explained[path - f->paths.list.data] = true;
	}
}

/* Without the past, slow paths that so many hosts would be needed for differ by design. */
static bool are_too_many(const struct flows *f, size_t culprits)
{
	return !f->paths.by_past &&
	       culprits > MAX((size_t)(FLOW_FEW * f->paths.host_cnt), (size_t)1);
}

static int accuse_all(struct flows *f, accusations *out)
{
	size_t before = out->cnt, culprits = 0;
	uint32_t host, other;

	while ((host = find_culprit(f, &other)) != NO_HOST) {
		if (are_too_many(f, ++culprits)) {
			out->cnt = before;
			return 0;
		}
		if (accuse_host(f, host, other, out) < 0)
			return -ENOMEM;
		explain(f, host);
	}
	return 0;
}

int accuse_by_flow(const struct job *job, const struct accuse_options *options, struct arena *arena,
		   accusations *out)
{
	struct flows f = { .job = job, .options = options, .arena = arena };
	size_t before = out->cnt;
	int error = paths_find(job, options->past, &f.paths);

	f.explained = arena_calloc(arena, f.paths.list.cnt + 1, sizeof(*f.explained));
	f.slow_of = arena_calloc(arena, job->worker_cnt + 1, sizeof(*f.slow_of));
	f.scratch = arena_calloc(arena, MAX(2 * f.paths.list.cnt, job->worker_cnt) + 1,
				 sizeof(*f.scratch));
	if (f.explained == NULL || f.slow_of == NULL || f.scratch == NULL)
		error = -ENOMEM;
	if (error == 0)
		error = accuse_all(&f, out);
	if (error == 0 && out->cnt > before)
		weighing_drop_network(job, out);
	paths_done(&f.paths);
	return error;
}
