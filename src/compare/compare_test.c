/* SPDX-License-Identifier: Apache-2.0 */
#include "compare/compare.h"

#include "base/test_alloc.h"
#include "base/test_random.h"
#include "base/vec.h"
#include "format/fingerprint/funckey.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

#define RANKS_MAX 8
#define ITERATIONS 6

/* --- runs written down by hand --- */

struct worker {
	struct fingerprint fp;
	VEC(struct fp_frame) frames;
	VEC(struct fp_function) functions;
	struct fp_iteration iterations[ITERATIONS];
};

struct run {
	struct worker workers[RANKS_MAX];
	const struct fingerprint *fps[RANKS_MAX];
	size_t cnt;
};

/* Set up for each test with one worker on both sides. */
static struct run before, after;
static struct comparison result;

static void run_init(struct run *run, size_t cnt)
{
	run->cnt = cnt;
	for (size_t i = 0; i < cnt; i++) {
		struct worker *w = &run->workers[i];

		*w = (struct worker){ 0 };
		fingerprint_init(&w->fp);
		w->fp.rank = (int)i;
		w->fp.iterations_known = true;
		w->fp.has_stacks = true;
		w->fp.iterations = w->iterations;
		w->fp.iteration_cnt = ITERATIONS;
		run->fps[i] = &w->fp;
	}
}

static void run_done(struct run *run)
{
	for (size_t i = 0; i < run->cnt; i++) {
		vec_done(&run->workers[i].frames);
		vec_done(&run->workers[i].functions);
	}
	run->cnt = 0;
}

static void both_init(size_t cnt)
{
	run_init(&before, cnt);
	run_init(&after, cnt);
}

static int both_start(void **state)
{
	(void)state;
	both_init(1);
	return 0;
}

static int both_done(void **state)
{
	(void)state;
	comparison_done(&result);
	run_done(&before);
	run_done(&after);
	return 0;
}

/* The frame of a name below parent (FRAME_NONE: a root), created if new. */
static uint32_t frame(struct worker *w, uint32_t parent, enum event_kind kind, const char *name)
{
	struct str part = { 0 };
	struct fp_frame f = { .parent = parent, .kind = (uint8_t)kind, .name = name };

	funckey_part(kind, name, &part);
	f.key = funckey_under(parent == FRAME_NONE ? NULL : &w->frames.data[parent].key,
			      str_borrow(&part));
	str_done(&part);
	for (uint32_t i = 0; i < w->frames.cnt; i++) {
		if (funckey_equal(w->frames.data[i].key, f.key))
			return i;
	}
	assert_int_equal(vec_push(&w->frames, f), 0);
	return (uint32_t)w->frames.cnt - 1;
}

/* "main/forward/linear": Python functions, the last one an operator; a single name: a kernel. */
static struct fp_function *spend_on(struct worker *w, const char *path, double ms, double spread_ms)
{
	static char names[4096][64]; /* outlive the fingerprints */
	static size_t name_cnt;
	enum event_kind leaf = strchr(path, '/') != NULL ? KIND_OPERATOR : KIND_KERNEL;
	uint32_t at = FRAME_NONE;
	struct fp_function f = { .class = leaf == KIND_KERNEL ? CLASS_COMPUTE : CLASS_HOST,
				 .executions = ITERATIONS,
				 .resource = RESOURCE_CNT };

	while (*path != '\0') {
		size_t len = strcspn(path, "/");
		char *name = names[name_cnt++ % ARRAY_SIZE(names)];

		(void)snprintf(name, sizeof(names[0]), "%.*s", (int)len, path);
		at = frame(w, at, path[len] == '/' ? KIND_PYTHON : leaf, name);
		path += len + (path[len] == '/');
	}
	f.frame = at;
	f.share_ns = f.thread_ns = llround(ms * 1e6 * ITERATIONS);
	if (leaf == KIND_KERNEL)
		f.thread_ns = 0;
	f.spread_ns = spread_ms * 1e6;
	assert_int_equal(vec_push(&w->functions, f), 0);
	return &w->functions.data[w->functions.cnt - 1];
}

/* On all workers of a run, with small differences. */
static void spend(struct run *run, const char *path, double ms)
{
	for (size_t i = 0; i < run->cnt; i++)
		(void)spend_on(&run->workers[i], path, ms * (1 + 0.001 * (double)i), ms * 0.01);
}

