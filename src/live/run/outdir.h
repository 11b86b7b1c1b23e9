/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The folder that a run writes to. It belongs to one run at a time: OUT/lock is locked and names
 * the process. Results that an earlier run left in it are moved to OUT/earlier/TIME. Without
 * --output it is a new folder, perftracker-out/TIME-JOB, and perftracker-out/latest links to it.
 */
#pragma once

#include "base/err.h"

#include <limits.h>

#define OUTDIR_BASE "perftracker-out"
#define OUTDIR_LATEST "latest"

struct outdir {
	char path[PATH_MAX];	     /* absolute; "": none */
	char earlier[PATH_MAX + 64]; /* where an earlier run's results are; "": none were there */
	int lock_fd;		     /* held until this process and its children have closed it */
	bool by_default, made, base_made;
};

/*
 * Makes and locks the folder. given: --output, or NULL; job names a default folder. The lock is
 * inherited by fork, not by exec. Returns 0, or with a line in err -EBUSY when a run on this host
 * uses the folder, else -errno. In use by a run on another host, which shares the file system: a
 * folder with this host's name in it is taken.
 */
_must_check_ int outdir_open(struct outdir *outdir, const char *given, const char *job,
			     struct err *err);

/* The job has started: makes the link to the latest default folder. */
void outdir_started(const struct outdir *outdir);

/* The job could not be started: removes what outdir_open() made, and returns earlier results. */
void outdir_undo(struct outdir *outdir);
