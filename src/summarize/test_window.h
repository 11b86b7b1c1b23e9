/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of window_find(): a trace that each test fills, and the window found in it. */
#pragma once

#include "summarize/test_trace.h"
#include "summarize/window.h"

static struct trace trace;

static int trace_new(void **state)
{
	(void)state;
	trace_start(&trace);
	return 0;
}

static int trace_free(void **state)
{
	(void)state;
	trace_done(&trace);
	return 0;
}

/* The caller frees it by window_done(). */
static inline struct window found(const struct window_options *options)
{
	struct window window;
	struct err err;

	assert_int_equal(window_find(&trace, options, &window, &err), 0);
	return window;
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, trace_new, trace_free)
