/* SPDX-License-Identifier: Apache-2.0 */
/* summarize() on random traces: the invariants of every fingerprint, and failing allocations. */
#include "base/test_alloc.h"
#include "summarize/summarize.h"
#include "summarize/test_summary.h"

#include <errno.h>

static int trace_event_cmp(const void *a, const void *b)
{
	const struct event *x = a, *y = b;

	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	if (x->dur_ns != y->dur_ns)
		return x->dur_ns > y->dur_ns ? -1 : 1;
	return (x->name > y->name) - (x->name < y->name);
}

/* Sorts the events of the trace, which have no parents yet. */
static void sort_events(void)
{
	if (trace.event_cnt > 0)
		qsort(trace.events, trace.event_cnt, sizeof(*trace.events), trace_event_cmp);
}

static void random_trace(uint64_t seed, size_t cnt)
{
	static const char *const names[] = {
		"f",
		"g.py(3): g",
		"aten::mm",
		"aten::linear",
		"aten::copy_",
		"gloo:all_reduce",
		"ncclKernel_AllReduce",
		"run_backward",
		"XBackward0",
		"ProfilerStep#4",
		"record_param_comms",
		"cudaMalloc",
		"threading.py(9): _bootstrap",
	};
	uint64_t r = seed * 77 + 1;

	for (int i = 0; i < 5; i++)
		(void)trace_lane(&trace,
				 i < 3	 ? LANE_THREAD
				 : i < 4 ? LANE_STREAM
					 : LANE_OTHER,
				 0, i + 5);
	for (size_t i = 0; i < cnt; i++) {
		enum event_kind kind = (enum event_kind)test_below(&r, KIND_CNT);
		int64_t dur = test_below(&r, 4) == 0 ? 0 : test_below(&r, 400);

		if (seed % 3 == 0 && (kind == KIND_KERNEL || kind == KIND_GPU_MEMOP))
			kind = KIND_OPERATOR; /* a CPU-only job */
		trace_event(&trace, kind, (uint16_t)test_below(&r, 6),
			    names[test_below(&r, ARRAY_SIZE(names))], test_below(&r, 2000) - 300,
			    dur);
	}
	sort_events();
	for (size_t i = 1; i < cnt; i++) {
		if (test_below(&r, 3) == 0)
			trace.events[i].parent = (uint32_t)test_below(&r, (int64_t)i);
		if (test_below(&r, 5) == 0)
			trace_collective(&trace, (uint32_t)i, "allreduce", "g",
					 (int32_t)test_below(&r, 3), test_below(&r, 9));
	}
	for (int i = 0; i < 4; i++) {
		struct track *track =
			trace_track(&trace, (enum resource)test_below(&r, RESOURCE_CNT), 0, i + 5);

		for (int64_t t = 0; t < 2000; t += 1 + test_below(&r, 300))
			track_sample(track, t, (double)test_below(&r, 5) / 4);
	}
}

static void shares_of_any_trace_add_up_to_its_window(void **state)
{
	size_t useful = 0;

	for (uint64_t seed = 1; seed <= 1500; seed++) {
		struct summarize_options options = { .window = { .last_step = -1 } };
		struct fingerprint fp, again;
		struct err err;
		int error;

		random_trace(seed, 1 + (size_t)(seed % 60));
		options.keep_frac = seed % 2 ? 0.05 : 0;
		options.window.skip_first = seed % 5 == 0;
		error = summarize(&trace, &options, &fp, &err);
		assert_true(error == 0 || error == -ENODATA);
		if (error == 0) {
			useful++;
			check_sums(&fp);
			/* Everything is within the limits of the file format. */
			if (fingerprint_write(&fp, "/dev/null/x", &err) != -ENOTDIR)
				fail_msg("%s", err.text);
			assert_int_equal(summarize(&trace, &options, &again, &err), 0);
			assert_int_equal(fp.function_cnt, again.function_cnt);
			fingerprint_done(&fp);
			fingerprint_done(&again);
		}
		(void)trace_free(state);
		(void)trace_new(state);
	}
	assert_true(useful > 1000);
}

static void every_failing_allocation_is_reported(void **state)
{
	struct sidecar_info info = { .thief_cnt = 1, .thieves = { { .pid = 9 } } };
	const struct summarize_options options = { .window = { .last_step = -1 },
						   .sidecar = &info };

	for (uint64_t seed = 3; seed < 11; seed++) {
		int error = -ENOMEM, n;

		random_trace(seed, 80);
		for (n = 0; error == -ENOMEM; n++) {
			struct fingerprint fp;
			struct err err = { "" };

			allocations_left = n;
			error = summarize(&trace, &options, &fp, &err);
			allocations_left = -1;
			if (error == 0)
				fingerprint_done(&fp);
			else
				assert_non_null(strstr(err.text, "out of memory"));
		}
		assert_int_equal(error, 0);
		assert_true(n > 20);
		(void)trace_free(state);
		(void)trace_new(state);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(shares_of_any_trace_add_up_to_its_window),
		TEST(every_failing_allocation_is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