/* Sets the length of windows and iterations to the sum of functions and rest. */
static void run_finish(struct run *run, double rest_ms)
{
	for (size_t i = 0; i < run->cnt; i++) {
		struct worker *w = &run->workers[i];

		w->fp.frames = w->frames.data;
		w->fp.frame_cnt = w->frames.cnt;
		w->fp.functions = w->functions.data;
		w->fp.function_cnt = w->functions.cnt;
		w->fp.rest_ns = llround(rest_ms * 1e6 * ITERATIONS);
		w->fp.window_ns = w->fp.rest_ns;
		for (size_t f = 0; f < w->functions.cnt; f++) {
			w->fp.window_ns += w->functions.data[f].share_ns;
			w->fp.class_ns[w->functions.data[f].class] += w->functions.data[f].share_ns;
		}
		for (size_t k = 0; k < ITERATIONS; k++)
			w->iterations[k].dur_ns = w->fp.window_ns / ITERATIONS +
						  (k % 2 == 0 ? 1 : -1) * w->fp.window_ns / 1000;
	}
}

static struct comparison compared(void)
{
	struct compare_run a = { before.fps, before.cnt, "a" };
	struct compare_run b = { after.fps, after.cnt, "b" };
	struct compare_options options = compare_defaults();
	struct comparison c;
	double sum;

	run_finish(&before, 0.5);
	run_finish(&after, 0.25);
	assert_int_equal(compare_runs(&a, &b, &options, &c, NULL), 0);
	sum = c.small_ms + c.rest_ms;
	for (size_t i = 0; i < c.change_cnt; i++)
		sum += c.changes[i].delta_ms;
	/* Invariant: nothing is lost or counted twice. */
	assert_true(fabs(sum - c.delta_ms) < 1e-6);
	return c;
}

/* The only change of a name; fails if there is none or more than one. */
static const struct change *change_of(const struct comparison *c, const char *name)
{
	const struct change *found = NULL;

	for (size_t i = 0; i < c->change_cnt; i++) {
		if (strcmp(c->changes[i].name, name) != 0)
			continue;
		if (found != NULL)
			fail_msg("two changes of %s", name);
		found = &c->changes[i];
	}
	if (found == NULL)
		fail_msg("no change of %s", name);
	return found;
}

static void assert_ms(double found, double expected)
{
	if (!(fabs(found - expected) <= 0.01 * fabs(expected) + 1e-9))
		fail_msg("expected %g ms, found %g ms", expected, found);
}

static void a_function_that_grew_explains_the_iteration(void **state)
{
	const struct change *grew;

	(void)state;
	both_init(4);
	spend(&before, "main/forward/aten::mm", 60);
	spend(&before, "main/load/read", 20);
	spend(&after, "main/forward/aten::mm", 60);
	spend(&after, "main/load/read", 45);
	result = compared();
	assert_int_equal(result.verdict, COMPARISON_SLOWER);
	assert_int_equal(result.confidence, CONFIDENCE_MEDIUM);
	assert_int_equal(result.change_cnt, 1);
	grew = change_of(&result, "read");
	assert_int_equal(grew->kind, CHANGE_GREW);
	assert_ms(grew->delta_ms, 25);
	assert_ms(grew->before.ms, 20);
	assert_true(grew->significant);
	assert_int_equal(grew->stack_cnt, 2);
	assert_string_equal(grew->stack[1], "load");
}

static void runs_of_other_lengths_are_compared_per_iteration(void **state)
{
	(void)state;
	spend(&before, "main/forward/aten::mm", 60);
	spend(&after, "main/forward/aten::mm", 30);
	after.workers[0].fp.iteration_cnt = ITERATIONS / 2; /* 3 iterations of 60 ms */
	result = compared();
	assert_int_equal(result.verdict, COMPARISON_SAME);
	assert_int_equal(result.change_cnt, 0);
}

/* Like a lost torch.compile: one line, not one per part. */
static void a_removed_subtree_is_reported_at_its_top(void **state)
{
	const struct change *gone;

	(void)state;
	both_init(3);
	for (int i = 0; i < 20; i++) {
		char path[64];

		(void)snprintf(path, sizeof(path), "main/fwd/CompiledFunction/fused_%c", 'a' + i);
		spend(&before, path, 2);
	}
	spend(&before, "main/data/copy", 30);
	spend(&after, "main/data/copy", 30);
	spend(&after, "main/fwd/linear/aten::addmm", 50);
	spend(&after, "main/fwd/linear/aten::gelu", 20);
	result = compared();
	assert_int_equal(result.change_cnt, 2);
	gone = change_of(&result, "CompiledFunction");
	assert_int_equal(gone->kind, CHANGE_VANISHED);
	assert_int_equal(gone->function_cnt, 21);
	assert_ms(gone->delta_ms, -40);
	assert_int_equal(change_of(&result, "linear")->kind, CHANGE_APPEARED);
	assert_ms(change_of(&result, "linear")->delta_ms, 70);
}

