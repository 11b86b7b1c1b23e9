/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When watched processes collected garbage of Python: each is asked in every turn of the window, and looks
 * in a row at which it did are one event STALL_COLLECT. One look alone is none: collections of
 * few milliseconds are the daily bread of an interpreter, and how long they took is not seen.
 */
#pragma once

#include "host/stallwatch/stallwatch.h"

/* Looks farther apart do not show that the collection is the same. */
#define GCCOLLECTIONS_APART_NS (40 * NSEC_PER_MSEC)

struct collection {
	uint32_t pid, tid;
	int64_t begin_ns,
		last_ns; /* begin_ns: in the middle of the first look and the one before */
	size_t looks;	 /* 0: it does not collect */
};

struct gccollections {
	VEC(struct collection) list; /* by process, in the order of the options */
	int64_t looked_ns;	     /* the begin of the window, or the latest look */
};

/* Asks all processes. Returns 0 or -ENOMEM. */
_must_check_ int gccollections_look(struct gccollections *collections,
				    const struct stallwatch_options *options, int64_t now_ns,
				    struct stall_recording *recording);

/* Ends those that go on. Returns 0 or -ENOMEM. */
_must_check_ int gccollections_end(struct gccollections *collections, int64_t now_ns,
				   struct stall_recording *recording);
void gccollections_done(struct gccollections *collections);
