/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of hostd of a fleet: hostservice.c has the socket and the bus, hostask.c the training
 * processes that ask, hostjob.c the daemons.
 */
#pragma once

#include "base/vec.h"
#include "live/fleet/hostservice.h"
#include "live/fleet/jobchild.h"
#include "live/fleet/jobkey.h"
#include "live/fleet/relay.h"
#include "live/fleet/service.h"

#include <limits.h>

#define HOSTASK_MAX 1024u	       /* processes that wait for an answer */
#define HOSTASK_USER_MAX 256u	       /* of which one user may have so many */
#define HOSTASK_NS (20 * NSEC_PER_SEC) /* then they are refused */
#define HOSTJOB_RANKS_MAX 4096u

struct hostservice;

enum hostjob_state {
	HOSTJOB_STARTING,
	HOSTJOB_READY,
	HOSTJOB_FAILED, /* to start: clients that wait are refused */
};

/* A worker that was told where its daemon is. */
struct hostjob_rank {
	int rank; /* -1: unknown */
	uint32_t pid;
	uint64_t start;
};

struct hostjob {
	struct hostservice *service;
	struct jobkey key;
	char spool[600]; /* "": results are in memory only */
	char name[64], out[600], socket[108], trace_dir[512], why[256];
	uid_t uid;
	enum hostjob_state state;
	struct jobchild child; /* pid 0: it was started by an earlier hostd */
	uv_poll_t control;
	struct relay *relay; /* NULL: the job's daemon has no bus */
	struct joborigin origin;
	VEC(struct hostjob_rank) ranks;
	int64_t started_ns;
	int64_t look_ns; /* at its socket next, of a daemon that is no child */
	bool twice_logged, closing;
};

/* A process that has asked and has no answer yet. */
struct hostask {
	struct hostservice *service;
	int fd;
	uid_t uid;
	gid_t gid;
	uint32_t pid;
	uv_poll_t poll;
	int64_t until_ns;
	struct hostjob *job; /* that it waits for; NULL: it has not asked yet */
	bool closing;
};

struct hostservice {
	struct hostservice_setup setup;
	struct service service;
	struct bus_login login;
	char agent[PATH_MAX], run_dir[108], subject[BUS_SUBJECT_MAX];
	int listen_fd;
	uv_poll_t listener;
	VEC(struct hostask *) asks;
	VEC(struct hostjob *) jobs;
	uint64_t boot;
	int64_t say_ns; /* when the presence is due */
	int64_t end_ns; /* asked to end: children are waited for until then; 0: not asked */
	uint64_t refused, attached;
	bool unsaved_logged, changed; /* changed: the file of hoststate.h is to be written */
};

/* --- hostask.c --- */

/* uv_poll_cb of the listener. */
void hostask_accept(uv_poll_t *poll, int status, int events);

/* Answers all that wait for the job, which is ready, or has failed or ended. */
void hostask_answer_waiting(struct hostservice *service, const struct hostjob *job);
void hostask_tick(struct hostservice *service, int64_t now_ns);
void hostask_close_all(struct hostservice *service);

/* --- hostjob.c --- */

/* The job of this key; NULL: it has no daemon here. */
struct hostjob *hostjob_find(struct hostservice *service, const struct jobkey *key);

/*
 * Starts the daemon of a job, or takes one that an earlier hostd has started. Returns 0, or -errno
 * with a line in err.
 */
_must_check_ int hostjob_start(struct hostservice *service, const struct jobkey *key,
			       const struct hostask *ask, const struct joborigin *origin,
			       struct hostjob **ret, struct err *err);

/* Takes the job of an earlier hostd if its daemon still runs, and gives that a stream to the bus. */
void hostjob_adopt(struct hostservice *service, const struct jobkey *key, uid_t uid);

/*
 * A worker of this rank attaches. Returns false if a living process has that rank of the job: then
 * why says so.
 */
bool hostjob_admit(struct hostjob *job, const struct hostask *ask, int rank,
		   const struct joborigin *origin, char *why, size_t size);

/* Ends and frees those whose daemons have ended. */
void hostjob_reap(struct hostservice *service);
void hostjob_tick(struct hostservice *service, int64_t now_ns);
void hostjob_ask_all_to_end(struct hostservice *service);
void hostjob_close_all(struct hostservice *service);
