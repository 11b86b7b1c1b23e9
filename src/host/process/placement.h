/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which ranks of a job are on this host, by what their launcher left in the environment of
 * one of them: torchrun, Slurm, Open MPI, MPICH and Intel MPI. torchrun is taken to run once
 * on a host, as its nodes are meant.
 * Sources: docs.pytorch.org/docs/stable/elastic/run.html; srun(1), "OUTPUT ENVIRONMENT
 * VARIABLES"; docs.open-mpi.org, "Environment variables".
 */
#pragma once

#include "base/base.h"

/* Zeroed: nothing is known. */
struct placement {
	int32_t rank_cnt; /* of this host */
	int32_t first;	  /* has_first: they follow each other from here */
	bool has_first;
};

/*
 * environment[size]: strings of "NAME=value", each with its NUL, the last one perhaps cut off.
 * rank: the process's own; variables inherited from another rank are ignored. O(size).
 */
struct placement placement_parse(const char *environment, size_t size, int32_t rank);

/* Of a process below root ("" on a machine). An unreadable environment has no effect. */
struct placement placement_read(const char *root, uint32_t pid, int32_t rank);
