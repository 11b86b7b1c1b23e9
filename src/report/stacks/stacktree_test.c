/* SPDX-License-Identifier: Apache-2.0 */
#include "report/stacks/stacktree.h"

#include "base/splitmix.h"
#include "base/test_alloc.h"
#include "report/stacks/stackformats.h"
#include "report/stacks/stacktext.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

#define PYTHON(name, at)                                                                \
	{                                                                               \
		.kind = STACKS_PYTHON, .function = (name), .file = "a.py", .line = (at) \
	}
#define NATIVE(name, in)                                                \
	{                                                               \
		.kind = STACKS_NATIVE, .function = (name), .file = (in) \
	}
#define INTERPRETER(name)                                                          \
	{                                                                          \
		.kind = STACKS_NATIVE, .function = (name), .file = "/bin/python3", \
		.interpreter = true                                                \
	}

static const struct stacks_frame WAITING[] = {
	NATIVE("poll", "/lib/libc.so.6"), INTERPRETER("sock_recv"), PYTHON("receive", 7),
	INTERPRETER("_PyEval_Vector"),	  PYTHON("main", 3),	    INTERPRETER("Py_RunMain"),
	NATIVE("_start", "/bin/python3"),
};
static const struct stacks_frame COMPUTING[] = {
	{ .kind = STACKS_NATIVE, .file = "/lib/libx.so", .offset = 0x40 },
	NATIVE("_ZN2at3addERKNS_6TensorE", "/lib/libtorch.so"),
	PYTHON("forward", 9),
	PYTHON("main", 3),
};
static const struct stacks_frame POOL[] = {
	NATIVE("gomp_wait", "/lib/libgomp.so.1"),
	{ .kind = STACKS_NATIVE, .file = "/lib/libc.so.6", .offset = 0x10 },
};

static struct stacks_thread thread_of(const char *role, const struct stacks_frame *frames,
				      size_t cnt)
{
	struct stacks_thread thread = {
		.tid = 11,
		.state = 'S',
		.mixed = true,
		.why_incomplete = "",
		.runs_python = frames != POOL,
		.frames = frames,
		.frame_cnt = cnt,
	};

	(void)snprintf(thread.role, sizeof(thread.role), "%s", role);
	(void)snprintf(thread.name, sizeof(thread.name), "%s", role);
	return thread;
}

/* Three ranks: two wait, one computes. Each has two threads of a pool. */
struct job {
	struct stacks_thread threads[3][3];
	struct stacks_process processes[3];
	const struct stacks_process *pointers[3];
};

static void job_make(struct job *job)
{
	*job = (struct job){ 0 };
	for (int i = 0; i < 3; i++) {
		struct stacks_process *process = &job->processes[i];

		job->threads[i][0] = i == 1 ? thread_of("main", COMPUTING, ARRAY_SIZE(COMPUTING))
					    : thread_of("main", WAITING, ARRAY_SIZE(WAITING));
		job->threads[i][1] = job->threads[i][2] = thread_of("pool", POOL, ARRAY_SIZE(POOL));
		job->threads[i][2].tid = 12;
		*process = (struct stacks_process){
			.pid = 100 + (uint32_t)i,
			.own_pid = 100 + (uint32_t)i,
			.rank = i,
			.state = 'S',
			.command = "python a.py",
			.threads = job->threads[i],
			.thread_cnt = 3,
		};
		job->pointers[i] = process;
	}
}

static const struct stackview USUAL = { .frames = STACKVIEW_BOTH };

static void the_tree_has_who_is_where(void **state)
{
	struct stacknames names = { 0 };
	struct stacktree tree;
	struct str out = { 0 };
	struct job job;

	(void)state;
	job_make(&job);
	assert_int_equal(stacktree_make(&tree, job.pointers, 3, &USUAL, &names), 0);
	stacktree_text(&out, &tree);
	assert_string_equal(str_borrow(&out), "  running or sleeping  @0-2\n"
					      "  - main\n"
					      "    main (a.py:3)\n"
					      "    - receive (a.py:7)  @0,2|1\n"
					      "      sock_recv (python3)\n"
					      "      poll (libc.so.6)\n"
					      "    - forward (a.py:9)  @1|0,2\n"
					      "      at::add (libtorch.so)\n"
					      "      libx.so!+0x40\n"
					      "  - pool  (6 threads)\n"
					      "    gomp_wait (libgomp.so.1)\n");
	stacktree_done(&tree);
	stacknames_done(&names);
	str_done(&out);
}

enum { MANY = 60, DEEP = 6 };

/* Stacks of few functions in memory of their own, so that equal ones and almost equal ones meet. */
struct crowd {
	struct stacks_frame frames[MANY][DEEP];
	struct stacks_thread threads[MANY];
	struct stacks_process processes[MANY];
	const struct stacks_process *pointers[MANY];
};

