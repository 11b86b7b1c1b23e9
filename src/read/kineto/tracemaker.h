/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chrome traces of other writers than Kineto, told by the names of their processes.
 *
 * Traces of JAX's profiler (jax.profiler.trace: PLUGIN/profile/TIME/HOST.trace.json.gz), which have
 * no categories: an event is told by its name and by the name of its process. Read is the host's
 * side: frames of Python, the calls of the runtime, work on its threads, and iterations that
 * StepTraceAnnotation marked. Devices are not: tracemaker_check() refuses such a file, since a
 * report of its host alone would call the devices idle. Likewise
 * refused is the trace_view.json of Ascend's profiler.
 * Source: files of jax 0.10.2 on CPUs; openxla/xla, tsl/profiler/convert/trace_container.
 */
#pragma once

#include "base/err.h"
#include "model/event.h"

/* Of one file. Zeroed at first. */
struct tracemaker {
	bool jax_host, jax_device; /* processes "/host:...", "/device:..." were named */
	bool ascend;		   /* "Ascend Hardware" was */
};

/* A process of the trace has this name. */
void tracemaker_add_process(struct tracemaker *maker, const char *name);

/*
 * "$train.py:12 main" becomes "train.py(12): main" and "$time sleep" "<built-in function sleep>", in
 * ret[cap]. False: name is no frame of JAX's.
 */
bool tracemaker_name_frame(const char *name, char *ret, size_t cap);

/* The kind of an event without a category; KIND_OTHER outside of JAX's traces. */
enum event_kind tracemaker_kind(const struct tracemaker *maker, const char *name);

/*
 * Links the frames of a finished trace by their times: they have no ids. What XLA's threads run on
 * CPUs become kernels.
 */
void tracemaker_link(const struct tracemaker *maker, struct trace *trace);

/* 0, or -EINVAL with a line in err when the trace is one of a device. */
_must_check_ int tracemaker_check(const struct tracemaker *maker, const char *source,
				  struct err *err);
