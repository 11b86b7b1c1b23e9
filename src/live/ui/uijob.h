/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page of one job, of the daemon that `perftracker run` starts. It reads a store of its own, beside the
 * daemon's socket, which has this job alone, is written each second, and goes with the daemon: so
 * the page needs no --store and shows no other job. How the job is at this moment comes from the hub,
 * as a text under a lock that the daemon's loop never waits for.
 */
#pragma once

#include "live/hub/hub.h"
#include "live/metrics/metrics.h"
#include "live/run/options.h"

struct uijob;

/*
 * twin: the job's keeper, NULL: none; all that the hub gives it the page gets, too. socket: the daemon's.
 * metrics: for /metrics beside the page, NULL: none; valid until uijob_close().
 * Returns NULL when there is no page, which is logged.
 */
struct uijob *uijob_open(const struct run_options *options, const char *socket, struct keeper *twin,
			 struct hub *hub, struct metrics *metrics);

/* The keeper of the page, for a hub that has no other one. Valid until uijob_close(). */
struct keeper *uijob_keeper(const struct uijob *job);

/* After hub_close() and the twin's keeper_close(). */
struct uijob *uijob_close(struct uijob *job);