static void crowd_make(struct crowd *crowd, uint64_t seed)
{
	static const char *const names[] = { "f", "g", "h" };

	for (uint32_t i = 0; i < MANY; i++) {
		const size_t cnt = splitmix_next(&seed) % (DEEP + 1);

		for (size_t k = 0; k < cnt; k++) {
			const uint64_t random = splitmix_next(&seed);

			crowd->frames[i][k] = (struct stacks_frame){ .kind = STACKS_PYTHON,
								     .function = names[random % 3],
								     .file = "a.py",
								     .line = random / 3 % 4 == 0 };
		}
		crowd->threads[i] = thread_of("main", crowd->frames[i], cnt);
		crowd->processes[i] = (struct stacks_process){ .rank = (int32_t)i, .state = 'S' };
		crowd->processes[i].threads = &crowd->threads[i];
		crowd->processes[i].thread_cnt = 1;
		crowd->pointers[i] = &crowd->processes[i];
	}
}

/* Whether the outermost frames of both are alike. */
static bool shares(const struct stacks_thread *a, const struct stacks_thread *b, size_t cnt)
{
	for (size_t k = 1; k <= cnt; k++) {
		const struct stacks_frame *x = &a->frames[a->frame_cnt - k];
		const struct stacks_frame *y;

		if (k > b->frame_cnt)
			return false;
		y = &b->frames[b->frame_cnt - k];
		if (strcmp(x->function, y->function) != 0 || x->line != y->line)
			return false;
	}
	return true;
}

/* The node of the outermost frames of a thread; it must be there. */
static const struct stacktree_node *node_of(const struct stacktree *tree,
					    const struct stacks_thread *thread, size_t cnt)
{
	struct stacknames names = { 0 };
	struct str text = { 0 };
	uint32_t at = tree->nodes.data[tree->nodes.data[0].first_child].first_child;

	for (size_t k = 1; k <= cnt; k++) {
		text.len = 0;
		stackframe_append(&text, &names, &thread->frames[thread->frame_cnt - k]);
		at = tree->nodes.data[at].first_child;
		while (at != UINT32_MAX &&
		       strcmp(strtab_text(&tree->labels, tree->nodes.data[at].label),
			      str_borrow(&text)) != 0)
			at = tree->nodes.data[at].next;
		assert_int_not_equal(at, UINT32_MAX);
	}
	str_done(&text);
	stacknames_done(&names);
	return &tree->nodes.data[at];
}

static void equal_stacks_are_counted_as_if_each_were_new(void **state)
{
	static struct crowd crowd;

	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct stacknames names = { 0 };
		struct stacktree tree;

		crowd_make(&crowd, seed);
		assert_int_equal(stacktree_make(&tree, crowd.pointers, MANY, &USUAL, &names), 0);
		for (size_t i = 0; i < MANY; i++) {
			const struct stacks_thread *thread = &crowd.threads[i];

			for (size_t cnt = 1; cnt <= thread->frame_cnt; cnt++) {
				const struct stacktree_node *node = node_of(&tree, thread, cnt);
				size_t twin = 0;

				for (size_t j = 0; j < MANY; j++)
					twin += shares(thread, &crowd.threads[j], cnt);
				assert_int_equal(node->members.cnt, twin);
				assert_int_equal(node->threads, twin);
			}
		}
		stacktree_done(&tree);
		stacknames_done(&names);
	}
}

static void ranks_name_processes_only_if_no_two_have_the_same(void **state)
{
	struct stacknames names = { 0 };
	struct stacktree tree;
	struct job job;

	(void)state;
	job_make(&job);
	assert_int_equal(stacktree_make(&tree, job.pointers, 3, &USUAL, &names), 0);
	assert_true(tree.by_rank);
	stacktree_done(&tree);
	job.processes[2].rank = 0;
	assert_int_equal(stacktree_make(&tree, job.pointers, 3, &USUAL, &names), 0);
	assert_false(tree.by_rank);
	stacktree_done(&tree);
	stacknames_done(&names);
}

static void a_process_that_was_not_read_is_set_apart(void **state)
{
	struct stacknames names = { 0 };
	struct stacktree tree;
	struct str out = { 0 };
	struct job job;

	(void)state;
	job_make(&job);
	job.processes[2] = (struct stacks_process){ .pid = 9, .rank = -1, .error = "gone" };
	assert_int_equal(stacktree_make(&tree, job.pointers, 3, &USUAL, &names), 0);
	stacktree_text(&out, &tree);
	assert_non_null(strstr(str_borrow(&out), "- not read  @9|100-101\n"));
	assert_string_equal(stacktree_member_word(&tree), "processes");
	stacktree_done(&tree);
	stacknames_done(&names);
	str_done(&out);
}

