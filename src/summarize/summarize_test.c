/* SPDX-License-Identifier: Apache-2.0 */
#include "summarize/summarize.h"

#include "summarize/test_summary.h"

#include <errno.h>
#include <math.h>

/* --- the training thread --- */

static void time_belongs_to_the_innermost_function(void **state)
{
	struct fingerprint fp;

	(void)state;
	event(KIND_PYTHON, "main", 0, 1000);
	event(KIND_PYTHON, "f", 100, 500);
	event(KIND_OPERATOR, "aten::view", 200, 300);
	event(KIND_PYTHON, "f", 600, 700);
	fp = summarized();
	assert_share(&fp, "main", CLASS_HOST, 500);
	assert_share(&fp, "main/f", CLASS_HOST, 400);
	assert_share(&fp, "main/f/aten::view", CLASS_HOST, 100);
	assert_int_equal(function_at(&fp, "main/f", CLASS_HOST)->executions, 2);
	assert_int_equal(function_at(&fp, "main/f", CLASS_HOST)->total_ns, 500);
	fingerprint_done(&fp);
}

static void a_child_that_crosses_its_parent_is_clipped(void **state)
{
	struct fingerprint fp;

	(void)state;
	event(KIND_PYTHON, "f", 0, 50000);
	event(KIND_PYTHON, "g", 20000, 70000);
	event(KIND_PYTHON, "h", 90000, 100000);
	fp = summarized();
	assert_share(&fp, "f", CLASS_HOST, 20000);
	assert_share(&fp, "f/g", CLASS_HOST, 30000);
	assert_share(&fp, "idle after f, before h", CLASS_IDLE, 40000);
	fingerprint_done(&fp);
}

/* g begins 10 us before f and its call end, and outlives both: it is no call of f. */
static void a_function_that_begins_before_its_elder_ends_is_not_lost(void **state)
{
	struct fingerprint fp;

	(void)state;
	event(KIND_PYTHON, "main", 0, 2000000);
	event(KIND_PYTHON, "f", 0, 100000);
	event(KIND_PYTHON, "inner", 80000, 98000);
	event(KIND_PYTHON, "g", 90000, 500000);
	event(KIND_PYTHON, "h", 400000, 450000);
	fp = summarized();
	assert_share(&fp, "main/f", CLASS_HOST, 80000);
	assert_share(&fp, "main/f/inner", CLASS_HOST, 10000);
	assert_share(&fp, "main/g", CLASS_HOST, 360000);
	assert_share(&fp, "main/g/h", CLASS_HOST, 50000);
	assert_share(&fp, "main", CLASS_HOST, 1500000);
	fingerprint_done(&fp);
}

/* Who called it is recorded: its end is wrong, not its place. */
static void a_function_that_outlives_its_caller_stays_its_call(void **state)
{
	struct fingerprint fp;
	uint32_t caller, called;

	(void)state;
	event(KIND_PYTHON, "main", 0, 2000000);
	caller = event(KIND_PYTHON, "f", 0, 100000);
	called = event(KIND_PYTHON, "g", 90000, 500000);
	trace.events[called].parent = caller;
	fp = summarized();
	assert_share(&fp, "main/f/g", CLASS_HOST, 10000);
	fingerprint_done(&fp);
}

/* Times in microseconds, rounded: g began when f ended. */
static void a_child_that_crosses_its_parent_by_rounding_follows_it(void **state)
{
	struct fingerprint fp;

	(void)state;
	event(KIND_PYTHON, "main", 0, 1000000);
	event(KIND_PYTHON, "f", 0, 500000);
	event(KIND_PYTHON, "g", 499000, 800000);
	fp = summarized();
	assert_share(&fp, "main/f", CLASS_HOST, 500000);
	assert_share(&fp, "main/g", CLASS_HOST, 300000);
	assert_null(function_at(&fp, "main/f/g", CLASS_HOST));
	fingerprint_done(&fp);
}

/* A loader's annotation is its call; others only say where time is spent. */
static void time_in_a_loaders_annotation_is_its_own(void **state)
{
	struct fingerprint fp;

	(void)state;
	event(KIND_ANNOTATION, "enumerate(DataLoader)#x.__next__", 0, 40000);
	event(KIND_ANNOTATION, "# forward #", 40000, 100000);
	event(KIND_OPERATOR, "aten::mm", 60000, 100000);
	fp = summarized();
	assert_share(&fp, "enumerate(DataLoader)#x.__next__", CLASS_HOST, 40000);
	fingerprint_done(&fp);
}

