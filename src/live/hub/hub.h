/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hub of one job: keeps the state of every worker, decides when to profile, orders one
 * profile of all workers, gathers the fingerprints, localizes and reports.
 *
 *	idle --slow, request--> ordered --all answered, or late--> report --> idle
 *	idle --blocked--> report of what is known without traces --> idle
 *
 * Source: ARCHITECTURE.md, "Processes of a live job".
 */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "live/ending/ending.h"
#include "live/keeper/keeper.h"
#include "live/link/bus.h"
#include "live/link/wire.h"
#include "live/run/options.h"
#include "live/webhook/webhook.h"

/* Clients that may wait for a report; more are refused with EBUSY. */
#define HUB_ASKERS_MAX 64u
#define HUB_WORKER_MAX 262144u

struct hub;

/* Subscribes to hostd's messages. Returns 0 or -ENOMEM. */
_must_check_ int hub_open(struct bus *bus, const struct run_options *options, struct hub **ret);
struct hub *hub_close(struct hub *hub);

/* What the hub learns is kept there, too; borrowed until hub_close(). NULL: nowhere. */
void hub_keep(struct hub *hub, struct keeper *keeper);

/* The hub's reports are sent there, too; borrowed until hub_close(). NULL: nowhere. */
void hub_call(struct hub *hub, struct webhook *webhook);

/* Whom the hub shows the job, once a second, whether it is kept or not. */
struct hub_show {
	struct keeper *page;				/* NULL: no page is served */
	void (*say)(void *arg, const struct str *live); /* hublive.h */
	void *arg;
};
void hub_show(struct hub *hub, const struct hub_show *show);

/* Starts and finishes profiles and reports that are due. Call it 10 times a second. */
void hub_tick(struct hub *hub, int64_t now_ns);

/* Of its orders, among the hubs of this job: another one after a new start. */
uint64_t hub_epoch(const struct hub *hub);

/* No profile is under way, and the store has what it is to have. */
bool hub_idle(const struct hub *hub);

/*
 * Whether the hub of another host decides: then this one keeps the states of this host's workers,
 * and neither orders, reports nor answers clients.
 */
void hub_follow(struct hub *hub, bool led);

/* The job was asked to end: ranks that end now are no news, and silence is no hang. */
void hub_expect_end(struct hub *hub);

/* The job has ended on all hosts: windows of an earlier hub are reported with what has come of them. */
void hub_recover_all(struct hub *hub);

/* The job has ended: publishes the last report, unless the latest one says it already. */
void hub_finish(struct hub *hub, const struct job_end *end);

/*
 * Whether the processes of the job that ended last did so without a failure. Where a host has left
 * an elastic job, its exit status says nothing about the end of the job.
 */
bool hub_ended_well(const struct hub *hub);

/* Appends one line for a terminal: iteration time per rank and state. */
void hub_status(const struct hub *hub, struct str *out);
