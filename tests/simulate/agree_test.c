/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two levels of simulated jobs agree: what the reader and `summarize` make of a
 * worker's trace, and the fingerprint that the simulator makes without events.
 *
 * Tolerances. beta: 0.012, because one level plays rings chunk by chunk. mu and
 * sigma, of functions that hold 3 % of the window or more: 0.05 and 0.06 of kernels,
 * 0.06 and 0.1 of transfers between hosts, because chunks and samples have edges; mu
 * of the thread 0.2, because one of its samples lasts 10 ms.
 */
#include "read/kineto/kineto.h"
#include "simulate/simulation.h"
#include "summarize/summarize.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

#define BETA_NEAR 0.012
#define MAIN_BETA 0.005 /* smaller functions may be listed at one level only */
#define LARGE_BETA 0.03 /* of smaller ones samples show their neighbors as well */

struct job {
	const char *scenario;
	int workers;
	int tp, pp;
	uint64_t seed;
	double strength;
	bool overlaps; /* transfers of several groups share the NICs: their counters mix */
};

static const struct job jobs[] = {
	{ "healthy", 8, 0, 0, 1, 1, false },
	{ "healthy", 16, 4, 2, 2, 1, false },
	{ "healthy-expert", 16, 0, 0, 3, 1, false },
	{ "gpu-throttle", 8, 0, 0, 4, 1, false },
	{ "nic-bond", 32, 0, 0, 5, 1, false },
	{ "nvlink-fallback", 32, 0, 0, 6, 1, true },
	{ "storage-slow-some", 16, 0, 0, 7, 1, false },
	{ "python-slow", 8, 2, 2, 8, 1, false },
	{ "gc-random", 16, 0, 0, 9, 1, false },
	{ "load-imbalance", 16, 2, 0, 10, 1, false },
	{ "neighbor", 16, 0, 0, 11, 1, false },
	{ "late-workers", 8, 0, 0, 12, 1, false },
	{ "cpu-starvation", 8, 0, 0, 13, 20, false },
	{ "gpu-throttle+gc-random", 16, 2, 2, 14, 1, false },
};

static struct simulation *open_job(const struct job *job, enum simulate_level level)
{
	struct simulate_options options = simulate_defaults(job->scenario);
	struct simulation *sim;
	struct err err = { "" };

	options.worker_cnt = job->workers;
	options.tp = job->tp;
	options.pp = job->pp;
	options.seed = job->seed;
	options.strength = job->strength;
	options.level = level;
	if (simulate_open(&options, &sim, &err) < 0)
		fail_msg("%s: %s", job->scenario, err.text);
	return sim;
}

static struct fingerprint summarized(const struct simulation *sim, int rank)
{
	char path[] = "/tmp/agree_test_XXXXXX";
	int fd = mkstemp(path);
	struct trace trace;
	struct fingerprint fp;
	struct err err = { "" };

	assert_true(fd >= 0);
	(void)close(fd);
	if (simulate_trace(sim, rank, path, &err) < 0 ||
	    kineto_read(path, NULL, &trace, &err) < 0 || summarize(&trace, NULL, &fp, &err) < 0)
		fail_msg("rank %d: %s", rank, err.text);
	trace_done(&trace);
	(void)unlink(path);
	return fp;
}

static const struct fp_function *find(const struct fingerprint *fp, const struct fingerprint *of,
				      const struct fp_function *f)
{
	for (size_t i = 0; i < fp->function_cnt; i++) {
		if (fp->functions[i].frame != FRAME_NONE && fp->functions[i].class == f->class &&
		    funckey_equal(fp->frames[fp->functions[i].frame].key, of->frames[f->frame].key))
			return &fp->functions[i];
	}
	return NULL;
}

struct tolerance {
	double mu, sigma;
};

static bool tolerance_of(const struct fp_function *f, struct tolerance *ret)
{
	if (f->beta_frac < LARGE_BETA)
		return false;
	if (f->class == CLASS_COMPUTE)
		*ret = (struct tolerance){ 0.05, 0.06 };
	else if (f->class == CLASS_COMM && f->resource == RESOURCE_PCIE_TX)
		*ret = (struct tolerance){ 0.06, 0.1 };
	else if (f->class == CLASS_HOST)
		*ret = (struct tolerance){ 0.2, 1 };
	else
		return false;
	return true;
}

