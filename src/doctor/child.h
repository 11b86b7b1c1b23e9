/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs work that may hang or crash in a process of its own: a library that talks to a driver, an
 * interpreter. The caller gets the output and the exit; the child and its children are killed at
 * the limit. A child that sleeps in the kernel and cannot be killed is left behind: it ends when
 * its driver releases it.
 */
#pragma once

#include "base/base.h"

struct child_end {
	bool late;  /* killed at its limit */
	int signal; /* that ended it; 0: none */
	int status; /* exit status otherwise */
};

/*
 * Calls work(arg, fd) in a child; its output to fd becomes text[size], NUL-terminated and cut. Its
 * other outputs are lost. Returns 0 and *ret, or -errno: no child.
 */
_must_check_ int child_call(void (*work)(const void *arg, int fd), const void *arg, int limit_ms,
			    char *text, size_t size, struct child_end *ret);

/*
 * The same for a program: argv[0] is its path, both lists end with NULL; stderr is captured, too.
 */
_must_check_ int child_run(char *const *argv, char *const *environment, int limit_ms, char *text,
			   size_t size, struct child_end *ret);

/* "took longer than its limit", "crashed (signal 11)", "exit status 1", or "" for success. */
void child_end_text(const struct child_end *end, char *text, size_t size);