static void a_kernel_of_another_library_is_renamed_by_its_launcher(void **state)
{
	const struct change *renamed;
	struct fp_function *f;

	(void)state;
	f = spend_on(&before.workers[0], "volta_sgemm_128x64_tn", 40, 0.1);
	f->launched_by = "aten::linear > aten::addmm";
	f = spend_on(&before.workers[0], "softmax_warp_forward", 40, 0.1);
	f->launched_by = "aten::softmax";
	f = spend_on(&after.workers[0], "cutlass_tensorop_gemm", 25, 0.1);
	f->launched_by = "aten::linear > aten::addmm";
	f = spend_on(&after.workers[0], "softmax_warp_backward", 41, 0.1);
	f->launched_by = "aten::_softmax_backward";
	result = compared();
	renamed = change_of(&result, "cutlass_tensorop_gemm");
	/* 25 and 40 ms are not similar, 41 and 40 not the same place. */
	assert_int_equal(renamed->kind, CHANGE_APPEARED);
	assert_int_equal(change_of(&result, "softmax_warp_backward")->kind, CHANGE_APPEARED);
	comparison_done(&result);
	after.workers[0].functions.data[0].share_ns = llround(35e6 * ITERATIONS);
	memset(after.workers[0].fp.class_ns, 0, sizeof(after.workers[0].fp.class_ns));
	result = compared();
	renamed = change_of(&result, "cutlass_tensorop_gemm");
	assert_int_equal(renamed->kind, CHANGE_RENAMED);
	assert_string_equal(renamed->old_name, "volta_sgemm_128x64_tn");
	assert_ms(renamed->delta_ms, -5);
}

static void below_a_renamed_script_all_is_still_itself(void **state)
{
	(void)state;
	spend(&before, "train.py(3): main/forward/aten::mm", 60);
	spend(&before, "train.py(3): main/load/read", 20);
	spend(&after, "train_v2.py(7): main/forward/aten::mm", 60);
	spend(&after, "train_v2.py(7): main/load/read", 45);
	result = compared();
	assert_int_equal(change_of(&result, "train_v2.py(7): main")->kind, CHANGE_RENAMED);
	assert_ms(change_of(&result, "train_v2.py(7): main")->after.tree_ms, 105);
	assert_int_equal(change_of(&result, "read")->kind, CHANGE_GREW);
	assert_ms(change_of(&result, "read")->delta_ms, 25);
	assert_int_equal(result.change_cnt, 2);
}

static void what_a_new_wrapper_calls_has_moved(void **state)
{
	const struct change *moved;

	(void)state;
	spend(&before, "main/forward/aten::mm", 40);
	spend(&before, "main/forward/aten::gelu", 20);
	spend(&after, "main/forward/hook/aten::mm", 40);
	spend(&after, "main/forward/hook/aten::gelu", 30);
	result = compared();
	moved = change_of(&result, "aten::mm");
	assert_int_equal(moved->kind, CHANGE_MOVED);
	assert_ms(moved->delta_ms, 0);
	assert_string_equal(moved->stack[moved->stack_cnt - 1], "hook");
	assert_string_equal(moved->old_stack[moved->old_stack_cnt - 1], "forward");
	assert_int_equal(change_of(&result, "aten::gelu")->kind, CHANGE_MOVED);
	assert_ms(change_of(&result, "aten::gelu")->delta_ms, 10);
}

static void thread_time_shows_work_that_the_device_hides(void **state)
{
	struct fp_function *f;

	(void)state;
	spend(&before, "gemm", 100);
	spend(&after, "gemm", 100);
	f = spend_on(&before.workers[0], "main/fwd/CompiledFunction", 0, 0);
	f->thread_ns = llround(30e6 * ITERATIONS);
	result = compared();
	assert_int_equal(result.verdict, COMPARISON_SAME);
	/* main and fwd have no other functions: all of it is removed. */
	assert_int_equal(result.change_cnt, 1);
	assert_int_equal(result.changes[0].kind, CHANGE_VANISHED);
	assert_ms(result.changes[0].before.thread_ms, 30);
}