static void a_short_call_at_the_end_of_its_caller_stays_its_call(void **state)
{
	struct fingerprint fp;

	(void)state;
	event(KIND_PYTHON, "main", 0, 3000);
	event(KIND_PYTHON, "f", 1000, 2000);
	event(KIND_PYTHON, "g", 1500, 2000);
	fp = summarized();
	assert_share(&fp, "main/f/g", CLASS_HOST, 500);
	fingerprint_done(&fp);
}

static void idle_time_belongs_to_its_annotation_and_place(void **state)
{
	struct fingerprint fp;

	(void)state;
	event(KIND_ANNOTATION, "ProfilerStep#3", 0, 1000);
	event(KIND_ANNOTATION, "# sparse #", 100, 900);
	event(KIND_OPERATOR, "aten::view", 200, 300);
	event(KIND_OPERATOR, "A2A", 600, 700);
	fp = summarized();
	assert_share(&fp, "# sparse #/idle after aten::view, before A2A", CLASS_IDLE, 300);
	assert_share(&fp, "# sparse #/idle before aten::view", CLASS_IDLE, 100);
	assert_share(&fp, "# sparse #/idle after A2A", CLASS_IDLE, 200);
	assert_share(&fp, "idle before # sparse #", CLASS_IDLE, 100);
	/* Steps have no node: functions in them are placed below the caller. */
	assert_share(&fp, "# sparse #/A2A", CLASS_HOST, 100);
	fingerprint_done(&fp);
}

static void python_frames_hang_below_their_caller_on_another_thread(void **state)
{
	uint16_t autograd = trace_lane(&trace, LANE_THREAD, 1, 2);
	struct fingerprint fp;
	uint32_t caller, hook;

	(void)state;
	event(KIND_PYTHON, "main", 0, 1000);
	caller = event(KIND_PYTHON, "<built-in run_backward>", 100, 900);
	trace_event(&trace, KIND_OPERATOR, autograd, "MulBackward0", 200, 100);
	hook = trace_event(&trace, KIND_PYTHON, autograd, "hook", 400, 200);
	trace.events[hook].parent = caller;
	fp = summarized();
	assert_share(&fp, "main/<built-in run_backward>/hook", CLASS_HOST, 200);
	assert_share(&fp, "MulBackward0", CLASS_COMPUTE, 0);
	assert_share(&fp, "main/<built-in run_backward>", CLASS_HOST, 500);
	fingerprint_done(&fp);
}

/*
 * The called thread is idle until the second call: that stretch ends before the caller has begun.
 */
static void each_call_from_another_thread_hangs_below_its_caller(void **state)
{
	uint16_t autograd = trace_lane(&trace, LANE_THREAD, 1, 2);
	struct fingerprint fp;

	(void)state;
	event(KIND_PYTHON, "main", 0, 2000);
	for (int64_t t = 0; t < 2000; t += 1000) {
		uint32_t caller = event(KIND_PYTHON, "<built-in run_backward>", t + 100, t + 900);
		uint32_t hook = trace_event(&trace, KIND_PYTHON, autograd, "hook", t + 400, 200);

		trace.events[hook].parent = caller;
		trace_event(&trace, KIND_OPERATOR, autograd, "MulBackward0", t + 700, 100);
		event(KIND_PYTHON, "between", t + 920, t + 950);
	}
	fp = summarized();
	assert_share(&fp, "main/<built-in run_backward>/hook", CLASS_HOST, 400);
	assert_share(&fp, "main/<built-in run_backward>", CLASS_HOST, 1000);
	assert_share(&fp, "main", CLASS_HOST, 340);
	fingerprint_done(&fp);
}

static void a_collection_is_a_place_of_its_own(void **state)
{
	struct fingerprint fp;

	(void)state;
	event(KIND_PYTHON, "main", 0, 1000);
	event(KIND_GC, "gc", 300, 700);
	fp = summarized();
	assert_share(&fp, "gc", CLASS_HOST, 400);
	assert_share(&fp, "main", CLASS_HOST, 600);
	assert_int_equal(fp.host_stats.gc_ns, 400);
	assert_int_equal(fp.host_stats.gc_cnt, 1);
	fingerprint_done(&fp);
}

