/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which part of a job over several hosts this `perftracker run` is, from its command and from what
 * the launcher set in the environment: torchrun and what is like it, Slurm, Open MPI, MPICH,
 * Kubernetes' indexed jobs. A launcher may start one process per host, or one per rank; both are
 * members, and each has its own daemon.
 */
#pragma once

#include "base/base.h"

struct member {
	unsigned members;     /* processes that run perftracker in this job; 1: alone, 0: unknown */
	int index;	      /* of this one, from 0; -1: unknown */
	char address[256];    /* of the member 0; "": unknown */
	unsigned port;	      /* of its hub */
	char job[128];	      /* the same for all members, another for other jobs; "": unknown */
	const char *launcher; /* a name for people; "" where alone */
};

/* argv: the command, ends with NULL; find: the value of a variable, NULL: not set. */
void member_find(char *const *argv, const char *(*find)(const char *name), struct member *ret);

/*
 * The hub is at "HOST:PORT" or "nats://HOST:PORT". Where no launcher says how many members there
 * are, their number is unknown then. Returns 0 or -EINVAL.
 */
_must_check_ int member_set_hub(struct member *member, const char *hub);

/* The first host of a list as Slurm writes it: "gpu[03-04,7],login" gives "gpu03". */
void member_first_host(const char *list, char *ret, size_t size);
