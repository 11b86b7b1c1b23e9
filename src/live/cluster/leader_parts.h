/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of the leader: leader.c says what its hub wants, leader_up.c takes what followers say. */
#pragma once

#include "base/idmap.h"
#include "base/vec.h"
#include "live/cluster/cluster.h"
#include "live/cluster/convert.h"
#include "live/cluster/remote.h"

/* A client of another host that waits for a reply. Ids here are above those of hostd's clients. */
struct asked {
	uint64_t id, client;
	size_t remote; /* index */
};

#define ASKED_FROM (UINT64_C(1) << 48)

/* What the hub wants, as it said last. */
struct wanted {
	struct wire_order order;
	struct wire_slices slices;
	struct wire_profile profile;
	struct wire_report report;
	uint64_t accepted_step;
	uint32_t backoff;
	int64_t order_ns; /* when */
};

#define COLLECT_ASKERS 16u
#define COLLECT_NS (20 * NSEC_PER_SEC)
#define COLLECT_BYTES_MAX (512u << 20) /* of recorders of other hosts, at once */

/* Recorders of all hosts, for `perftracker timeline`. */
struct collecting {
	uint64_t id;	  /* of Down.collect; the latest */
	int64_t until_ns; /* 0: none is under way */
	uint64_t askers[COLLECT_ASKERS];
	size_t asker_cnt;
	uint64_t bytes, dropped; /* of files; files */
};

/* A result that a host keeps, or has kept. */
struct held {
	size_t remote; /* index */
	uint64_t spool, number;
	uint64_t epoch, order; /* of its window */
	bool committed;
};

struct leader_window {
	uint64_t epoch, order;
};

#define LEADER_COMMITTED 64u /* windows that are known to be committed */

struct leader {
	struct cluster_setup setup;
	char subject[BUS_SUBJECT_MAX];
	struct bus_sub *subs[9], *net_sub;
	VEC(struct remote) remotes;
	struct idmap places; /* of them, by the hash of their id */
	uint32_t last_slot;
	VEC(struct asked) asked;
	uint64_t last_asked, epoch, sequence; /* the last: of Down */
	struct wanted wanted;
	struct collecting collecting;
	int64_t now_ns, beat_ns; /* of the latest tick; of the next message */
	int64_t opened_ns;
	bool urgent, full_logged, version_logged, absent_logged;
	struct cluster_stats stats;
	VEC(struct held) held;
	struct idmap held_places; /* by remote, spool and number */
	struct leader_window committed[LEADER_COMMITTED];
	size_t committed_cnt;
};

/* Packs and publishes it, with what each Down has. What cannot be sent is repeated. */
void leader_send(struct leader *l, const char *subject, Cluster__Down *down);
void leader_send_to(struct leader *l, const struct remote *remote, Cluster__Down *down);

/* bus_handler: an Up of a follower. */
void leader_take_up(void *arg, const struct bus_message *message);

/* A host that says nothing any more. */
void leader_silence(struct leader *l, struct remote *remote);

/*
 * Whether the answer is to be passed on: not if it came before, from the host's spool. Then the host is
 * told again if the hub has committed it.
 */
bool leader_is_new(struct leader *l, struct remote *remote, const Cluster__Answer *answer);

/*
 * Whether the answer is to an order of an earlier hub, or of a worker of an earlier daemon. Then
 * leader_pass_earlier(); false: invalid.
 */
bool leader_is_of_earlier(const struct leader *l, const struct remote *remote,
			  const Cluster__Answer *answer);
bool leader_pass_earlier(struct leader *l, struct remote *remote, const Cluster__Answer *from);

/* Costs of slices of an earlier hub: they are dropped and counted. */
void leader_note_late_cost(struct leader *l, const struct remote *remote);

/* bus_handler of struct wire_committed. */
void leader_take_committed(void *arg, const struct bus_message *message);

/* Tells hostd of this process what hosts keep. */
void leader_publish_spools(struct leader *l);

/* bus_handler of struct wire_collect. */
void leader_take_collect(void *arg, const struct bus_message *message);

/* A recorder's file is whole in remote->file; a host has sent all of its own. */
bool leader_keep_recorder(struct leader *l, struct remote *remote, const char *name);
void leader_take_saved(struct leader *l, struct remote *remote, const Cluster__Saved *saved);

/* Answers those who wait when all have sent theirs, or it took too long. */
void leader_mind_collect(struct leader *l);
