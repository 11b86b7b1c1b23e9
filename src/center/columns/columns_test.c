/* SPDX-License-Identifier: Apache-2.0 */
#include "base/test_random.h"
#include "center/columns/columns_accuse.h"
#include "center/columns/columns_report.h"
#include "localize/peers.h"
#include "localize/test_job.h"
#include "model/code16.h"

#include <errno.h>
#include <math.h>
#include <string.h>

static uint64_t rng = 1;

static double some(void)
{
	return test_uniform(&rng);
}

/* Numbers as the wire leaves them, so that columns and fingerprints hold the same. */
static double rounded(double frac)
{
	return code16_frac(code16_of_frac(frac));
}

/* --- jobs --- */

enum { MODULE, FORWARD, GEMM, NORM, LOADER, NEXT, WORK, BUILTIN, RING, COPY, FRAMES };

static const struct {
	const char *name;
	enum event_kind kind;
	int parent;
	enum event_class class;
	double beta, noise;
	bool measured;
} program[FRAMES] = {
	[MODULE] = { "train.py(1): <module>", KIND_PYTHON, -1, CLASS_HOST, 0.002, 0.3, false },
	[FORWARD] = { "model.py(9): forward", KIND_PYTHON, MODULE, CLASS_HOST, 0.004, 0.3, false },
	[GEMM] = { "gemm", KIND_KERNEL, FORWARD, CLASS_COMPUTE, 0.4, 0.03, true },
	[NORM] = { "norm", KIND_KERNEL, FORWARD, CLASS_COMPUTE, 0.1, 0.1, true },
	[LOADER] = { "enumerate(DataLoader)#x.__next__", KIND_ANNOTATION, MODULE, CLASS_HOST, 0.003,
		     0.5, false },
	[NEXT] = { "loader.py(7): fetch", KIND_PYTHON, LOADER, CLASS_HOST, 0.004, 0.5, false },
	[WORK] = { "augment.py(3): augment", KIND_PYTHON, MODULE, CLASS_HOST, 0.003, 0.2, false },
	[BUILTIN] = { "<built-in sort>", KIND_PYTHON, WORK, CLASS_HOST, 0.003, 0.2, false },
	[RING] = { "ncclAllReduce", KIND_KERNEL, MODULE, CLASS_COMM, 0.15, 0.05, true },
	[COPY] = { "memcpy", KIND_GPU_MEMOP, FORWARD, CLASS_MEMORY, 0.05, 0.2, true },
};

struct fault {
	int frame;
	size_t first, cnt;
	double more; /* beta */
	double mu;   /* factor */
};

static double absent; /* share of functions that a worker doesn't list */

static void fill_worker(struct test_job *job, size_t w, size_t kinds, const struct fault *faults,
			size_t fault_cnt)
{
	uint32_t frames[FRAMES];

	job->workers[w].fp.host = "host";
	for (int i = 0; i < FRAMES; i++) {
		uint32_t parent = program[i].parent < 0 ? FRAME_NONE : frames[program[i].parent];
		double beta = program[i].beta * (1 + program[i].noise * (some() - 0.5)), mu = 0.8;
		/* Stages differ in what they compute. */
		const char *name = arena_printf(
			&job->workers[w].fp.arena, "%s%s", program[i].name,
			program[i].class == CLASS_COMPUTE && w % kinds == 1 ? "2" : "");
		struct fp_function *f;

		frames[i] = test_frame(job, w, parent, program[i].kind, name);
		if (some() < absent)
			continue;
		for (size_t k = 0; k < fault_cnt; k++) {
			if (faults[k].frame == i && w >= faults[k].first &&
			    w < faults[k].first + faults[k].cnt) {
				beta += faults[k].more;
				mu *= faults[k].mu;
			}
		}
		f = test_function(job, w, frames[i], program[i].class, rounded(beta));
		f->share_ns = code16_ns(code16_of_ns(f->share_ns));
		if (program[i].measured && some() < 0.9)
			test_utilize(f, RESOURCE_SM_ACTIVE, rounded(mu * (1 - 0.05 * some())),
				     rounded(0.1 * some()));
	}
}

static void make_job(struct test_job *job, size_t cnt, size_t kinds, const struct fault *faults,
		     size_t fault_cnt)
{
	test_job_init(job, cnt, 1000, 5);
	for (size_t w = 0; w < cnt; w++)
		fill_worker(job, w, kinds, faults, fault_cnt);
}

/* Places that are not within each other: which of two is named depends on their order. */
static const int faulty[] = { FORWARD, GEMM, NORM, LOADER, WORK, RING, COPY };

