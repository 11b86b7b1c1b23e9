/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes of this host as /proc says, and which of them are the ranks of one job: by the
 * variables of torchrun, Slurm, Open MPI and MPICH in their environments, and by who started whom.
 *
 * Children inherit these variables: workers of a loader, compilers, pip. So a rank is the outermost
 * Python process with its number; what runs below it is part of it.
 */
#pragma once

#include "base/err.h"
#include "base/vec.h"

enum { JOBPROCS_MAX = 65536, JOBPROCS_COMMAND = 120 };

struct jobproc {
	uint32_t pid, tgid, parent, uid;
	int rank, world_size; /* of its environment; -1, 0: not there */
	bool weak;	    /* its rank is that of a scheduler, which torchrun below may replace */
	uint64_t job;	    /* the same for all ranks of a job; 0: no rank */
	bool python, torch; /* torch: it has loaded libtorch; looked at where it matters */
	int error;	    /* of its environment: an errno */
	char command[JOBPROCS_COMMAND];
};

typedef VEC(struct jobproc) jobproc_vec;

struct jobrank {
	uint32_t pid;
	int rank;
};

struct jobranks {
	VEC(struct jobrank) ranks; /* by rank */
	int world_size;		   /* 0: unknown */
	uint32_t python_children;  /* of the only process of a job: may be ranks themselves */
	char command[JOBPROCS_COMMAND];
};

/* Lists processes by pid; root: "/proc". Returns 0 or -errno. */
_must_check_ int jobprocs_list(const char *root, jobproc_vec *ret);

/* environ: text[len] of /proc/PID/environ. Fills rank, world_size, weak and job. */
void jobprocs_parse_environ(const char *text, size_t len, struct jobproc *ret);

/*
 * The ranks of the job to which a process belongs: its launcher, a rank, or a child of one. Several
 * processes without a rank are taken as ranks in their order. Returns 0, -ENOMEM, or -errno with a
 * line in err that says what to do; jobranks_done() in either case.
 */
_must_check_ int jobprocs_ranks(const jobproc_vec *procs, const uint32_t *pids, size_t cnt,
				struct jobranks *ret, struct err *err);

/* One process of each job of a user, or of all users, the lowest first. Returns 0 or -ENOMEM. */
typedef VEC(uint32_t) jobprocs_pids;
_must_check_ int jobprocs_jobs(const jobproc_vec *procs, uint32_t uid, bool all_users,
			       jobprocs_pids *ret);

void jobranks_done(struct jobranks *ranks);
