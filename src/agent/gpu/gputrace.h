/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interface of GPU back ends that record a window: one table of functions for each vendor. The
 * agent uses the table only; no code outside a back end's own files depends on a vendor. nullgpu.c
 * is a complete back end that records nothing, a template for another vendor.
 *
 *	training thread		helper thread
 *	probe, start
 *				drain, again and again
 *	(window ends)		stop, drain until 0, close
 *
 * One back end is open at a time, and its functions are called one at a time. They run in the
 * training process: never exit, abort, print or wait for the network; memory is mapped at the first
 * start, within a fixed budget. A vendor's library that needs declarations when the job starts
 * (rocprof.c) has an exported entry point beside the table.
 * Source: CUPTI, rocprofiler-sdk and PTI, and where they differ; docs/gpu-vendors.md.
 */
#pragma once

#include "base/base.h"

#define GPUTRACE_WHY_MAX 124u

enum gputrace_kind {
	GPUTRACE_KERNEL,
	GPUTRACE_MEMOP, /* copy or set */
	GPUTRACE_SYNC,	/* a wait for the GPU, drawn on the queue waited for */
	GPUTRACE_API,	/* a runtime or driver call */
	GPUTRACE_OVERHEAD,
};

#define GPUTRACE_THREAD (-1)

/* One interval. */
struct gputrace_event {
	int64_t start_ns, dur_ns; /* CLOCK_MONOTONIC; dur_ns >= 0 */
	uint64_t size;		  /* bytes of a copy or set; threads of a kernel; 0 unknown */
	uint64_t graph_node;	  /* kernels: their node in a graph; 0: no graph */
	uint32_t correlation;	  /* equal for a call and what it launched; 0 unknown */
	uint32_t name;		  /* from the sink's name() */
	int32_t device;		  /* index; GPUTRACE_THREAD: it ran on a thread */
	uint32_t id;		  /* of the queue; tid */
	enum gputrace_kind kind;
};

enum gputrace_loss {
	GPUTRACE_DROPPED, /* by the driver, or for lack of a buffer */
	GPUTRACE_UNTIMED, /* arrived without times */
};

/* The receiver of events. Called in drain(); device() and lose() also in start() and stop(). */
struct gputrace_sink {
	uint32_t (*name)(const char *text, size_t len); /* copies text; 0: no room */
	void (*event)(const struct gputrace_event *event);
	void (*lose)(enum gputrace_loss loss, uint64_t cnt);
	void (*device)(const char *name); /* the GPU's model */
};

/* ret_why: one line for users, what is missing and what to do; written on failure only. */
struct gputrace_ops {
	const char *name;

	/*
	 * Whether this process uses a GPU of this kind now, and whether it can be
	 * recorded. Attaches to nothing. Returns 0; -ENOENT: no such GPU is in use;
	 * -ENOTSUP: one is, but can't be recorded.
	 */
	int (*probe)(char ret_why[static GPUTRACE_WHY_MAX]);

	/*
	 * After a successful probe: records events from now on. The training thread waits. Returns
	 * 0; -EBUSY: another tool records this process and has precedence; another -errno. On
	 * failure nothing stays attached.
	 */
	int (*start)(const struct gputrace_sink *sink, char ret_why[static GPUTRACE_WHY_MAX]);

	/* Passes about `most` arrived events to the sink. Returns how many; 0: none left. */
	size_t (*drain)(size_t most);

	/* Stops recording; events under way can be drained when it returns. */
	void (*stop)(void);

	/*
	 * Restores the process to its state before start(). Returns 0; -EIO: the window is
	 * incomplete; another -errno: it is complete, but the library stayed attached. Not called
	 * when another profiler or the end of the process comes first: then start() may follow
	 * drain().
	 */
	int (*close)(char ret_why[static GPUTRACE_WHY_MAX]);

	/* In a forked child, which has no GPU context: touches nothing of the parent's. */
	void (*forked)(void);
};

/* All back ends, the end is NULL. */
extern const struct gputrace_ops *const gputrace_all[];

extern const struct gputrace_ops gputrace_cupti;
extern const struct gputrace_ops gputrace_rocprof;
extern const struct gputrace_ops gputrace_null; /* the template; not in gputrace_all */

/*
 * Sets an event's times: the vendor's plus offset_ns. False (counted): missing or impossible times.
 */
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

/* ret_why = parts concatenated, cut to its size; NULL ends them. */
void gputrace_why(char ret_why[static GPUTRACE_WHY_MAX], const char *part, ...)
	__attribute__((sentinel));