static void leaf_operators_compute_only_where_no_device_does(void **state)
{
	struct fingerprint fp;

	(void)state;
	event(KIND_OPERATOR, "aten::linear", 0, 1000);
	event(KIND_OPERATOR, "aten::t", 100, 200);
	event(KIND_OPERATOR, "aten::addmm", 300, 900);
	event(KIND_OPERATOR, "aten::expand", 400, 500);
	fp = summarized();
	assert_share(&fp, "aten::linear/aten::addmm", CLASS_COMPUTE, 500);
	assert_share(&fp, "aten::linear", CLASS_HOST, 300);
	fingerprint_done(&fp);
	trace_event(&trace, KIND_KERNEL, trace_lane(&trace, LANE_STREAM, 0, 7), "k", 950, 50);
	fp = summarized();
	assert_share(&fp, "aten::linear/aten::addmm", CLASS_HOST, 500);
	assert_share(&fp, "k", CLASS_COMPUTE, 50);
	fingerprint_done(&fp);
}

static void a_leaf_is_not_judged_by_other_threads(void **state)
{
	uint16_t other = trace_lane(&trace, LANE_THREAD, 1, 2);
	struct fingerprint fp;

	(void)state;
	event(KIND_PYTHON, "main", 0, 1000);
	event(KIND_OPERATOR, "aten::mm", 100, 500);
	trace_event(&trace, KIND_OPERATOR, other, "aten::mm", 150, 10);
	event(KIND_OPERATOR, "aten::mm", 500, 600);
	fp = summarized();
	assert_share(&fp, "main/aten::mm", CLASS_COMPUTE, 500);
	fingerprint_done(&fp);
}

static void events_without_length_are_places_only(void **state)
{
	struct fingerprint fp;

	(void)state;
	event(KIND_OPERATOR, "a", 0, 100);
	event(KIND_OPERATOR, "mark", 500, 500);
	event(KIND_OPERATOR, "b", 900, 1000);
	fp = summarized();
	assert_share(&fp, "idle after a, before mark", CLASS_IDLE, 400);
	assert_share(&fp, "idle after mark, before b", CLASS_IDLE, 400);
	fingerprint_done(&fp);
}

/* Exact calls begin with the window, so the job's own frames may be missing below. */
static void the_agents_hook_without_a_caller_is_idle_time(void **state)
{
	struct fingerprint fp;

	(void)state;
	event(KIND_PYTHON, "perftracker/_hook.py(9): begin", 0, 100);
	event(KIND_PYTHON, "perftracker/_hook.py(5): act", 20, 60);
	event(KIND_PYTHON, "train_one", 100, 300);
	event(KIND_PYTHON, "perftracker/_hook.py(9): begin", 200, 250);
	fp = summarized();
	assert_int_equal(fp.window_ns, 300);
	assert_int_equal(fp.class_ns[CLASS_IDLE], 100);
	assert_share(&fp, "train_one", CLASS_HOST, 200);
	fingerprint_done(&fp);
}

static void a_comprehension_is_part_of_the_function_around_it(void **state)
{
	struct fingerprint fp;

	(void)state;
	event(KIND_PYTHON, "data.py(7): tokenize", 0, 1000);
	event(KIND_PYTHON, "data.py(9): <listcomp>", 100, 400);
	event(KIND_PYTHON, "<built-in function sum>", 500, 900);
	event(KIND_PYTHON, "data.py(11): <genexpr>", 500, 800);
	event(KIND_PYTHON, "data.py(20): clean", 600, 700);
	event(KIND_PYTHON, "other.py(11): <genexpr>", 920, 980);
	fp = summarized();
	assert_share(&fp, "data.py(7): tokenize", CLASS_HOST, 540);
	assert_share(&fp, "data.py(7): tokenize/<built-in function sum>", CLASS_HOST, 300);
	assert_share(&fp, "data.py(7): tokenize/<built-in function sum>/data.py(20): clean",
		     CLASS_HOST, 100);
	assert_share(&fp, "data.py(7): tokenize/other.py(11): <genexpr>", CLASS_HOST, 60);
	fingerprint_done(&fp);
}

