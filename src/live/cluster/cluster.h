/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One PerfTracker on several hosts. Each host has a hostd and a hub on a bus of its own process
 * (link/bus.h); hosts exchange the messages of cluster.proto over a second bus, the network.
 *
 *   pt.v1.JOB.up.HOST    Up     a follower: its workers, once a second, and what they answered
 *   pt.v1.JOB.down       Down   the leader: what its hub wants, once a second and when it changes
 *   pt.v1.JOB.to.HOST    Down   the leader: acknowledgements and replies for one host
 *
 * The leader publishes what followers say on its own bus, as if those workers were its own; its hub
 * decides for the whole job. A follower publishes what the leader says on its bus, where its hub
 * is silent meanwhile (hub_follow()). If no acknowledgement comes for CLUSTER_LOST_NS, it is
 * its own hub again: the host is watched alone.
 *
 * Whatever must arrive is a numbered item that is sent again until it is acknowledged, and taken
 * once and in order. All else is state, and is repeated. No clock of another host is compared with
 * one here, but for the age of signed messages, to the hour: times are shifted by the least delay.
 * A leader's messages are signed and numbered, so a host takes none from others and none twice.
 * Source: ARCHITECTURE.md, "Several hosts".
 */
#pragma once

#include "base/err.h"
#include "live/ending/ending.h"
#include "live/link/bus.h"
#include "live/link/seal.h"

#define CLUSTER_VERSION 1u
#define CLUSTER_BEAT_NS NSEC_PER_SEC	       /* between two messages when nothing is urgent */
#define CLUSTER_QUIET_NS (15 * NSEC_PER_SEC)   /* a host that says nothing for so long is silent */
#define CLUSTER_AWAITED_NS (60 * NSEC_PER_SEC) /* then a line says which members have not come */
#define CLUSTER_LOST_NS (30 * NSEC_PER_SEC)    /* so is the leader */
#define CLUSTER_PIECE_MAX (512u << 10)	       /* bytes of a fingerprint in one message */
#define CLUSTER_FILE_MAX (64u << 20)	       /* bytes of a fingerprint */
#define CLUSTER_ITEMS_MAX (128u << 20)	       /* bytes of items that wait for the leader */

struct cluster_setup {
	struct bus *local, *net; /* borrowed */
	const char *job;  /* any text that all hosts of the job share; it names the subjects */
	const char *id;	  /* of this host, unique in the job; names subjects, too */
	const char *host; /* its name in reports */
	const char *out_dir;
	uint32_t node_rank;
	uint32_t members;	 /* expected in all; 0: unknown */
	bool no_workers;	 /* a leader on a host that is none of the job's */
	const struct seal *seal; /* of leaders' messages, borrowed; NULL: they are not signed */
	/* What a follower carries out at most; 0: no limit. */
	int64_t expires_ns; /* age of a signed message by the clocks of both hosts */
	int64_t window_ns;
	uint32_t windows_per_hour;
	/* Of a follower that keeps results until the leader's hub has committed them; NULL: in memory. */
	const char *spool_dir;
	uint64_t spool_bytes;
	uint64_t epoch; /* of a leader: its hub's; 0: drawn */
	bool again;	/* the daemon before this one ended, and the job's processes did not */
};

struct cluster_stats {
	uint64_t sent, taken;	  /* messages */
	uint64_t refused;	  /* unreadable, of another version, or with values out of range */
	uint64_t forged;	  /* of a leader: without a valid signature, expired, or repeated */
	uint64_t resent, dropped; /* items */
	uint64_t late;		  /* costs of slices that an earlier leader ordered */
};

/* --- the host whose hub decides --- */

struct leader;

/* Returns 0, -ENOMEM or -EINVAL (a name that is too long). All that setup points to is borrowed. */
_must_check_ int leader_open(const struct cluster_setup *setup, struct leader **ret);
struct leader *leader_close(struct leader *leader);

/* Call it 10 times a second. */
void leader_tick(struct leader *leader, int64_t now_ns);

/* How many hosts have come, and of how many the command has not ended and messages still come. */
size_t leader_hosts(const struct leader *leader);
size_t leader_running(const struct leader *leader);

struct leader_ends {
	size_t hosts;	      /* that have come */
	size_t ended, silent; /* of which the command has ended, or nothing comes */
	int exit_status;      /* the greatest of those; -1: unknown of some, 0 of all others */
};
struct leader_ends leader_ends(const struct leader *leader);

/* Tells all hosts that the hub ends. */
void leader_end(struct leader *leader);
struct cluster_stats leader_stats(const struct leader *leader);

/* --- the others --- */

struct follower;

/* As leader_open(). */
_must_check_ int follower_open(const struct cluster_setup *setup, struct follower **ret);
struct follower *follower_close(struct follower *follower);

/* Call it 10 times a second. */
void follower_tick(struct follower *follower, int64_t now_ns);

/* Whether the leader decides for this host now. */
bool follower_is_led(const struct follower *follower);

/* The leader's host and its folder of reports, borrowed; "": none has been heard. */
const char *follower_leader(const struct follower *follower);
const char *follower_out(const struct follower *follower);

/* The command of this host has ended. */
void follower_end(struct follower *follower, const struct job_end *end);

/* Whether the leader knows all that this host had to say, or has ended, or is lost. */
bool follower_is_done(const struct follower *follower);
struct cluster_stats follower_stats(const struct follower *follower);
