/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts that other commands of PerfTracker print, for a server: each command runs as a child of a thread of
 * its own, so that the server's thread never waits. One child runs at a time, at the lowest priority, with limits
 * of time, memory and output; it gets words, never a line of a shell. Results are kept for some minutes;
 * viewers who ask the same question share it. The thread starts with the first question.
 */
#pragma once

#include "base/str.h"

#include <stdint.h>

#define CHILDTEXT_ENTRIES 8u /* waiting, running and kept */
#define CHILDTEXT_WORDS_MAX 24u
#define CHILDTEXT_KEPT_NS (300 * NSEC_PER_SEC)
#define CHILDTEXT_FAILURE_KEPT_NS (10 * NSEC_PER_SEC)

struct childtext_options {
	const char *program; /* NULL: the program that runs */
	const char *place;   /* of the store; "": none */
	int limit_ms;	     /* 0: 60 s */
	size_t bytes_max;    /* of the child's output; 0: 4 MiB */
	unsigned entry_max;  /* 0: CHILDTEXT_ENTRIES, the most */
};

/* A command with its arguments. */
struct childtext_question {
	const char *words[CHILDTEXT_WORDS_MAX]; /* without the program; NULL behind the last one */
	const char *what;			/* a constant: "the comparison" */
	const char *instead; /* a constant, after a limit: "`perftracker diff` ... has no limit" */
	/*
	 * With the server's own environment, and without a limit of memory: for what looks at this machine, where
	 * drivers map far more than they use.
	 */
	bool as_is;
};

enum childtext_state { CHILDTEXT_WAITS, CHILDTEXT_DONE, CHILDTEXT_FAILED };

struct childtext;

/* Texts are copied. NULL: out of memory. */
struct childtext *childtext_new(const struct childtext_options *options);

/* Kills a child that runs, and ends the thread. */
struct childtext *childtext_free(struct childtext *childtext);

/*
 * The output of a command, begun if the question is new. Appends it to body when the child has ended, and lines for
 * the user to why: its messages, or why it failed. Returns the state, or -errno with why untouched; -EBUSY: too
 * many others wait.
 */
_must_check_ int childtext_ask(struct childtext *childtext,
			       const struct childtext_question *question, struct str *body,
			       struct str *why);
