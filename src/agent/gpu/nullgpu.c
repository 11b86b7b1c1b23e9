/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A template of a back end, without a GPU: copy this file for another vendor, rename each "null",
 * and fill in the functions as their comments describe. Then name its table in gputrace.h, put it
 * into gputrace_all (gputrace.c) and the file into meson.build; docs/gpu-vendors.md goes through it
 * step by step. No other part of PerfTracker depends on the vendor: kernels become CLASS_COMPUTE,
 * or CLASS_COMM by their names (summarize/classify.c has the lists: add the names of a new
 * collective library there, and of calls that allocate memory).
 *
 * How vendors' interfaces map to the table:
 *
 *	here		CUPTI				rocprofiler-sdk			PTI
 *	start		Subscribe, Enable(kind)		start_context			ViewEnable
 *	drain		buffers that complete() queued	the buffer's callback		ViewGetNextRecord
 *	stop		Disable, FlushAll		stop_context, flush_buffer	ViewDisable, FlushAllViews
 *	close		Unsubscribe, Finalize		nothing				nothing
 *	correlation	correlationId			correlation_id.internal		_correlation_id
 *	clock		the agent's callback		rocprofiler_get_timestamp	ptiViewGetTimestamp
 */
#include "agent/gpu/gputrace.h"

#include <errno.h>

/* One per process. A real back end keeps its functions, found by dlsym(), here. */
static struct {
	const struct gputrace_sink *sink; /* while it is started */
	bool forked;
} null;

/*
 * Look whether the vendor's library is mapped by the job (dlopen with RTLD_NOLOAD, by SONAME:
 * a second copy would be another library) and whether the job made a context on
 * a device: a process that merely links to a GPU library must not be attached to. Then look up
 * all functions; one that is missing is -ENOTSUP, with its name in ret_why.
 */
static int null_probe(char ret_why[static GPUTRACE_WHY_MAX])
{
	if (null.forked) {
		gputrace_why(ret_why, "a forked child", NULL);
		return -ENOTSUP;
	}
	gputrace_why(ret_why, "no null GPU is in use", NULL);
	return -ENOENT;
}

/*
 * Map the buffers, once; register a clock that reads CLOCK_MONOTONIC, or note the offset to
 * it; enable kernels, copies, sets, waits and the calls that launch. Kinds that
 * serialize kernels are never enabled. If another tool has the device, -EBUSY.
 */
static int null_start(const struct gputrace_sink *sink,
		      _unused_ char ret_why[static GPUTRACE_WHY_MAX])
{
	null.sink = sink;
	sink->device("Null GPU");
	return 0;
}

/*
 * For each record that the vendor's callback has queued (the callback itself only
 * queues: it may run on a thread of the job) one call of the sink. What has no
 * times is null.sink->lose(GPUTRACE_UNTIMED, 1). Names are given to the sink once and
 * their numbers remembered by pointer.
 */
static size_t null_drain(_unused_ size_t most)
{
	return 0;
}

/* Disable the kinds, then flush, so that the last buffers are in the queue. */
static void null_stop(void)
{
}

/* Detach, where the vendor's library slows the job down while it is attached. */
static int null_close(_unused_ char ret_why[static GPUTRACE_WHY_MAX])
{
	null.sink = NULL;
	return 0;
}

static void null_forked(void)
{
	null.forked = true;
}

const struct gputrace_ops gputrace_null = {
	.name = "null",
	.probe = null_probe,
	.start = null_start,
	.drain = null_drain,
	.stop = null_stop,
	.close = null_close,
	.forked = null_forked,
};
