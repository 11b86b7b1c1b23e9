/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Summarizes one worker: a trace in, its behavior fingerprint out.
 *
 *	window -> each thread's activity -> critical path -> functions with beta, mu,
 *	sigma -> collectives with their leads
 *
 * Source: PerfTracker section 4.2; docs/method.md, "What is the paper's".
 */
#pragma once

#include "format/fingerprint/fingerprint.h"
#include "format/sidecar/sidecar.h"
#include "summarize/collectives/reach.h"
#include "summarize/window.h"

struct summarize_options {
	struct window_options window;
	double keep_frac; /* functions below this share of the window are folded into their
			   * callers; 0: the default, 0.001 */
	const struct sidecar_info *sidecar; /* measurements of the host; may be NULL */
	const char *job_id;		    /* may be NULL */
	struct rank_hosts hosts;	    /* hosts.here NULL: the trace's host */
};

/*
 * ret is initialized by this call and must be freed by fingerprint_done() on success only. Its
 * source is trace->meta.source. Returns 0; -ENODATA with a line in err when the trace has nothing
 * to summarize; -ENOMEM. O(n log n) in the events of the trace.
 */
_must_check_ int summarize(const struct trace *trace, const struct summarize_options *options,
			   struct fingerprint *ret, struct err *err);
