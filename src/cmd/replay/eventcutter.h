/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cuts the JSON document of a trace into its events: objects of the array "traceEvents", or of a
 * document that is an array, and the object "distributedInfo". Memory is that of one event.
 */
#pragma once

#include "base/err.h"
#include "base/str.h"

struct input;

struct eventcutter {
	/* Called with each object's text. Returns 0 or -errno with a line in err, which ends all. */
	int (*take)(void *arg, bool is_event, const char *text, size_t len, struct err *err);
	void *arg;
	size_t bytes_max; /* longer objects are counted and left out */
	size_t dropped;
};

/*
 * Reads all of input; path names it in err. Returns 0, or -EINVAL for what is no such document,
 * or another -errno, with a line in err.
 */
_must_check_ int eventcutter_run(struct eventcutter *cutter, const char *path, struct input *input,
				 struct err *err);
