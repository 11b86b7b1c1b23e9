/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One trace with a training thread, its fingerprint, and the invariants of every fingerprint, for
 * tests of the whole folder: TEST(f) gives each test a trace of its own.
 */
#pragma once

#include "summarize/summarize.h"
#include "summarize/test_trace.h"

#define TEST(f) cmocka_unit_test_setup_teardown(f, trace_new, trace_free)

_unused_ static struct trace trace;
_unused_ static uint16_t lane; /* the training thread, tid 1 */

_unused_ static int trace_new(void **state)
{
	(void)state;
	trace_start(&trace);
	lane = trace_lane(&trace, LANE_THREAD, 1, 1);
	return 0;
}

_unused_ static int trace_free(void **state)
{
	(void)state;
	trace_done(&trace);
	return 0;
}

_unused_ static uint32_t event(enum event_kind kind, const char *name, int64_t start_ns,
			       int64_t end_ns)
{
	return trace_event(&trace, kind, lane, name, start_ns, end_ns - start_ns);
}

/* The invariants of a fingerprint of any trace. */
_unused_ static void check_sums(const struct fingerprint *fp)
{
	int64_t shares = fp->rest_ns, classes = 0, threads = 0;

	for (size_t i = 0; i < fp->function_cnt; i++) {
		const struct fp_function *f = &fp->functions[i];

		assert_true(f->share_ns >= 0 && f->thread_ns >= 0);
		assert_true(f->beta_frac >= 0 && f->beta_frac <= 1);
		assert_true(i == 0 || f[-1].share_ns >= f->share_ns);
		assert_true(f->frame < fp->frame_cnt);
		shares += f->share_ns;
		threads += f->thread_ns;
	}
	for (int i = 0; i < CLASS_CNT; i++)
		classes += fp->class_ns[i];
	assert_int_equal(shares, fp->window_ns);
	assert_int_equal(classes, fp->window_ns);
	assert_true(threads <= fp->window_ns);
	for (size_t i = 0; i < fp->collective_cnt; i++) {
		const struct fp_collective *c = &fp->collectives[i];
		int64_t lead = 0;

		for (uint32_t s = 0; s < c->lead_cnt; s++)
			lead += fp->shares[c->lead_first + s].ns;
		assert_int_equal(lead, c->lead_ns);
	}
}

_unused_ static struct fingerprint summarized_with(const struct summarize_options *options)
{
	struct fingerprint fp;
	struct err err;

	assert_int_equal(summarize(&trace, options, &fp, &err), 0);
	check_sums(&fp);
	return fp;
}

_unused_ static struct fingerprint summarized(void)
{
	return summarized_with(NULL);
}

/* The function whose path of names from the root is "a/b/c"; NULL when there is none. */
_unused_ static const struct fp_function *function_at(const struct fingerprint *fp,
						      const char *path, enum event_class class)
{
	for (size_t i = 0; i < fp->function_cnt; i++) {
		char text[512] = "";

		for (uint32_t f = fp->functions[i].frame; f != FRAME_NONE;
		     f = fp->frames[f].parent) {
			char longer[512];

			(void)snprintf(longer, sizeof(longer), "%s%s%.250s", fp->frames[f].name,
				       text[0] != '\0' ? "/" : "", text);
			memcpy(text, longer, sizeof(text));
		}
		if (strcmp(text, path) == 0 && fp->functions[i].class == class)
			return &fp->functions[i];
	}
	return NULL;
}

_unused_ static void assert_share(const struct fingerprint *fp, const char *path,
				  enum event_class class, int64_t share_ns)
{
	const struct fp_function *f = function_at(fp, path, class);

	if (share_ns == 0 && f == NULL)
		return;
	if (f == NULL)
		fail_msg("no function %s", path);
	else
		assert_int_equal(f->share_ns, share_ns);
}
