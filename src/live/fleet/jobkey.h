/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which job a training process belongs to, the same text on all hosts of the job and another one
 * for every other job: "CLUSTER/uUSER/JOB", and "#N" behind it where the scheduler has started the
 * job again. JOB comes from PERFTRACKER_JOB, from Slurm, JobSet, MPI, from torchrun's run id or the
 * job's rendezvous; where no launcher says anything, from the process in which the job began.
 * torchrun's restart count is not part of it: each host counts its own failures, so the number
 * differs between the hosts of one job. Restarts of ranks are lives of one job (ending/lives.h).
 * Source: https://pytorch.org/docs/stable/elastic/run.html (environment of workers).
 */
#pragma once

#include "host/process/joborigin.h"
#include "live/fleet/attachment.h"

#include <sys/types.h>

#define JOBKEY_JOB_MAX 96u
#define JOBKEY_MAX 160u
#define JOBKEY_WORDS_MAX 64u

struct jobkey {
	char text[JOBKEY_MAX];
	char job[JOBKEY_JOB_MAX]; /* letters, digits, and "._+:@#-"; begins with none of ".-" */
	bool is_plain;		  /* without a launcher */
};

/* origin: of the process that asks. Returns 0 or -ENOMEM. */
_must_check_ int jobkey_make(const char *cluster, uid_t uid, const struct attachment *attachment,
			     const struct joborigin *origin, struct jobkey *ret);

/* Divides a command line at its spaces, in place; ret ends with NULL. */
void jobkey_divide(char *command, char *ret[static JOBKEY_WORDS_MAX]);

/*
 * Whether text is a key of this cluster; its user and job then (borrowed from text). Of another
 * cluster, or no key: false.
 */
bool jobkey_split(const char *text, const char *cluster, unsigned *ret_uid, const char **ret_job);

/* 16 hexadecimal digits for a name of a socket, whose path is short. */
void jobkey_digest(const char *text, char ret[static 17]);
