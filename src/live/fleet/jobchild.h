/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon of one job as a child of hostd or of the hub: another process of this program
 * (fleetjob.h), so that jobs and users cannot harm each other. hostd, as root, starts it with the
 * user, the group and the groups of the job's workers.
 */
#pragma once

#include "base/err.h"
#include "live/run/daemon.h"

#include <sys/types.h>

struct jobchild_user {
	uid_t uid;
	gid_t gid;
	char name[64]; /* "": unknown on this host */
	char home[256];
	gid_t groups[64];
	size_t group_cnt;
};

struct jobchild_setup {
	const char *program;
	const char *const *words;	  /* for fleetjob_main(); ends with NULL */
	const struct jobchild_user *user; /* NULL: as this process, with its environment */
	bool relay;			  /* with a stream to it */
};

struct jobchild {
	pid_t pid;		  /* 0: none, or it has been reaped */
	int control_fd, relay_fd; /* the caller's; -1: none */
};

/* Finds groups and home of a user, which may take as long as the site's directory service does. */
void jobchild_find_user(uid_t uid, gid_t gid, struct jobchild_user *ret);

/* Returns 0 once the program runs, or -errno with a line in err. */
_must_check_ int jobchild_start(const struct jobchild_setup *setup, struct jobchild *ret,
				struct err *err);

/* Asks it to end. */
void jobchild_ask_end(const struct jobchild *child);

/* Its first message, whose texts may hold anything. Returns 1, 0 (not yet), or -errno: it has ended. */
_must_check_ int jobchild_take_ready(const struct jobchild *child, struct daemon_ready *ret);

/* Closes the descriptors. */
void jobchild_close(struct jobchild *child);

/* Kills and reaps it, if it still runs. */
void jobchild_kill(struct jobchild *child);
