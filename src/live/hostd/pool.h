/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Child processes that turn traces into fingerprints: at most `jobs` at once,
 * at low priority, so that the job they analyze keeps its CPUs. A trace comes
 * from the job: what it does to its reader stays in that process.
 */
#pragma once

#include "base/err.h"

#include <uv.h>

#define POOL_WAITING_MAX 4096u
#define POOL_NICE 10

struct pool;

/* status: exit status, 128 + signal, or -errno when it could not be started. text: its last words. */
typedef void pool_done(void *arg, uint64_t id, int status, const char *text);

/* NULL: out of memory. */
_must_check_ struct pool *pool_new(uv_loop_t *loop, unsigned jobs, pool_done *done, void *arg);

/*
 * Starts or queues argv (NULL-terminated, copied). Returns 0, -ENOBUFS or
 * -ENOMEM; done() is called once per accepted command, never from here.
 */
_must_check_ int pool_add(struct pool *pool, uint64_t id, const char *const *argv);

/*
 * Starts argv now, beside the `jobs`, with its descriptors 3 and 4 open on fds (which
 * stay the caller's) and its standard input held open until pool_release(): such a
 * command follows a window while it runs. done() as above. Returns 0 or -ENOMEM.
 */
_must_check_ int pool_follow(struct pool *pool, uint64_t id, const char *const *argv,
			     const int fds[2]);

/* Ends the input of what pool_follow() started: there will be no more to follow. */
void pool_release(struct pool *pool, uint64_t id);

/* Kills what pool_follow() started; its done() comes with a status. */
void pool_kill(struct pool *pool, uint64_t id);

/* Kills what runs and forgets what waits; freed once the loop has run its close callbacks. */
void pool_close(struct pool *pool);