static void equal_threads_are_one_paragraph(void **state)
{
	const struct stackview all = { .all = true };
	struct stacknames names = { 0 };
	struct str out = { 0 };
	struct job job;

	(void)state;
	job_make(&job);
	job.threads[0][0].gil = STACKS_GIL_WAITS;
	(void)snprintf(job.threads[0][0].call, sizeof(job.threads[0][0].call), "futex");
	stacktext_process(&out, &job.processes[0], &USUAL, &names);
	assert_string_equal(str_borrow(&out),
			    "process 100, rank 0, sleeping, 3 threads: python a.py\n"
			    "\n"
			    "  thread 11 main: sleeping in futex, waits for the GIL\n"
			    "      0  poll (libc.so.6)\n"
			    "      1  sock_recv (python3)\n"
			    "      2  receive (a.py:7)\n"
			    "      3  main (a.py:3)\n"
			    "\n"
			    "  threads 11, 12 pool: sleeping\n"
			    "      0  gomp_wait (libgomp.so.1)\n");
	out.len = 0;
	stacktext_process(&out, &job.processes[0], &all, &names);
	assert_non_null(strstr(str_borrow(&out), "      6  _start (python3)\n"));
	stacknames_done(&names);
	str_done(&out);
}

static void cpp_names_lose_what_makes_them_long(void **state)
{
	static const char *const CASES[][2] = {
		{ "foo(int)", "foo" },
		{ "c10d::ProcessGroupGloo::runLoop(int)", "c10d::ProcessGroupGloo::runLoop" },
		{ "void at::parallel_for<at::native::a_long_functor_name>(long, long)",
		  "at::parallel_for<...>" },
		{ "std::vector<int>::push_back(int const&)", "std::vector<int>::push_back" },
		{ "a::(anonymous namespace)::f(int) const", "a::(anonymous namespace)::f" },
		{ "a::operator()(int) const", "a::operator()" },
		{ "bool operator<(a const&, b const&)", "operator<" },
		{ "f(int) [clone .cold]", "f" },
		{ "x", "x" },
	};
	struct str out = { 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(CASES); i++) {
		out.len = 0;
		stackframe_shorten(&out, CASES[i][0]);
		assert_string_equal(str_borrow(&out), CASES[i][1]);
	}
	str_done(&out);
}

static void folded_stacks_add_up_to_all_threads(void **state)
{
	struct stacknames names = { 0 };
	struct stacktree tree;
	struct str out = { 0 };
	struct job job;

	(void)state;
	job_make(&job);
	assert_int_equal(stacktree_make(&tree, job.pointers, 3, &USUAL, &names), 0);
	assert_int_equal(stackformat_folded(&tree, &out), 0);
	assert_string_equal(
		str_borrow(&out),
		"running or sleeping;main;main (a.py:3);receive (a.py:7);sock_recv (python3);poll "
		"(libc.so.6) 2\n"
		"running or sleeping;pool;gomp_wait (libgomp.so.1) 6\n"
		"running or sleeping;main;main (a.py:3);forward (a.py:9);at::add "
		"(libtorch.so);libx.so!+0x40 1\n");
	stacktree_done(&tree);
	stacknames_done(&names);
	str_done(&out);
}

/* All forms, with n allocations that succeed. Returns 0 or -ENOMEM. */
static int make_all(const struct job *job, long n)
{
	struct stacknames names = { 0 };
	struct stacktree tree;
	struct str out = { 0 };
	int error;

	allocations_left = n;
	error = stacktree_make(&tree, job->pointers, 3, &USUAL, &names);
	if (error == 0)
		error = stackformat_json(&tree, &names, &out);
	if (error == 0)
		error = stackformat_speedscope(&tree, &USUAL, &names, &out);
	if (error == 0)
		error = stackformat_folded(&tree, &out);
	if (error == 0)
		error = stackformat_html(&tree, &out);
	if (error == 0) {
		stacktree_text(&out, &tree);
		stacktext_process(&out, job->pointers[0], &USUAL, &names);
		error = str_error(&out);
	}
	allocations_left = -1;
	stacktree_done(&tree);
	stacknames_done(&names);
	str_done(&out);
	return error;
}

static void out_of_memory_is_an_error_everywhere(void **state)
{
	struct job job;
	int error = -ENOMEM;

	(void)state;
	job_make(&job);
	for (long n = 0; error != 0; n++) {
		error = make_all(&job, n);
		assert_true(error == 0 || error == -ENOMEM);
		assert_true(n < 5000);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_tree_has_who_is_where),
		cmocka_unit_test(equal_stacks_are_counted_as_if_each_were_new),
		cmocka_unit_test(ranks_name_processes_only_if_no_two_have_the_same),
		cmocka_unit_test(a_process_that_was_not_read_is_set_apart),
		cmocka_unit_test(equal_threads_are_one_paragraph),
		cmocka_unit_test(cpp_names_lose_what_makes_them_long),
		cmocka_unit_test(folded_stacks_add_up_to_all_threads),
		cmocka_unit_test(out_of_memory_is_an_error_everywhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
