/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matrix multiplications and collectives of a torch.profiler trace with their shapes, for
 * `perftracker replay`: "Input Dims" and "Input type", which record_shapes=True adds, are not part
 * of struct trace. The document is cut into events as it is read; only those of interest are
 * parsed, each by itself.
 *
 * The time of an operator is that of the kernels that were launched inside it; without kernels in
 * the trace, its own.
 * Source: Kineto output_json.cpp; torch ParamCommsUtils.hpp for collectives.
 */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "base/vec.h"

struct input;

#define OPSHAPES_KINDS_MAX 4096		   /* different shapes; more are counted and dropped */
#define OPSHAPES_EVENT_BYTES_MAX (1 << 20) /* of one event; larger ones are dropped */

struct opshape {
	char *op;    /* "aten::mm", "allreduce"; owned, like the other texts */
	char *dims;  /* JSON: [[64, 256], [256, 512]]; of collectives [elements in, elements out] */
	char *types; /* JSON: ["float", "float"] */
	char *strides; /* JSON; "[]" where the trace has none */
	bool collective;
	int group_size; /* of collectives; -1: unknown */
	VEC(double) us; /* each execution, in the order of the trace; sorted by opshapes_finish() */
};

struct opshapes {
	VEC(struct opshape) shapes; /* the longest in sum first, after opshapes_finish() */
	int rank, world;	    /* -1: unknown */
	bool has_device;	    /* times are those of kernels */
	size_t event_cnt;
	size_t shapeless; /* multiplications and collectives without shapes */
	size_t dropped;	  /* beyond a limit */
};

/*
 * Reads a trace; path names it in err. Returns 0, or -errno with a line in err; opshapes_done() in
 * either case.
 */
_must_check_ int opshapes_read(const char *path, struct input *input, struct opshapes *ret,
			       struct err *err);
void opshapes_done(struct opshapes *shapes);

/* The middle one of an operator's times. */
double opshape_median_us(const struct opshape *shape);
double opshape_sum_us(const struct opshape *shape);
