/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a follower: follower.c, and follower_files.c, which sends files. */
#pragma once

#include "base/vec.h"
#include "live/cluster/cluster.h"
#include "live/cluster/convert.h"
#include "live/cluster/outbox.h"

struct known {
	struct wire_state state;
	bool changed;
};

/* The latest of what the leader wants, by which repetitions are known. */
struct heard {
	uint64_t order, slices, slice_cnt, report, accepted_step, collect;
	uint32_t backoff;
};

#define FOLLOWER_SUBJECTS 2u /* of leaders' messages: to all hosts, to this one */

struct follower {
	struct cluster_setup setup;
	char subject[BUS_SUBJECT_MAX];
	struct bus_sub *subs[7], *net_subs[FOLLOWER_SUBJECTS];
	VEC(struct known) workers;
	struct outbox outbox;
	uint64_t boot, epoch, sequence; /* sequence: of struct wire_profile here */
	uint64_t orders_base;
	struct heard heard;
	int64_t now_ns;		   /* of the latest tick */
	int64_t heard_ns, beat_ns; /* the leader's latest message; this host's next one */
	unsigned beats;
	uint64_t taken[FOLLOWER_SUBJECTS]; /* Down.sequence of this epoch, by subject */
	int64_t refused_ns;		   /* when a line last said so; 0: never */
	double windows_left;		   /* of setup.windows_per_hour */
	int64_t windows_ns;		   /* until then they were counted */
	bool led, urgent, end_added, leader_ended;
	char leader[64], out[512];
	struct cluster_stats stats;
};

/*
 * Adds the pieces of a file to the outbox; as: what each of them says, but for size, offset and len.
 * Returns 0, or -errno with a line in err.
 */
_must_check_ int follower_add_file(struct follower *f, const char *path,
				   const struct item_piece *as, struct err *err);

/* Index of struct follower's `taken`. */
size_t follower_subject(const struct bus_message *message);

/*
 * Of a leader's message, packed and unpacked: whether it is signed by one, of this hour, and not taken before.
 * Says why not, once a minute.
 */
bool follower_trusts(struct follower *f, const struct bus_message *message,
		     const Cluster__Down *down);

/* Whether this host's limits allow the window. If not, all of its workers answer that they miss it. */
bool follower_allows(struct follower *f, const Cluster__Order *order);

/* The leader wants the recorders of this host: hostd saves them first. */
void follower_pass_collect(struct follower *f, const Cluster__Down *down);

/* bus_handler of struct wire_save: hostd has saved them. */
void follower_take_saved(void *arg, const struct bus_message *message);