static void elements_are_the_mean_of_the_executions_that_tell(void **state)
{
	struct fingerprint fp;

	(void)state;
	for (int i = 0; i < 4; i++) {
		uint32_t mm = event(KIND_OPERATOR, "aten::mm", 100 * i, 100 * i + 50);

		event(KIND_OPERATOR, "aten::relu", 100 * i + 50, 100 * i + 100);
		if (i == 1 || i == 2)
			trace_args(&trace, mm)->elements = 10 * i;
	}
	fp = summarized();
	assert_true(function_at(&fp, "aten::mm", CLASS_COMPUTE)->elements == 15);
	assert_int_equal(function_at(&fp, "aten::mm", CLASS_COMPUTE)->executions, 4);
	assert_true(function_at(&fp, "aten::relu", CLASS_COMPUTE)->elements == -1);
	fingerprint_done(&fp);
}

/* --- whole --- */

static void device_work_hides_the_host(void **state)
{
	uint16_t stream = trace_lane(&trace, LANE_STREAM, 0, 7);
	struct fingerprint fp;
	struct track *track;

	(void)state;
	event(KIND_PYTHON, "main", 0, 1000);
	trace_event(&trace, KIND_KERNEL, stream, "void k(int)", 100, 400);
	trace_event(&trace, KIND_GPU_MEMOP, stream, "Memcpy HtoD (Pinned -> Device)", 300, 400);
	trace_event(&trace, KIND_KERNEL, stream, "ncclKernel_AllReduce", 600, 300);
	track = trace_track(&trace, RESOURCE_SM_ACTIVE, 0, -1);
	for (int i = 1; i <= 10; i++)
		track_sample(track, i * 100, 0.5);
	fp = summarized();
	assert_share(&fp, "k", CLASS_COMPUTE, 400);
	assert_share(&fp, "Memcpy HtoD (Pinned -> Device)", CLASS_MEMORY, 200);
	assert_share(&fp, "ncclKernel_AllReduce", CLASS_COMM, 200);
	assert_share(&fp, "main", CLASS_HOST, 200);
	assert_int_equal(function_at(&fp, "main", CLASS_HOST)->thread_ns, 1000);
	assert_true(function_at(&fp, "k", CLASS_COMPUTE)->mu_frac == 0.5);
	assert_true(function_at(&fp, "k", CLASS_COMPUTE)->beta_frac == 0.4);
	assert_int_equal(function_at(&fp, "k", CLASS_COMPUTE)->resource, RESOURCE_SM_ACTIVE);
	assert_true(isnan(function_at(&fp, "main", CLASS_HOST)->mu_frac));
	fingerprint_done(&fp);
}

/* The resource of a collective: a measured link has precedence over the process's TCP. */
static void a_collective_uses_the_network(void **state)
{
	static const struct {
		enum resource present, other, used;
		double mu;
	} cases[] = {
		{ RESOURCE_SOCKET_TX, RESOURCE_CPU_PROCESS, RESOURCE_SOCKET_TX, 0.25 },
		{ RESOURCE_SOCKET_TX, RESOURCE_NIC_TX, RESOURCE_NIC_TX, 0.75 },
		{ RESOURCE_SOCKET_TX, RESOURCE_PCIE_TX, RESOURCE_PCIE_TX, 0.75 },
		{ RESOURCE_CPU_PROCESS, RESOURCE_RUN_DELAY, RESOURCE_CNT, (double)NAN },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct fp_function *f;
		struct fingerprint fp;

		assert_int_equal(trace_free(state), 0);
		assert_int_equal(trace_new(state), 0);
		event(KIND_PYTHON, "main", 0, 1000);
		trace_event(&trace, KIND_KERNEL, trace_lane(&trace, LANE_STREAM, 0, 7),
			    "ncclKernel_AllReduce", 100, 800);
		track_sample(trace_track(&trace, cases[i].present, 0, -1), 1000, 0.25);
		track_sample(trace_track(&trace, cases[i].other, 0, -1), 1000, 0.75);
		fp = summarized();
		f = function_at(&fp, "ncclKernel_AllReduce", CLASS_COMM);
		assert_non_null(f);
		assert_int_equal(f->resource, cases[i].used);
		assert_true(isnan(cases[i].mu) ? isnan(f->mu_frac) : f->mu_frac == cases[i].mu);
		fingerprint_done(&fp);
	}
}

