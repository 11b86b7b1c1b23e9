/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a worker's flight log to the trace of one window, on the wall clock, in the form
 * that the reader of Kineto's files gives: operators, annotations and collectives are
 * copied, Python functions are reconstructed from sampled stacks.
 *
 * Samples: frames common to two neighboring samples of a thread lasted from the first to
 * the second. Where the samples differ, the stack changed once between them: at the mark
 * of the training thread for this change (a loader's frames begin at MARK_DATALOADER),
 * else in the middle, moved to where operators nest least, so that no frame ends inside
 * an operator that outlives it. Threads other than the training thread are not recorded
 * while they are blocked: their stacks change within the last period before the second
 * sample. A thread that was not sampled for
 * more than 20 periods (at least 50 ms) has no stack from half a period behind the
 * last sample to half a period before the next; at the window's ends up to two
 * periods are filled. A period is the median distance of the sampler's looks.
 *
 * A thread whose Python calls were traced exactly has those calls and no samples; C
 * functions that were traced alone nest inside the frames of samples. On a thread with
 * samples, torch's own scopes ("Optimizer.step#SGD.step") have no duration: window_find()
 * needs their end, and as levels of the stack they would only separate functions.
 * Source: model/event.h for the events; Kineto's python_tracer for the names.
 */
#pragma once

#include "base/err.h"
#include "format/flightlog/flightlog.h"
#include "format/sidecar/sidecar.h"
#include "model/event.h"
#include "read/reader.h"

/*
 * start_ns, end_ns: the window, CLOCK_MONOTONIC. Python frames and operators are
 * cut to it; a collective that lies in it in part is kept whole. Returns 0,
 * -EINVAL (no window) or -ENOMEM with a line in err. *ret is written on success
 * only; give it to trace_done() then. O(n log n) of the log's records.
 */
_must_check_ int flight_trace(const struct flightlog *log, int64_t start_ns, int64_t end_ns,
			      struct trace *ret, struct err *err);

/*
 * Adds RESOURCE_CPU_THREAD (and, for the training thread, RUN_DELAY) tracks of the
 * log's own samples for threads that the trace has none of: call it after
 * sidecar_apply(). Returns 0 or -ENOMEM; the trace stays valid.
 */
_must_check_ int flight_tracks(const struct flightlog *log, int64_t start_ns, int64_t end_ns,
			       struct trace *trace);

/*
 * The trace of the sidecar's window, with what the sidecar adds. Without a sidecar (NULL): of
 * the windows that the log recorded, else of all its samples. The sidecar's clocks and host
 * replace the log's. source: for meta.source and messages. Returns 0 or -errno with a line in
 * err; *ret is written on success only.
 */
_must_check_ int flight_window_trace(struct flightlog *log, const struct sidecar *sidecar,
				     const char *source, struct trace *ret, struct err *err);

/* For the row in reader.c: flight_window_trace() of a file. */
_must_check_ int flight_read_input(const struct reader_input *input, struct trace *ret,
				   struct err *err);
