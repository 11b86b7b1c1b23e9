/* SPDX-License-Identifier: Apache-2.0 */
/* Reads one Chrome trace event and adds it to the build. */
#pragma once

#include "read/common/build.h"
#include "read/kineto/category.h"
#include "read/kineto/kargs.h"
#include "read/kineto/kname.h"
#include "read/kineto/scan.h"
#include "read/kineto/tracemaker.h"

/* What parsing an event needs; lives as long as the reader. */
struct kevent_reader {
	struct scan *scan;
	struct build *build;
	struct trace *trace;
	struct kargs_reader args;
	const struct category *category; /* of the previous event: a guess */
	struct knames names;
	struct tracemaker maker;
	/* String ids of known names. */
	uint32_t comms_name, thread_name, process_name, cpu_thread, run_delay;
};

/* reader: zeroed. Returns 0 or -ENOMEM; call kevent_done() in either case. */
_must_check_ int kevent_init(struct kevent_reader *reader, struct scan *scan, struct build *build);
void kevent_done(struct kevent_reader *reader);

/*
 * Reads the next event of a list, from behind the bracket or the event before; *first
 * starts as true. Returns 1, 0 when the list was closed (consumed), -errno.
 */
_must_check_ int kevent_next(struct kevent_reader *reader, bool *first);
