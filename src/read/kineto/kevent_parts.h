/* SPDX-License-Identifier: Apache-2.0 */
/* An event between kevent.c, which parses it, and kevent_add.c. */
#pragma once

#include "read/kineto/kevent.h"

/* Which keys of an event were seen with a usable value. */
enum kevent_has {
	HAS_TS = 1u << 0,
	HAS_DUR = 1u << 1,
	HAS_NAME = 1u << 2,
	HAS_ARGS = 1u << 3,
	HAS_STEP = 1u << 4,  /* the event is an iteration of JAX */
	HAS_FRAME = 1u << 5, /* the event is a frame of Python in a trace of JAX */
};

struct kevent {
	struct shape_facts is;
	unsigned int has;
	int64_t ts_ns, dur_ns;
	uint32_t name;
	struct kargs *args; /* of the reader */
};

/* Adds a parsed event to the build, or counts why not. Returns 0 or -errno. */
_must_check_ int kevent_add(struct kevent_reader *reader, struct kevent *event);

/* Adds text to the trace's strings. Returns 0 or -ENOMEM. */
_must_check_ int kevent_intern(struct trace *trace, const char *text, uint32_t *ret);
