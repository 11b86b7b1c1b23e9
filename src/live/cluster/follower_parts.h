/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a follower: follower.c; follower_files.c sends files, follower_results.c results. */
#pragma once

#include "base/vec.h"
#include "live/cluster/cluster.h"
#include "live/cluster/convert.h"
#include "live/cluster/outbox.h"
#include "live/spool/spool.h"

struct known {
	struct wire_state state;
	bool changed;
};

/* The latest of what the leader wants, by which repetitions are known. */
struct heard {
	uint64_t order, slices, slice_cnt, report, accepted_step, collect;
	uint32_t backoff;
};

/* Orders of the leader have other numbers here than those of this host's own hub. */
#define FOLLOWER_ORDERS_APART UINT64_C(1000000)
#define FOLLOWER_ORDERS 16u /* that are known; answers to earlier ones are not expected any more */

/* An order of a leader; id: as here. */
struct led_order {
	uint64_t epoch, id;
	struct wire_window window;
};

/* A record of the spool. */
struct kept {
	uint64_t number;
	enum kept_state {
		KEPT_WAITING,	/* to be sent */
		KEPT_QUEUED,	/* in the outbox up to `item` */
		KEPT_DELIVERED, /* the leader has it; the hub has not committed it */
	} state;
	uint64_t item;
	int64_t again_ns;
	unsigned tries;
};

#define FOLLOWER_SUBJECTS 2u /* of leaders' messages: to all hosts, to this one */

struct follower {
	struct cluster_setup setup;
	char subject[BUS_SUBJECT_MAX];
	struct bus_sub *subs[7], *net_subs[FOLLOWER_SUBJECTS];
	VEC(struct known) workers;
	struct outbox outbox;
	struct spool *spool; /* NULL: results are in memory only */
	VEC(struct kept) kept;
	struct led_order orders[FOLLOWER_ORDERS];
	size_t order_cnt;
	uint64_t unkept; /* results that the spool did not take */
	bool unkept_logged, leader_commits;
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

/* The same of bytes. Returns 0 or -ENOMEM. */
_must_check_ int follower_add_bytes(struct follower *f, const char *data, size_t len,
				    const struct item_piece *as);

/* A leader has ordered a window; its id is as the leader gave it. */
void follower_note_order(struct follower *f, const struct wire_order *order);

/* hostd's answer to an order of a leader, of a worker with this rank; others are ignored. */
void follower_add_answer(struct follower *f, const struct wire_answer *answer, int32_t rank);

/* Ten times a second; at another leader; what a leader has committed. */
void follower_mind_results(struct follower *f);
void follower_results_again(struct follower *f);
void follower_take_committed(struct follower *f, const Cluster__Down *down);

void follower_open_spool(struct follower *f);
void follower_close_spool(struct follower *f);
void follower_publish_spool(struct follower *f); /* to hostd of this process */
void follower_write_spool(const struct follower *f, Cluster__Spool *ret);

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