static void compare(const struct job *job, const struct fingerprint *events,
		    const struct fingerprint *direct, const struct fp_function *f)
{
	const struct fp_function *other = find(direct, events, f);
	const char *name = events->frames[f->frame].name;
	struct tolerance near;

	if (other == NULL)
		fail_msg("%s, rank %d: only summarize has %s (%.3f)", job->scenario, events->rank,
			 name, f->beta_frac);
	if (fabs(other->beta_frac - f->beta_frac) > BETA_NEAR)
		fail_msg("%s, rank %d: beta of %s: %.3f of events, %.3f without", job->scenario,
			 events->rank, name, f->beta_frac, other->beta_frac);
	if (other->resource != f->resource || !tolerance_of(f, &near) ||
	    (job->overlaps && f->class == CLASS_COMM))
		return;
	if (fabs(other->mu_frac - f->mu_frac) > near.mu ||
	    fabs(other->sigma_frac - f->sigma_frac) > near.sigma)
		fail_msg("%s, rank %d: mu, sigma of %s: %.3f, %.3f of events, %.3f, %.3f without",
			 job->scenario, events->rank, name, f->mu_frac, f->sigma_frac,
			 other->mu_frac, other->sigma_frac);
}

static void compare_workers(const struct job *job, const struct fingerprint *events,
			    const struct fingerprint *direct)
{
	assert_int_equal(events->iteration_cnt, direct->iteration_cnt);
	assert_int_equal(events->collective_cnt, direct->collective_cnt);
	assert_string_equal(events->host, direct->host);
	for (size_t i = 0; i < events->function_cnt; i++) {
		if (events->functions[i].beta_frac > MAIN_BETA &&
		    events->functions[i].frame != FRAME_NONE)
			compare(job, events, direct, &events->functions[i]);
	}
	for (size_t i = 0; i < direct->function_cnt; i++) {
		if (direct->functions[i].beta_frac > MAIN_BETA)
			assert_non_null(find(events, direct, &direct->functions[i]));
	}
}

static void both_levels_agree(_unused_ void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(jobs); i++) {
		struct simulation *a = open_job(&jobs[i], SIMULATE_EVENTS);
		struct simulation *b = open_job(&jobs[i], SIMULATE_FINGERPRINTS);

		for (int rank = 0; rank < jobs[i].workers; rank += 3) {
			struct fingerprint events = summarized(a, rank), direct;

			assert_int_equal(simulate_fingerprint(b, rank, &direct), 0);
			compare_workers(&jobs[i], &events, &direct);
			fingerprint_done(&events);
			fingerprint_done(&direct);
		}
		simulate_close(a);
		simulate_close(b);
	}
}

static const struct fp_function *reduce_of(const struct fingerprint *fp)
{
	for (size_t i = 0; i < fp->function_cnt; i++) {
		if (fp->functions[i].frame != FRAME_NONE &&
		    strstr(fp->frames[fp->functions[i].frame].name, "AllReduce") != NULL)
			return &fp->functions[i];
	}
	fail_msg("no all-reduce");
	return NULL;
}

/*
 * PerfTracker, section 3, from samples of simulated rings: a worker that shares no ring
 * with the degraded bond is as in figure 3, the ring's others as in 5b, its own in 5c.
 */
static void a_degraded_bond_gives_the_patterns_of_figures_3_to_5(_unused_ void **state)
{
	static const struct job job = { "nic-bond", 32, 0, 0, 20, 1, false };
	struct simulation *sim = open_job(&job, SIMULATE_EVENTS);
	const int *bad = sim->faults[0].ranks;

	for (int rank = 0; rank < job.workers; rank++) {
		struct fingerprint fp = summarized(sim, rank);
		const struct fp_function *reduce = reduce_of(&fp);
		bool slow = rank == bad[0] || rank == bad[1];
		bool victim = !slow &&
			      layout_rail(&sim->layout, rank) == layout_rail(&sim->layout, bad[0]);

		assert_true(slow || victim ? reduce->mu_frac < 0.45 : reduce->mu_frac > 0.7);
		assert_true(victim ? reduce->sigma_frac > 0.2 : reduce->sigma_frac < 0.12);
		fingerprint_done(&fp);
	}
	simulate_close(sim);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_degraded_bond_gives_the_patterns_of_figures_3_to_5),
		cmocka_unit_test(both_levels_agree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