static void random_faults(struct fault *faults, size_t cnt, size_t workers)
{
	const size_t places = ARRAY_SIZE(faulty);

	for (size_t i = 0; i < cnt; i++)
		faults[i] = (struct fault){
			.frame = faulty[(size_t)(some() * (double)places)],
			.first = (size_t)(some() * (double)workers),
			.cnt = some() < 0.2 ? workers : 1 + (size_t)(some() * (double)workers / 20),
			.more = 0.3 * some(),
			.mu = some() < 0.5 ? 1 : some(),
		};
}

/* Adds the workers in any order. */
static void make_columns(struct columns *columns, const struct test_job *job)
{
	size_t step = job->cnt % 7 != 0 ? 7 : 1;

	*columns = (struct columns){ 0 };
	for (size_t i = 0; i < job->cnt; i++) {
		size_t w = i * step % job->cnt;

		assert_int_equal(columns_fingerprint(columns, job->fps[w], w), 0);
	}
	assert_int_equal(columns_join(columns), 0);
}

/* --- the twin: the witnesses for jobs, without collectives --- */

struct both {
	struct job job;
	struct columns columns;
	struct blame blame;
	struct arena arena;
	accusations of_job, of_columns;
};

static void accuse_both(struct both *b, const struct test_job *job,
			const struct accuse_options *options)
{
	*b = (struct both){ 0 };
	make_columns(&b->columns, job);
	assert_int_equal(job_init(&b->job, job->fps, job->cnt), 0);
	assert_int_equal(peers_find(&b->job), 0);
	b->blame.workers = arena_calloc(&b->arena, job->cnt, sizeof(*b->blame.workers));
	assert_int_equal(accuse_by_difference(&b->job, &b->blame, options, &b->arena, &b->of_job),
			 0);
	assert_int_equal(columns_accuse_difference(&b->columns, options, &b->arena, &b->of_columns),
			 0);
	assert_int_equal(accuse_by_expectation(&b->job, &b->blame, options, &b->arena, &b->of_job),
			 0);
	assert_int_equal(
		columns_accuse_expectation(&b->columns, options, &b->arena, &b->of_columns), 0);
}

static void both_done(struct both *b)
{
	vec_done(&b->of_job);
	vec_done(&b->of_columns);
	columns_done(&b->columns);
	job_done(&b->job);
	arena_done(&b->arena);
}

static const char *name_in(const struct both *b, const struct accusation *a, bool columns)
{
	uint32_t frame = a->frame;

	return columns ? b->columns.frames.data[frame].name : b->job.frames.data[frame].name;
}

static bool same(const struct both *b, const struct accusation *a, const struct accusation *c)
{
	return a->witness == c->witness && a->class == c->class && a->rotates == c->rotates &&
	       strcmp(name_in(b, a, false), name_in(b, c, true)) == 0 &&
	       a->worker_cnt == c->worker_cnt &&
	       memcmp(a->workers, c->workers, a->worker_cnt * sizeof(*a->workers)) == 0 &&
	       a->threshold == c->threshold &&
	       a->differential_distance == c->differential_distance &&
	       fabs(a->expectation_distance - c->expectation_distance) < 1e-9 &&
	       fabs(a->gain_ns - c->gain_ns) < 1 && fabs(a->own_ns - c->own_ns) < 1;
}

/* Links are distinguished by groups and collectives, which columns lack. */
static void leave_out_communication(accusations *list)
{
	size_t kept = 0;

	for (size_t i = 0; i < list->cnt; i++) {
		if (list->data[i].class != CLASS_COMM)
			list->data[kept++] = list->data[i];
	}
	list->cnt = kept;
}

static size_t assert_same_accusations(struct both *b)
{
	leave_out_communication(&b->of_job);
	leave_out_communication(&b->of_columns);
	assert_int_equal(b->of_job.cnt, b->of_columns.cnt);
	vec_foreach(a, &b->of_job) {
		size_t found = 0;

		vec_foreach(c, &b->of_columns)
			found += same(b, a, c);
		if (found != 1)
			fail_msg("%s is not accused by columns alike", name_in(b, a, false));
	}
	return b->of_job.cnt;
}

static void columns_and_fingerprints_accuse_the_same_workers(void **state)
{
	size_t accused = 0;

	(void)state;
	for (size_t round = 0; round < 60; round++) {
		struct accuse_options options = { .min_gain_frac = 0.01,
						  .min_common_frac = 0.05,
						  .expect = expect_defaults(),
						  .differ = { .seed = round,
							      .exact = round % 2 == 0 } };
		size_t cnt = 3 + (size_t)(some() * (round % 10 == 0 ? 2000 : 200));
		struct fault faults[4];
		struct test_job job;
		struct both b;

		rng = round + 1;
		absent = 0.02;
		random_faults(faults, round % 5, cnt);
		make_job(&job, cnt, 1 + round % 3, faults, round % 5);
		accuse_both(&b, &job, &options);
		for (size_t w = 0; w < cnt; w++)
			assert_int_equal(b.columns.workers.data[w].group, b.job.workers[w].group);
		assert_float_equal(b.columns.iteration_ns, b.job.iteration_ns, 0);
		accused += assert_same_accusations(&b);
		both_done(&b);
		test_job_done(&job);
	}
	assert_true(accused > 60);
}