static void a_copy_uses_what_lies_between_its_ends(void **state)
{
	static const struct {
		const char *name;
		enum event_kind kind;
		enum resource used; /* RESOURCE_CNT: no sampled resource */
	} cases[] = {
		{ "Memcpy HtoD (Pageable -> Device)", KIND_GPU_MEMOP, RESOURCE_PCIE_RX },
		{ "Memcpy HtoA (Pinned -> Array)", KIND_GPU_MEMOP, RESOURCE_PCIE_RX },
		{ "Memcpy DtoH (Device -> Pinned)", KIND_GPU_MEMOP, RESOURCE_PCIE_TX },
		{ "Memcpy PtoP (Device -> Device)", KIND_GPU_MEMOP, RESOURCE_NVLINK_TX },
		{ "Memcpy DtoD (Device -> Device)", KIND_GPU_MEMOP, RESOURCE_DRAM },
		{ "Memcpy HtoH (Pageable -> Pinned)", KIND_GPU_MEMOP, RESOURCE_CNT },
		{ "Memcpy Unknown (Unknown -> Unknown)", KIND_GPU_MEMOP, RESOURCE_CNT },
		{ "Memset (Device)", KIND_GPU_MEMOP, RESOURCE_DRAM },
		{ "__amd_rocclr_fillBufferAligned", KIND_KERNEL, RESOURCE_DRAM },
	};

	for (size_t i = 0; i < 2 * ARRAY_SIZE(cases); i++) {
		enum resource used = cases[i / 2].used;
		bool sampled = i % 2 == 0 && used != RESOURCE_CNT;
		const struct fp_function *f;
		struct fingerprint fp;

		event(KIND_PYTHON, "main", 0, 4000);
		trace_event(&trace, cases[i / 2].kind, trace_lane(&trace, LANE_STREAM, 0, 7),
			    cases[i / 2].name, 1000, 1000);
		for (int r = 0; r < RESOURCE_CNT; r++) {
			if (sampled || r != (int)used)
				track_sample(trace_track(&trace, (enum resource)r, 0, -1), 4000,
					     r == (int)used ? 0.5 : 0.25);
		}
		fp = summarized();
		f = function_at(&fp, cases[i / 2].name, CLASS_MEMORY);
		assert_non_null(f);
		assert_int_equal(f->resource, sampled ? used : RESOURCE_CNT);
		assert_true(sampled ? f->mu_frac == 0.5 : isnan(f->mu_frac));
		fingerprint_done(&fp);
		(void)trace_free(state);
		(void)trace_new(state);
	}
}

/* Four collectives within a host; outer_cnt of them also leave it, for outer_us each. */
static void summarize_ring(enum resource outer, int outer_cnt, int64_t outer_us,
			   struct fingerprint *ret)
{
	uint32_t stream = trace_lane(&trace, LANE_STREAM, 0, 7);
	struct track *inside = trace_track(&trace, RESOURCE_NVLINK_TX, 0, -1);
	struct track *outside;

	event(KIND_PYTHON, "main", 0, 4000);
	for (int i = 0; i < 4; i++) {
		trace_event(&trace, KIND_KERNEL, stream, "ncclKernel_AllReduce", 1000 * i + 100,
			    800);
		for (int us = 100; us <= 900; us += 100)
			track_sample(inside, 1000 * i + us, us > 100 ? 0.75 : 0);
	}
	outside = trace_track(&trace, outer, 0, -1);
	for (int i = 0; i < 4; i++) {
		for (int us = 100; us <= 900; us += 100)
			track_sample(outside, 1000 * i + us,
				     i < outer_cnt && us > 100 && us <= 100 + outer_us ? 0.25 : 0);
	}
	*ret = summarized();
}

