/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A follower's items that the leader has not acknowledged, oldest first. The queue says which are
 * to be sent now: each once, and all again if no acknowledgement came, later each time. In memory:
 * fingerprints are also in this host's folder.
 */
#pragma once

#include "live/cluster/cluster.h"
#include "live/cluster/convert.h"

enum item_kind {
	ITEM_ANSWER,
	ITEM_WHERE,
	ITEM_SLICES_COST,
	ITEM_PIECE,
	ITEM_ASK,
	ITEM_END,
	ITEM_SAVED
};

struct item {
	struct item *next;
	uint64_t number;
	size_t bytes; /* at least those of its message */
	bool sent;
	enum item_kind kind;
	struct item_result {
		uint64_t epoch, spool, number; /* epoch 0: not said */
		int32_t rank;
		struct wire_window window;
	} result; /* of an answer; of costs: epoch */
	union {
		struct wire_answer answer;
		struct wire_where where;
		struct wire_slices_cost slices_cost;
		struct wire_ask ask;
		struct job_end end;
		struct item_piece {
			uint32_t worker;
			int32_t rank;
			uint64_t order, size, offset;
			size_t len;
			char name[32]; /* of a recorder's file; "": a fingerprint */
		} piece;
		struct item_saved {
			uint64_t id;
			uint32_t dropped;
		} saved;
	};
	unsigned char data[]; /* of a piece */
};

struct outbox {
	struct item *head, **tail;
	uint64_t next_number; /* from 1 */
	size_t bytes;
	int64_t again_ns, wait_ns; /* when all are sent again; 0: not set */
	uint64_t resent, dropped;
};

void outbox_init(struct outbox *outbox);
void outbox_done(struct outbox *outbox);

/*
 * Adds an item with room for data_len bytes after it; the caller fills it. NULL: no memory, or too
 * much waits already; it is counted.
 */
struct item *outbox_add(struct outbox *outbox, enum item_kind kind, size_t data_len);

/* The leader has taken all up to this number. */
void outbox_acknowledge(struct outbox *outbox, uint64_t number);

/* Number of the oldest one, or of the next that will be added. */
uint64_t outbox_oldest(const struct outbox *outbox);

/* Before items are sent: those whose acknowledgement is overdue are to be sent again. */
void outbox_mind(struct outbox *outbox, int64_t now_ns);

/* The oldest that is not sent, NULL: none; outbox_sent() when it is. */
struct item *outbox_next(const struct outbox *outbox);
void outbox_sent(struct outbox *outbox, struct item *item, int64_t now_ns);

/* All count as not sent, for a leader that was started again. */
void outbox_rewind(struct outbox *outbox);

/* Room for one packed item. */
struct outbox_room {
	Cluster__Item item;
	union {
		struct {
			Cluster__Answer answer;
			Cluster__Result result;
			Cluster__Window window;
		};
		Cluster__SlicesCost slices_cost;
		Cluster__Piece piece;
		Cluster__Ask ask;
		Cluster__End end;
		Cluster__Saved saved;
		struct {
			Cluster__Where where;
			struct convert_entered entered;
		};
	};
};
void outbox_write(struct item *item, struct outbox_room *ret);

/* What an answer says of its window; room for it. */
void outbox_write_result(const struct item_result *from, Cluster__Window *room,
			 Cluster__Result *ret);