/* --- reports --- */

/* Borrows: an empty arena frees nothing. */
static int lend(void *arg, uint64_t tag, struct fingerprint *ret)
{
	const struct test_job *job = arg;

	*ret = *job->fps[tag];
	arena_init(&ret->arena);
	return 0;
}

static int refuse(_unused_ void *arg, _unused_ uint64_t tag, _unused_ struct fingerprint *ret)
{
	return -EIO;
}

/* A job and its columns. */
struct scene {
	struct test_job job;
	struct columns columns;
};

static void scene_init(struct scene *scene, size_t cnt, size_t kinds, const struct fault *faults,
		       size_t fault_cnt)
{
	make_job(&scene->job, cnt, kinds, faults, fault_cnt);
	make_columns(&scene->columns, &scene->job);
}

static void scene_done(struct scene *scene)
{
	columns_done(&scene->columns);
	test_job_done(&scene->job);
}

static struct report report_of(struct scene *scene, bool exact)
{
	struct localize_options options = localize_defaults();
	struct err err = { "" };
	struct report report;

	options.exact = exact;
	if (columns_localize(&scene->columns, &options, lend, &scene->job, &report, &err) < 0)
		fail_msg("columns_localize: %s", err.text);
	return report;
}

static void a_few_of_many_are_named(void **state)
{
	const struct fault faults[] = { { NORM, 17, 40, 0.2, 1 }, { WORK, 0, 2000, 0.1, 1 } };
	struct scene scene;
	struct report report;

	(void)state;
	rng = 1;
	absent = 0;
	scene_init(&scene, 2000, 1, faults, ARRAY_SIZE(faults));
	report = report_of(&scene, false);
	assert_int_equal(report.verdict, VERDICT_ABNORMAL);
	assert_int_equal(report.finding_cnt, 2);
	assert_string_equal(report.findings[0].name, "norm");
	test_assert_ranks(&report.findings[0], "17-56");
	assert_string_equal(report.findings[1].name, "augment.py(3): augment");
	assert_true(report.findings[1].all_workers);
	assert_int_equal(report.workers_analyzed, 2000);
	assert_int_equal(report.missing_cnt, 0);
	report_done(&report);
	scene_done(&scene);
}

static void a_fingerprint_that_cannot_be_fetched_is_an_error(void **state)
{
	const struct localize_options options = localize_defaults();
	struct err err = { "" };
	struct scene scene;
	struct report report;

	(void)state;
	scene_init(&scene, 5, 1, NULL, 0);
	assert_int_equal(columns_localize(&scene.columns, &options, refuse, NULL, &report, &err),
			 -EIO);
	scene_done(&scene);
}

/* So many that not all of them are compared with all. */
static void all_peers_and_a_sample_find_the_same_in_a_large_group(void **state)
{
	const struct fault faults[] = { { NORM, 1700, 40, 0.2, 1 }, { RING, 5, 64, 0.1, 0.4 } };
	struct scene scene;

	(void)state;
	rng = 3;
	absent = 0.01;
	scene_init(&scene, 17000, 1, faults, ARRAY_SIZE(faults));
	for (int exact = 0; exact < 2; exact++) {
		struct report report = report_of(&scene, exact == 1);
		const struct finding *slow = test_find(&report, "gpu-slow");
		const struct finding *ring = test_find(&report, "slow-link");

		assert_int_equal(report.verdict, VERDICT_ABNORMAL);
		assert_non_null(slow);
		assert_non_null(ring);
		assert_in_range(slow->rank_cnt, 36, 40);
		assert_in_range(ring->rank_cnt, 1, 64);
		assert_in_range(ring->ranks[0], 5, 68);
		report_done(&report);
	}
	scene_done(&scene);
}

static void workers_alike_are_healthy(void **state)
{
	struct scene scene;
	struct report report;

	(void)state;
	rng = 2;
	absent = 0;
	scene_init(&scene, 500, 2, NULL, 0);
	report = report_of(&scene, false);
	assert_int_equal(report.verdict, VERDICT_HEALTHY);
	report_done(&report);
	scene_done(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(columns_and_fingerprints_accuse_the_same_workers),
		cmocka_unit_test(a_few_of_many_are_named),
		cmocka_unit_test(a_fingerprint_that_cannot_be_fetched_is_an_error),
		cmocka_unit_test(all_peers_and_a_sample_find_the_same_in_a_large_group),
		cmocka_unit_test(workers_alike_are_healthy),
	};

	return cmocka_run_group_tests_name("columns", tests, NULL, NULL);
}
