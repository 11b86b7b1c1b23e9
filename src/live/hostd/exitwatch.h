/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits for the end of workers' processes, which are no children of the daemon, and tells the hub
 * how each ended. A process may end while children of it hold its socket open, and a socket may
 * be closed long before the process ends: so both are watched.
 * Source: host/process/exitstatus.h.
 */
#pragma once

#include "base/base.h"

struct client;
struct hostd;
struct exitwatch;

/* Watches the worker's process. Without memory, or before Linux 5.3, nothing happens. */
void exitwatch_begin(struct client *client);

/*
 * The worker's connection is over: sets the worker's exit status if its process has ended. If not,
 * its state is published once more when it has.
 */
void exitwatch_detach(struct client *client);

/* Stops all. */
void exitwatch_close_all(struct hostd *hostd);
