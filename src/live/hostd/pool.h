/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Child processes that summarize traces into fingerprints: at most `jobs` at once, at low
 * priority, so that the training job keeps its CPUs. A trace comes from the job: a crash of
 * its reader is confined to the child.
 */
#pragma once

#include "base/err.h"

#include <uv.h>

#define POOL_WAITING_MAX 4096u
#define POOL_NICE 10

struct pool;

/* status: exit status, 128 + signal, or -errno if it did not start. text: the end of its stderr. */
typedef void pool_done(void *arg, uint64_t id, int status, const char *text);

/* NULL: out of memory. */
_must_check_ struct pool *pool_new(uv_loop_t *loop, unsigned jobs, pool_done *done, void *arg);

/*
 * Starts or queues argv (NULL-terminated, copied). Returns 0, -ENOBUFS or
 * -ENOMEM; done() is called once per accepted command, never from here.
 */
_must_check_ int pool_add(struct pool *pool, uint64_t id, const char *const *argv);

/*
 * Starts argv now, in addition to the `jobs`, with its descriptors 3 and 4 open on fds (which
 * stay the caller's) and its standard input held open until pool_release(): a follower of a
 * window that is still open. done() as above. Returns 0 or -ENOMEM.
 */
_must_check_ int pool_follow(struct pool *pool, uint64_t id, const char *const *argv,
			     const int fds[2]);

/* Ends the input of a follower: the window is over. */
void pool_release(struct pool *pool, uint64_t id);

/* Kills a follower; done() is called with its status. */
void pool_kill(struct pool *pool, uint64_t id);

/* Kills running commands, drops waiting ones; freed once the loop has run its close callbacks. */
void pool_close(struct pool *pool);
