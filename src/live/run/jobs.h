/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The jobs of this user that `perftracker run` watches on this host: their daemons' sockets are
 * listed (rundir.h), and each daemon is asked about its job.
 */
#pragma once

#include "base/err.h"
#include "base/vec.h"
#include "format/shared/message.h"

/* Texts are empty where unknown. */
struct job_about {
	char socket[128];
	uint32_t pid; /* of `perftracker run` */
	char name[64], dir[MESSAGE_TEXT], state[16];
	int64_t started_wall_ns, now_ns, best_ns; /* now, best: of an iteration; 0 unknown */
	uint64_t workers, step, slow_since_step;
	uint64_t hosts; /* of a fleet's job, as its hub sees it; else 0 */
	uint64_t kept,
		dropped; /* results that hosts keep until the hub has committed them; lost for want of room */
	uint64_t restarts; /* ranks failed and were started again */
	char verdict[24], reason[MESSAGE_TEXT], report[MESSAGE_TEXT]; /* of the latest report */
};

typedef VEC(struct job_about) job_about_vec;

/* Asks the daemon behind a socket. Returns 0 or -errno with a line in err. */
_must_check_ int jobs_ask(const char *socket, struct job_about *ret, struct err *err);

/*
 * All jobs of this user, or with a folder those whose sockets are in it, the newest first; one that
 * does not answer is left out. Returns 0 or -ENOMEM.
 */
_must_check_ int jobs_list(const char *folder, job_about_vec *ret);

/*
 * The socket of a job. word: its name, the process of its `perftracker run`, its folder, or a
 * socket. Returns 0; -ENOENT, or -ENOTUNIQ when several jobs have the name, with a line in err.
 */
_must_check_ int jobs_find(const char *word, char *ret, size_t size, struct err *err);

/* Takes one "key=value" of an answer to MSG_JOB; unknown keys are ignored. */
void job_about_take(struct job_about *about, const char *pair);
