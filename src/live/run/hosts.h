/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of the daemon that makes the members of a job one PerfTracker (run/member.h). The first
 * member starts a broker and leads; the others connect to it and follow (cluster/cluster.h). A
 * member that cannot reach it watches its own processes alone meanwhile, and says so.
 */
#pragma once

#include "live/cluster/cluster.h"
#include "live/hub/hub.h"
#include "live/run/options.h"

struct hosts;

/*
 * hub: this process's, whose bus is local. dir: a private folder. wake(wake_arg) is called when
 * hosts_run() has something to do. Returns 0 with *ret NULL where the job has one member;
 * else 0, or -errno with a line in err: then this member is watched alone.
 */
_must_check_ int hosts_open(const struct run_options *options, struct bus *local, struct hub *hub,
			    const char *dir, void (*wake)(void *arg), void *wake_arg,
			    struct hosts **ret, struct err *err);
/*
 * In a fleet: over net, which it owns also after an error. Returns 0, or -errno with a line in err.
 */
_must_check_ int hosts_open_fleet(const struct run_options *options, struct bus *local,
				  struct bus *net, struct hub *hub, struct hosts **ret,
				  struct err *err);
struct hosts *hosts_close(struct hosts *hosts);

/* All of these take NULL and do nothing then. */
void hosts_run(struct hosts *hosts, int64_t now_ns);  /* what came from other members */
void hosts_tick(struct hosts *hosts, int64_t now_ns); /* 10 times a second */

/* Of a fleet's leader: how it is with the hosts of the job. */
struct leader_ends hosts_ends(const struct hosts *hosts);

/* The command of this member has ended. */
void hosts_job_ended(struct hosts *hosts, const struct job_end *end, int64_t now_ns);

/*
 * Whether the hub may make its last report: those of other members have ended, or what this one had
 * to say has arrived; or that took too long. idle: no more of it is being made. True for NULL.
 */
bool hosts_may_finish(struct hosts *hosts, bool idle, int64_t now_ns);

/* After hub_finish(): tells the others, or the user where the report is. */
void hosts_finish(struct hosts *hosts);
