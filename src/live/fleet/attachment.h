/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a training process asks `perftracker hostd` when it wants to be watched, and the answer: one
 * datagram each, on the Unix SOCK_SEQPACKET socket of hostd. The request has the variables of the
 * process's environment that say which job it belongs to; who asks is known from the socket.
 *
 *	perftracker-attach 1\n	       perftracker-attached 1\n        perftracker-refused 1\n
 *	RANK=3\n		       socket=/run/...sock\n	       why=the job is not enabled\n
 *	SLURM_JOB_ID=77\n	       dir=/var/lib/...\n
 *				       agent=/usr/lib/...so\n
 *
 * python/perftracker/_fleet.py is the other side.
 */
#pragma once

#include "base/base.h"

#define ATTACHMENT_BYTES_MAX 8192u
#define ATTACHMENT_PAIRS_MAX 48u
#define ATTACHMENT_ASKS "perftracker-attach 1"

struct attachment {
	char text[ATTACHMENT_BYTES_MAX];
	size_t cnt;
	struct attachment_pair {
		const char *name, *value; /* in text */
	} pairs[ATTACHMENT_PAIRS_MAX];
};

/*
 * Copies data. Returns 0; -EPROTO: the first line is not that of a request of this version;
 * -EINVAL: a line without '=', a zero byte, too many lines; -EMSGSIZE.
 */
_must_check_ int attachment_parse(const void *data, size_t len, struct attachment *ret);

/* The value of a variable; NULL: not given, or empty. */
const char *attachment_find(const struct attachment *attachment, const char *name);

/* A number from 0; -1: none. */
int attachment_number(const struct attachment *attachment, const char *name);

/* Writes the answer and returns its length. */
size_t attachment_write_yes(char *ret, size_t size, const char *socket, const char *dir,
			    const char *agent);
size_t attachment_write_no(char *ret, size_t size, const char *why);