/* Two groups at once: the inner group's collective is the path, the NICs are the outer's. */
static void a_group_inside_a_host_is_measured_by_nvlink(void **state)
{
	static const struct rank_host list[] = { { 0, "a" }, { 1, "a" }, { 2, "b" }, { 3, "b" } };
	static const struct {
		const char *ranks;
		size_t known; /* hosts */
		enum resource used;
		double mu;
	} cases[] = {
		{ "[0, 1]", 4, RESOURCE_NVLINK_TX, 0.75 }, { "[0, 2]", 4, RESOURCE_NIC_TX, 0.625 },
		{ "[0, 1]", 0, RESOURCE_NIC_TX, 0.625 },   { "[0, 3]", 2, RESOURCE_NIC_TX, 0.625 },
		{ "", 4, RESOURCE_NIC_TX, 0.625 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct summarize_options options = {
			.window = { .last_step = -1 }, .hosts = { list, cases[i].known, "a", false }
		};
		const enum resource links[] = { RESOURCE_NVLINK_TX, RESOURCE_NIC_TX };
		const struct fp_function *f;
		struct fingerprint fp;
		uint32_t gather, ranks;

		assert_int_equal(trace_free(state), 0);
		assert_int_equal(trace_new(state), 0);
		trace.meta.world_size = 4;
		event(KIND_PYTHON, "main", 0, 1000);
		gather = trace_event(&trace, KIND_KERNEL, trace_lane(&trace, LANE_STREAM, 0, 20),
				     "ncclDevKernel_AllGather_RING_LL", 100, 800);
		trace_collective(&trace, gather, "_allgather_base", "tp", 2, 0);
		ranks = trace_name(&trace, cases[i].ranks);
		trace.args[trace.events[gather].args - 1].group_ranks = ranks;
		for (size_t k = 0; k < ARRAY_SIZE(links); k++) {
			struct track *track = trace_track(&trace, links[k], 0, -1);

			for (int us = 100; us <= 900; us += 100)
				track_sample(track, us, us == 100 ? 0 : k == 0 ? 0.75 : 0.625);
		}
		fp = summarized_with(&options);
		f = function_at(&fp, "ncclDevKernel_AllGather_RING_LL", CLASS_COMM);
		assert_int_equal(f->resource, cases[i].used);
		assert_true(f->mu_frac == cases[i].mu);
		fingerprint_done(&fp);
	}
}

/* One name, groups of both kinds: the link is that of the kind with most of the time. */
static void a_function_of_both_kinds_of_groups_is_measured_by_the_longer(void **state)
{
	static const struct rank_host list[] = { { 0, "a" }, { 1, "a" }, { 2, "b" } };
	const struct summarize_options options = { .window = { .last_step = -1 },
						   .hosts = { list, 3, "a", false } };
	const struct fp_function *f;
	struct fingerprint fp;

	(void)state;
	trace.meta.world_size = 4;
	event(KIND_PYTHON, "main", 0, 4000);
	for (int i = 0; i < 4; i++) {
		uint32_t ranks = trace_name(&trace, i == 0 ? "[0, 2]" : "[0, 1]");
		uint32_t sum =
			trace_event(&trace, KIND_KERNEL, trace_lane(&trace, LANE_STREAM, 0, 20),
				    "ncclKernel_AllReduce", 1000 * i + 100, 800);

		trace_args(&trace, sum)->group_ranks = ranks;
	}
	track_sample(trace_track(&trace, RESOURCE_NIC_TX, -1, -1), 4000, 0.5);
	track_sample(trace_track(&trace, RESOURCE_NVLINK_TX, 0, -1), 4000, 0.25);
	fp = summarized_with(&options);
	f = function_at(&fp, "ncclKernel_AllReduce", CLASS_COMM);
	assert_int_equal(f->resource, RESOURCE_NVLINK_TX);
	assert_true(f->mu_frac == 0.25);
	fingerprint_done(&fp);
}

/* Within a host NICs are irrelevant, and PCIe nearly so where NVLink is used. */
static void a_link_that_a_group_cannot_use_is_not_its_resource(void **state)
{
	static const struct {
		const char *ranks;
		enum resource one, other;
		double one_frac, other_frac;
		enum resource used;
	} cases[] = {
		{ "[0, 1]", RESOURCE_NIC_TX, RESOURCE_CPU_PROCESS, 0.5, 0.5, RESOURCE_CNT },
		{ "[0, 2]", RESOURCE_NVLINK_TX, RESOURCE_CPU_PROCESS, 0.5, 0.5, RESOURCE_CNT },
		{ "[0, 1]", RESOURCE_NVLINK_TX, RESOURCE_PCIE_TX, 0.25, 0.5, RESOURCE_NVLINK_TX },
		{ "[0, 1]", RESOURCE_NVLINK_TX, RESOURCE_PCIE_TX, 0, 0.5, RESOURCE_PCIE_TX },
		{ "[0, 2]", RESOURCE_NVLINK_TX, RESOURCE_PCIE_TX, 0.5, 0.25, RESOURCE_PCIE_TX },
		{ "[0, 2]", RESOURCE_NVLINK_TX, RESOURCE_SOCKET_TX, 0.5, 0.25, RESOURCE_SOCKET_TX },
	};
	static const struct rank_host list[] = { { 0, "a" }, { 1, "a" }, { 2, "b" } };
	const struct summarize_options options = { .window = { .last_step = -1 },
						   .hosts = { list, 3, "a", false } };

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct fingerprint fp;
		uint32_t sum, ranks;

		assert_int_equal(trace_free(state), 0);
		assert_int_equal(trace_new(state), 0);
		trace.meta.world_size = 4;
		event(KIND_PYTHON, "main", 0, 1000);
		sum = trace_event(&trace, KIND_KERNEL, trace_lane(&trace, LANE_STREAM, 0, 20),
				  "ncclKernel_AllReduce", 100, 800);
		ranks = trace_name(&trace, cases[i].ranks);
		trace_args(&trace, sum)->group_ranks = ranks;
		track_sample(trace_track(&trace, cases[i].one, 0, -1), 1000, cases[i].one_frac);
		track_sample(trace_track(&trace, cases[i].other, 0, -1), 1000, cases[i].other_frac);
		fp = summarized_with(&options);
		assert_int_equal(function_at(&fp, "ncclKernel_AllReduce", CLASS_COMM)->resource,
				 cases[i].used);
		fingerprint_done(&fp);
	}
}

