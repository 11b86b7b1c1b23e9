/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collectives of one name whose process groups differ in kind. A job with tensor and data
 * parallelism runs the same kernel over NVLink in one group and over the network in the other:
 * their times and utilizations have no common mean. Where a worker runs a kernel for groups of
 * several shapes, each shape is a function of its own, the same on all workers.
 */
#pragma once

#include "base/idmap.h"
#include "base/str.h"
#include "model/event.h"

/* Number and distance of the ranks of a group: equal for groups of one kind of parallelism. */
struct groupshape {
	int size, stride; /* stride 0: the ranks are not equally far apart, or not all known */
};

/* Returns false without known ranks. */
bool groupshape_parse(const char *ranks, int size, struct groupshape *ret);

/* Kernels that run for several shapes. A zeroed one is empty. */
struct groupshapes {
	struct idmap of_name; /* by name of the kernel: the shape, or MIXED */
	struct idmap known;   /* by string of the ranks: the shape */
};

/* Returns 0 or -ENOMEM; groupshapes_done() is fine after either. O(events). */
_must_check_ int groupshapes_find(const struct trace *trace, struct groupshapes *ret);
void groupshapes_done(struct groupshapes *shapes);

/*
 * Appends "NAME of 4 ranks" or "NAME of 4 ranks, 2 apart" for an execution of a mixed kernel.
 * Returns 1; 0 where its own name is enough, out unchanged.
 */
int groupshapes_name(const struct groupshapes *shapes, const struct trace *trace,
		     const struct event *event, struct str *out);