static void jobs_that_are_not_alike_are_noted(void **state)
{
	bool noted = false;

	(void)state;
	run_init(&before, 1);
	run_init(&after, 2);
	spend(&before, "main/a/aten::mm", 60);
	spend(&after, "other/z/softmax", 90);
	result = compared();
	assert_true(result.common_frac < 0.05);
	for (size_t i = 0; i < result.note_cnt; i++)
		noted |= strstr(result.notes[i], "one job?") != NULL;
	assert_true(noted);
}

static void one_iteration_of_one_worker_proves_nothing(void **state)
{
	(void)state;
	spend(&before, "main/a/aten::mm", 60);
	spend(&after, "main/a/aten::mm", 90);
	before.workers[0].fp.iteration_cnt = after.workers[0].fp.iteration_cnt = 1;
	result = compared();
	assert_int_equal(result.verdict, COMPARISON_UNCERTAIN);
	assert_int_equal(result.basis, 0);
	assert_true(isnan(result.p));
	assert_false(result.changes[0].significant);
	assert_int_equal(result.changes[0].confidence, CONFIDENCE_LOW);
}

static void repeats_speak_louder_than_ranks(void **state)
{
	static const double noisy[] = { 60, 70, 80 }, slower[] = { 75, 65, 85 };

	(void)state;
	both_init(3);
	for (size_t i = 0; i < 3; i++) {
		before.workers[i].fp.rank = after.workers[i].fp.rank = 0;
		(void)spend_on(&before.workers[i], "main/a/aten::mm", noisy[i], 0.01);
		(void)spend_on(&after.workers[i], "main/a/aten::mm", slower[i], 0.01);
	}
	result = compared();
	assert_int_equal(result.basis, BASIS_WINDOWS);
	assert_int_equal(result.before.window_cnt, 3);
	assert_int_equal(result.before.worker_cnt, 1);
	assert_int_equal(result.verdict, COMPARISON_UNCERTAIN);
}

static void three_repeats_give_high_confidence(void **state)
{
	static const double noisy[] = { 60, 61, 59 };

	(void)state;
	both_init(3);
	for (size_t i = 0; i < 3; i++) {
		before.workers[i].fp.rank = after.workers[i].fp.rank = 0;
		(void)spend_on(&before.workers[i], "main/a/aten::mm", noisy[i], 0.01);
		(void)spend_on(&after.workers[i], "main/a/aten::mm", noisy[i] + 30, 0.01);
	}
	result = compared();
	assert_int_equal(result.verdict, COMPARISON_SLOWER);
	assert_int_equal(result.confidence, CONFIDENCE_HIGH);
	assert_int_equal(result.changes[0].confidence, CONFIDENCE_HIGH);
}

/* --- chance --- */

/* Approximately normal, mean 0, variance 1: twelve uniforms. */
static double noise(uint64_t *state)
{
	double sum = 0;

	for (int i = 0; i < 12; i++)
		sum += test_uniform(state);
	return sum - 6;
}

/*
 * Functions of 2 to 12 ms whose iterations vary by 20 %, drawn at random; mean and spread as
 * measured.
 */
static void spend_at_random(struct run *run, uint64_t *state)
{
	for (size_t w = 0; w < run->cnt; w++) {
		for (int f = 0; f < 20; f++) {
			double ms[ITERATIONS], mean = 0, squares = 0;
			char path[32];

			for (int i = 0; i < ITERATIONS; i++) {
				ms[i] = (2 + f / 2.0) * (1 + 0.2 * noise(state));
				ms[i] = MAX(ms[i], 0.1);
				mean += ms[i] / ITERATIONS;
			}
			for (int i = 0; i < ITERATIONS; i++)
				squares += (ms[i] - mean) * (ms[i] - mean);
			(void)snprintf(path, sizeof(path), "main/f/op_%c", 'a' + f);
			(void)spend_on(&run->workers[w], path, mean,
				       sqrt(squares / (ITERATIONS - 1)));
		}
	}
}

/* Number of comparisons, of 200 pairs of equal runs, with a significant change. */
static size_t false_alarms(size_t ranks)
{
	uint64_t state = 17 + ranks;
	size_t alarms = 0;

	for (int round = 0; round < 200; round++) {
		struct comparison c;
		bool any = false;

		both_init(ranks);
		spend_at_random(&before, &state);
		spend_at_random(&after, &state);
		c = compared();
		for (size_t i = 0; i < c.change_cnt; i++)
			any |= c.changes[i].significant;
		alarms += any;
		comparison_done(&c);
		(void)both_done(NULL);
	}
	return alarms;
}

