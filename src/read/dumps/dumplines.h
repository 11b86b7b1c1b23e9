/* SPDX-License-Identifier: Apache-2.0 */
/* Text dumps: their lines, and the threads and frames that are found in them. */
#pragma once

#include "read/dumps/dumps_parts.h"

enum { DUMPLINES_LONGEST = 64 << 10 };

struct dumplines {
	struct dumptext text;
	struct arena *arena;
	size_t at, begin; /* begin: offset of the line that was returned last */
	char *line;
	size_t cap;
	int error; /* 0 or -ENOMEM */
};

/*
 * The next line without its end, cut if it is too long; NULL at the end or on an error. Valid until the
 * next call.
 */
char *dumplines_next(struct dumplines *lines);
void dumplines_done(struct dumplines *lines);

/* Threads in the order of the file, frames innermost first. */
struct dumpthreads {
	struct arena *arena;
	VEC(struct stacks_thread) threads;
	VEC(struct stacks_frame) frames; /* of the latest thread */
	size_t dropped;
};

/* Both return 0 or -ENOMEM. */
_must_check_ int dumpthreads_begin(struct dumpthreads *threads, const struct stacks_thread *thread);
_must_check_ int dumpthreads_add(struct dumpthreads *threads, const struct stacks_frame *frame);

/*
 * Makes a record of the process with these threads. The one with the process's id comes first; if none
 * has it, "MainThread", else the last of a dump of gdb. Returns 0, or -ENOMEM with a line in err.
 */
_must_check_ int dumpthreads_finish(struct dumpthreads *threads, struct stacks_process *process,
				    const struct dumptext *text, struct dumps *dumps,
				    struct err *err);
void dumpthreads_done(struct dumpthreads *threads);
