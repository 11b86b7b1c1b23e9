/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Passes messages between a bus of this process and a process at the other end of a stream socket.
 * hostd has the one connection of its host to the site's broker, and its secret; the daemon of a
 * job, which runs as the job's user, gets no more of it than its own job's subjects. Whatever else
 * comes is refused and counted, what finds no room is dropped and counted, as on every bus.
 */
#pragma once

#include "base/err.h"
#include "live/link/bus.h"

#include <uv.h>

#define RELAY_PENDING_BYTES (16u << 20) /* that wait for the other end */

struct relay_setup {
	uv_loop_t *loop;
	struct bus *bus; /* borrowed until relay_close() */
	int fd;		 /* owned, also after an error */
	const char
		*takes[2]; /* subjects that the other end may publish; copied; NULL: no further */
	const char *passes[2]; /* subjects that it hears; copied */
};

struct relay_stats {
	uint64_t passed, taken;
	uint64_t refused; /* of a subject that is not allowed */
	uint64_t dropped; /* the other end does not read, or no memory */
};

struct relay;

/* Returns 0, -EINVAL (a subject) or -ENOMEM. When the other end closes, nothing passes any more. */
_must_check_ int relay_open(const struct relay_setup *setup, struct relay **ret);

/* Freed once the loop has run its close callbacks. Returns NULL. */
struct relay *relay_close(struct relay *relay);
struct relay_stats relay_stats(const struct relay *relay);