static void chance_is_rarely_taken_for_a_change(void **state)
{
	(void)state;
	assert_in_range(false_alarms(1), 0, 10);
	assert_in_range(false_alarms(4), 0, 10);
}

/* One function takes twice as long: found in nearly all of 50 such pairs. */
static void a_change_is_found_among_the_noise(void **state)
{
	uint64_t seed = 5;
	size_t found = 0;

	(void)state;
	for (int round = 0; round < 50; round++) {
		struct comparison c;

		both_init(4);
		spend_at_random(&before, &seed);
		spend_at_random(&after, &seed);
		for (size_t w = 0; w < 4; w++) {
			struct fp_function *f = &after.workers[w].functions.data[19];

			f->share_ns *= 2;
		}
		c = compared();
		for (size_t i = 0; i < c.change_cnt; i++)
			found += strcmp(c.changes[i].name, "op_t") == 0 && c.changes[i].significant;
		comparison_done(&c);
		(void)both_done(NULL);
	}
	assert_in_range(found, 45, 50);
}

/* Random trees, randomly modified: the sums hold for any matching (in compared()). */
static void anything_adds_up(void **state)
{
	static const char *const words[] = { "a", "b", "loadData", "loadBatch", "x_y", "x_z" };
	uint64_t seed = 3;

	(void)state;
	for (int round = 0; round < 300; round++) {
		struct comparison c;

		both_init(1 + test_random(&seed) % 3);
		for (int side = 0; side < 2; side++) {
			for (uint64_t i = test_random(&seed) % 30; i > 0; i--) {
				struct str path = { 0 };

				for (uint64_t d = test_random(&seed) % 5 + 1; d > 0; d--)
					str_printf(&path, "%s%s", path.len > 0 ? "/" : "",
						   words[test_random(&seed) % ARRAY_SIZE(words)]);
				spend(side == 0 ? &before : &after, str_borrow(&path),
				      (double)(test_random(&seed) % 1000) / 50);
				str_done(&path);
			}
		}
		c = compared();
		comparison_done(&c);
		(void)both_done(NULL);
	}
}

static void nothing_to_compare_is_an_error(void **state)
{
	struct compare_run none = { NULL, 0, "empty" };
	struct compare_options options = compare_defaults();
	struct comparison c;
	struct err err;

	(void)state;
	assert_int_equal(compare_runs(&none, &none, &options, &c, &err), -ENODATA);
	assert_non_null(strstr(err.text, "empty"));
}

static void every_failing_allocation_is_reported(void **state)
{
	struct compare_options options = compare_defaults();
	struct compare_run a, b;
	struct comparison c;
	struct err err;
	int error = -ENOMEM, n;

	(void)state;
	both_init(2);
	spend(&before, "main/forward/aten::mm", 40);
	spend(&before, "main/load/read", 40);
	spend(&before, "volta_sgemm_tn", 10);
	spend(&after, "main/forward/hook/aten::mm", 40);
	spend(&after, "main/loadBatch/read", 50);
	spend(&after, "ampere_sgemm_tn", 10);
	run_finish(&before, 0);
	run_finish(&after, 0);
	a = (struct compare_run){ before.fps, before.cnt, "a" };
	b = (struct compare_run){ after.fps, after.cnt, "b" };
	for (n = 0; error == -ENOMEM; n++) {
		allocations_left = n;
		error = compare_runs(&a, &b, &options, &c, &err);
		allocations_left = -1;
	}
	assert_int_equal(error, 0);
	assert_true(n > 20);
	comparison_done(&c);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, both_start, both_done)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_function_that_grew_explains_the_iteration),
		TEST(runs_of_other_lengths_are_compared_per_iteration),
		TEST(a_removed_subtree_is_reported_at_its_top),
		TEST(a_kernel_of_another_library_is_renamed_by_its_launcher),
		TEST(below_a_renamed_script_all_is_still_itself),
		TEST(what_a_new_wrapper_calls_has_moved),
		TEST(thread_time_shows_work_that_the_device_hides),
		TEST(jobs_that_are_not_alike_are_noted),
		TEST(one_iteration_of_one_worker_proves_nothing),
		TEST(repeats_speak_louder_than_ranks),
		TEST(three_repeats_give_high_confidence),
		TEST(chance_is_rarely_taken_for_a_change),
		TEST(a_change_is_found_among_the_noise),
		TEST(anything_adds_up),
		TEST(nothing_to_compare_is_an_error),
		TEST(every_failing_allocation_is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
