/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Comparisons of two reports for a server: `perftracker diff --format html` as a child of a thread of its own, so
 * that the server's thread never waits. One child runs at a time, at the lowest priority, with limits
 * of time, memory and output; it gets words, never a line of a shell. Results are kept for some minutes;
 * viewers who ask for the same comparison share it. The thread starts with the first question.
 */
#pragma once

#include "base/str.h"

#include <stdint.h>

#define COMPARER_ENTRIES 8u /* waiting, running and kept */
#define COMPARER_KEPT_NS (300 * NSEC_PER_SEC)
#define COMPARER_FAILURE_KEPT_NS (10 * NSEC_PER_SEC)

struct comparer_options {
	const char *program; /* NULL: the program that runs */
	const char *place;   /* of the store; "": none */
	int limit_ms;	     /* 0: 60 s */
	size_t bytes_max;    /* of the child's output; 0: 4 MiB */
};

enum comparer_state { COMPARER_WAITS, COMPARER_DONE, COMPARER_FAILED };

struct comparer;

/* Texts are copied. NULL: out of memory. */
struct comparer *comparer_new(const struct comparer_options *options);

/* Kills a child that runs, and ends the thread. */
struct comparer *comparer_free(struct comparer *comparer);

/*
 * The comparison of two inputs of `perftracker diff`, begun if it is new. Appends the page to body when it is
 * done, and lines for the user to why: what the child left out, or why it failed. Returns the state, or -errno
 * with why untouched; -EBUSY: too many others wait.
 */
_must_check_ int comparer_ask(struct comparer *comparer, const char *before, const char *after,
			      struct str *body, struct str *why);
