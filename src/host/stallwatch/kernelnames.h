/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of kernel functions by address, from /proc/kallsyms. Suffixes that the compiler adds
 * (.isra.0, .part.1, .constprop.2, .cold) are cut off. 70 ms to read once, 5 MB.
 * Source: proc(5).
 */
#pragma once

#include "base/arena.h"
#include "base/vec.h"

struct kernelname {
	uint64_t addr;
	const char *name; /* in the arena */
};

struct kernelnames {
	VEC(struct kernelname) list; /* by address */
	struct arena arena;
	char last[128]; /* text behind the last whole line */
};

/*
 * Reads ROOT/proc/kallsyms. Returns 0; -EPERM: the kernel hides its addresses; another -errno.
 * kernelnames_done in either case.
 */
_must_check_ int kernelnames_read(struct kernelnames *names, const char *root);
void kernelnames_done(struct kernelnames *names);

/* Adds the functions of text[len], whole lines or parts of them. Returns 0 or -ENOMEM. */
_must_check_ int kernelnames_add(struct kernelnames *names, const char *text, size_t len);

/* Sorts what was added. */
void kernelnames_sort(struct kernelnames *names);

/* The function with that address; NULL: no function begins before it. O(log n). */
const char *kernelnames_find(const struct kernelnames *names, uint64_t addr);
