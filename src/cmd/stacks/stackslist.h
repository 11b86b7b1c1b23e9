/* SPDX-License-Identifier: Apache-2.0 */
/* Which processes `perftracker stacks` reads: those named, those of jobs, and their children. */
#pragma once

#include "base/err.h"
#include "base/vec.h"

enum { STACKSLIST_MAX = 4096 };

struct stackslist_entry {
	uint32_t pid;
	int32_t rank; /* as the job says; -1: unknown */
};

struct stackslist {
	VEC(struct stackslist_entry) entries; /* each process once, in the order of adding */
	size_t dropped;			      /* beyond STACKSLIST_MAX */
};

void stackslist_done(struct stackslist *list);

/* Returns 0 or -ENOMEM. */
_must_check_ int stackslist_add(struct stackslist *list, uint32_t pid, int32_t rank);

/* text: a process id. Returns 0, -ENOMEM, or -EINVAL with a line in err. */
_must_check_ int stackslist_add_text(struct stackslist *list, const char *text, struct err *err);

/* The workers on this host of a job (jobs_find()). Returns 0 or -errno with a line in err. */
_must_check_ int stackslist_add_job(struct stackslist *list, const char *job, struct err *err);

/* The workers of all jobs of this user. -ENOENT: there is no job. */
_must_check_ int stackslist_add_all(struct stackslist *list, struct err *err);