/* NVLink is part of the way within a host: it is busier, but waits for the link between hosts. */
static void a_link_that_leaves_the_host_bounds_a_collective(void **state)
{
	static const struct {
		enum resource outer;
		int outer_cnt;
		int64_t outer_us;
		enum resource used;
		double mu;
	} cases[] = {
		{ RESOURCE_PCIE_TX, 4, 800, RESOURCE_PCIE_TX, 0.25 },
		{ RESOURCE_NIC_TX, 4, 800, RESOURCE_NIC_TX, 0.25 },
		/* Concurrent other traffic. */
		{ RESOURCE_PCIE_TX, 1, 800, RESOURCE_NVLINK_TX, 0.75 },
		{ RESOURCE_PCIE_TX, 4, 200, RESOURCE_NVLINK_TX, 0.75 },
		{ RESOURCE_SOCKET_TX, 4, 800, RESOURCE_NVLINK_TX, 0.75 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct fp_function *f;
		struct fingerprint fp;

		assert_int_equal(trace_free(state), 0);
		assert_int_equal(trace_new(state), 0);
		summarize_ring(cases[i].outer, cases[i].outer_cnt, cases[i].outer_us, &fp);
		f = function_at(&fp, "ncclKernel_AllReduce", CLASS_COMM);
		assert_int_equal(f->resource, cases[i].used);
		assert_true(f->mu_frac == cases[i].mu);
		fingerprint_done(&fp);
	}
}

static void small_functions_are_folded_into_their_callers(void **state)
{
	const struct summarize_options options = { .window = { .last_step = -1 },
						   .keep_frac = 0.1 };
	struct fingerprint fp;

	(void)state;
	event(KIND_PYTHON, "main", 0, 99000);
	event(KIND_PYTHON, "big", 1000, 51000);
	event(KIND_PYTHON, "small", 2000, 2500);
	event(KIND_PYTHON, "tiny", 2100, 2200);
	event(KIND_PYTHON, "alone", 99500, 100000);
	fp = summarized_with(&options);
	assert_null(function_at(&fp, "main/big/small", CLASS_HOST));
	assert_share(&fp, "main/big", CLASS_HOST, 50000);
	assert_share(&fp, "main", CLASS_HOST, 49000);
	assert_int_equal(fp.rest_ns, 1000); /* "alone" and the idle time before it */
	fingerprint_done(&fp);
}

static void an_empty_trace_is_an_error(void **state)
{
	struct fingerprint fp;
	struct err err;

	(void)state;
	assert_int_equal(summarize(&trace, NULL, &fp, &err), -ENODATA);
	assert_non_null(strstr(err.text, "found none"));
}

static void what_the_host_saw_is_kept(void **state)
{
	struct sidecar_info info = { .thief_cnt = 1,
				     .thieves = { { .pid = 9, .cpu_frac = 0.7, .comm = "hog" } },
				     .psi_cpu_frac = 0.5,
				     .psi_io_frac = 0.125,
				     .psi_memory_frac = -1,
				     .absences = { { 2, "refused" },
						   { SIDECAR_GPU_NONE, "no driver" } },
				     .absence_cnt = 2 };
	const struct summarize_options options = { .window = { .last_step = -1 },
						   .sidecar = &info,
						   .job_id = "job" };
	uint16_t other = trace_lane(&trace, LANE_THREAD, 1, 2);
	struct fingerprint fp;
	struct track *track;

	(void)state;
	event(KIND_PYTHON, "main", 0, 1000000);
	trace_event(&trace, KIND_PYTHON, other, "threading.py(1): _bootstrap", 0, 1000000);
	trace_event(&trace, KIND_PYTHON, other, "spin.py(3): spin", 100000, 800000);
	track = trace_track(&trace, RESOURCE_CPU_THREAD, -1, 1);
	track_sample(track, 1000000, 0.25);
	track = trace_track(&trace, RESOURCE_CPU_THREAD, -1, 2);
	track_sample(track, 1000000, 0.75);
	fp = summarized_with(&options);
	assert_true(fp.host_stats.cpu_frac == 0.25);
	assert_true(fp.host_stats.other_cpu_frac == 0.75);
	assert_string_equal(fp.host_stats.other_name, "spin.py(3): spin");
	assert_string_equal(fp.host_stats.thief, "pid 9 (hog) used 0.70 CPU");
	assert_int_equal(fp.absence_cnt, 2);
	assert_int_equal(fp.absences[0].gpu, 2);
	assert_string_equal(fp.absences[0].why, "refused");
	assert_int_equal(fp.absences[1].gpu, -1);
	assert_true(fp.host_stats.psi_cpu_frac == 0.5);
	assert_true(fp.host_stats.psi_io_frac == 0.125);
	assert_true(fp.host_stats.psi_memory_frac < 0);
	assert_string_equal(fp.job_id, "job");
	assert_true(function_at(&fp, "main", CLASS_HOST)->mu_frac == 0.25);
	fingerprint_done(&fp);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(time_belongs_to_the_innermost_function),
		TEST(a_child_that_crosses_its_parent_is_clipped),
		TEST(a_function_that_begins_before_its_elder_ends_is_not_lost),
		TEST(a_function_that_outlives_its_caller_stays_its_call),
		TEST(a_child_that_crosses_its_parent_by_rounding_follows_it),
		TEST(time_in_a_loaders_annotation_is_its_own),
		TEST(a_short_call_at_the_end_of_its_caller_stays_its_call),
		TEST(idle_time_belongs_to_its_annotation_and_place),
		TEST(python_frames_hang_below_their_caller_on_another_thread),
		TEST(each_call_from_another_thread_hangs_below_its_caller),
		TEST(a_collection_is_a_place_of_its_own),
		TEST(leaf_operators_compute_only_where_no_device_does),
		TEST(a_leaf_is_not_judged_by_other_threads),
		TEST(events_without_length_are_places_only),
		TEST(the_agents_hook_without_a_caller_is_idle_time),
		TEST(a_comprehension_is_part_of_the_function_around_it),
		TEST(elements_are_the_mean_of_the_executions_that_tell),
		TEST(device_work_hides_the_host),
		TEST(a_collective_uses_the_network),
		TEST(a_copy_uses_what_lies_between_its_ends),
		TEST(a_group_inside_a_host_is_measured_by_nvlink),
		TEST(a_function_of_both_kinds_of_groups_is_measured_by_the_longer),
		TEST(a_link_that_a_group_cannot_use_is_not_its_resource),
		TEST(a_link_that_leaves_the_host_bounds_a_collective),
		TEST(small_functions_are_folded_into_their_callers),
		TEST(an_empty_trace_is_an_error),
		TEST(what_the_host_saw_is_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
