/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a GPU did in a window, from whichever vendor it is: one table of functions
 * for each. The agent knows the table only; nothing outside a back end's own files
 * knows a vendor's name. nullgpu.c is a complete back end that records nothing, to
 * be copied for another vendor.
 *
 *	training thread		helper thread
 *	probe, start
 *				drain, again and again
 *	(window ends)		stop, drain until 0, close
 *
 * One back end is open at a time, and its functions are called one at a time. They run in
 * somebody's training process: never exit, abort, print or wait for the network;
 * memory is mapped at the first start, within a fixed budget. A vendor that wants all declared
 * when the job starts (rocprof.c) is an entry of the library beside the table.
 * Source: CUPTI, rocprofiler-sdk and PTI, and where they differ; docs/gpu-vendors.md.
 */
#pragma once

#include "base/base.h"

#define GPUTRACE_WHY_MAX 124u

enum gputrace_kind {
	GPUTRACE_KERNEL,
	GPUTRACE_MEMOP, /* copy or set */
	GPUTRACE_SYNC,	/* a wait for the GPU, drawn on the queue waited for */
	GPUTRACE_API,	/* a call of the runtime or driver */
	GPUTRACE_OVERHEAD,
};

#define GPUTRACE_THREAD (-1)

/* One interval. */
struct gputrace_event {
	int64_t start_ns, dur_ns; /* CLOCK_MONOTONIC; dur_ns >= 0 */
	uint64_t size;		  /* bytes of a copy or set; threads of a kernel; 0 unknown */
	uint64_t graph_node;	  /* kernels: which node of a graph launched it; 0: none did */
	uint32_t correlation;	  /* equal for a call and what it launched; 0 unknown */
	uint32_t name;		  /* from the sink's name() */
	int32_t device;		  /* index; GPUTRACE_THREAD: it ran on a thread */
	uint32_t id;		  /* of the queue; tid */
	enum gputrace_kind kind;
};

enum gputrace_loss {
	GPUTRACE_DROPPED, /* by the driver, or for want of a buffer */
	GPUTRACE_UNTIMED, /* came without its times */
};

/* Where events go. Called in drain(), and device() and lose() also in start() and stop(). */
struct gputrace_sink {
	uint32_t (*name)(const char *text, size_t len); /* copied; 0: no room for it */
	void (*event)(const struct gputrace_event *event);
	void (*lose)(enum gputrace_loss loss, uint64_t cnt);
	void (*device)(const char *name); /* what the GPU is called */
};

/* ret_why: one line for people, what is missing and what to do; written on failure only. */
struct gputrace_ops {
	const char *name;

	/*
	 * Whether this process uses a GPU of this kind now, and whether it can be
	 * recorded. Attaches to nothing. Returns 0; -ENOENT: no such GPU is in use;
	 * -ENOTSUP: one is, but can't be recorded.
	 */
	int (*probe)(char ret_why[static GPUTRACE_WHY_MAX]);

	/*
	 * After a successful probe: events are recorded from now on. The job stands
	 * still meanwhile. Returns 0; -EBUSY: another tool records this process and
	 * goes first; another -errno. On failure nothing is left attached.
	 */
	int (*start)(const struct gputrace_sink *sink, char ret_why[static GPUTRACE_WHY_MAX]);

	/* Hands what has arrived to the sink, about so many events. Returns how many; 0: all. */
	size_t (*drain)(size_t most);

	/* Events are recorded no more; those under way can be drained when it returns. */
	void (*stop)(void);

	/*
	 * Leaves the process as it was before start(). Returns 0; -EIO: the window is not
	 * whole; another -errno: it is, but something stayed. Not called when another profiler
	 * or the end of the process comes first: start() may follow drain() all the same.
	 */
	int (*close)(char ret_why[static GPUTRACE_WHY_MAX]);

	/* In a forked child, which has no GPU: touches nothing of the parent's. */
	void (*forked)(void);
};

/* All back ends, the end is NULL. */
extern const struct gputrace_ops *const gputrace_all[];

extern const struct gputrace_ops gputrace_cupti;
extern const struct gputrace_ops gputrace_rocprof;
extern const struct gputrace_ops gputrace_null; /* the example; not one of all */

/* Sets an event's times, offset_ns from a vendor's. False: none, or impossible ones; counted. */
_must_check_ static inline bool gputrace_set_times(const struct gputrace_sink *sink,
						   int64_t offset_ns, uint64_t start, uint64_t end,
						   struct gputrace_event *event)
{
	if (start == 0 || end < start || end > INT64_MAX / 2) {
		sink->lose(GPUTRACE_UNTIMED, 1);
		return false;
	}
	event->start_ns = (int64_t)start + offset_ns;
	event->dur_ns = (int64_t)(end - start);
	return true;
}

/* ret_why = parts one behind the other, cut to its size; the last is NULL. */
void gputrace_why(char ret_why[static GPUTRACE_WHY_MAX], const char *part, ...)
	__attribute__((sentinel));
