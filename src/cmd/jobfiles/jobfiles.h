/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which of the loaded files are ranks of one job in one window. A folder may hold copies,
 * several windows of a rank, and files of several jobs or runs; ranks are compared only
 * within one window of one run.
 *
 * Files are divided by what a job or a window cannot have twice: the world size, the time, the
 * process of a rank. What is left in one set has distinct ranks. Clocks that are off are no
 * reason: the ends of collectives show that two files are of one job (docs/method.md).
 */
#pragma once

#include "base/vec.h"
#include "format/fingerprint/fingerprint.h"

struct jobfile {
	struct fingerprint *fp; /* borrowed */
	int rank;		/* as the trace, its file or its folder says; -1: unknown */
	uint32_t worker;	/* equal: files of one rank, or of one process */
	uint32_t set;
	const struct fingerprint *copy_of; /* of the same window and process; NULL: no copy */
};

enum jobfiles_kind {
	JOBFILES_ONE,	  /* one window of one job */
	JOBFILES_WINDOWS, /* several windows of one run: chosen is one of them */
	JOBFILES_MIXED,	  /* several jobs or runs */
};

struct jobfiles {
	struct jobfile *files; /* by set; in a set by rank; copies last */
	size_t cnt, used_cnt;  /* used_cnt: without copies */
	uint32_t worker_cnt, set_cnt, chosen;
	enum jobfiles_kind kind;
	bool clocks_off; /* files of one set have clocks that differ: collectives fit */
	bool only_alike; /* the same, but no collective shows that the files are of one job */
};

/* The rank of a file: as distributedInfo says, else the name of the file, else of a folder. */
int jobfiles_rank(const struct fingerprint *fp);

/* Returns 0 or -ENOMEM; the caller frees ret with jobfiles_done(). O(files * sets). */
_must_check_ int jobfiles_find(struct fingerprint *const *fps, size_t cnt, struct jobfiles *ret);
void jobfiles_done(struct jobfiles *jobfiles);

/* Whether both are of one process, as far as host and pid are known. */
bool jobfiles_same_process(const struct fingerprint *a, const struct fingerprint *b);

static inline int64_t jobfile_end_ns(const struct jobfile *file)
{
	return file->fp->window_start_wall_ns + file->fp->window_ns;
}
