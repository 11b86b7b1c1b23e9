/* SPDX-License-Identifier: Apache-2.0 */
/* One message between hosts and the center (center/wire/fpwire.h) as it is in memory. */
#pragma once

#include "base/vec.h"
#include "center/wire/fpnames.h"
#include "model/code16.h"

#define FPWIRE_VERSION 2u
#define FPWIRE_WORKER_MAX 4096u /* in one message */

/* How much of the collectives travels. */
enum fpwire_detail {
	FPWIRE_FUNCTIONS, /* none of them */
	FPWIRE_TIMES,	  /* their times: enough to find the last worker to arrive */
	FPWIRE_LEADS,	  /* also the work before them: enough to find the reason */
	FPWIRE_DETAIL_CNT
};

enum fpwire_type { FPWIRE_FINGERPRINTS = 1, FPWIRE_NAMES, FPWIRE_ASK };

/* Columns of functions, each of code16 numbers. X(id, what) */
#define FPWIRE_COLUMN_LIST(X)                           \
	X(SHARE, "share_ns")                            \
	X(BETA, "beta, a fraction")                     \
	X(TOTAL, "total_ns")                            \
	X(THREAD, "thread_ns")                          \
	X(MU, "mu, a fraction or absent")               \
	X(SIGMA, "sigma, a fraction or absent")         \
	X(EXECUTIONS, "executions")                     \
	X(ELEMENTS, "elements in sixteenths or absent") \
	X(BYTES, "bytes in sixteenths or absent")

enum fpwire_column {
#define X(id, what) FPWIRE_##id,
	FPWIRE_COLUMN_LIST(X)
#undef X
		FPWIRE_COLUMN_CNT
};

/* A function that at least one worker of the message has, in the order of id, class. */
struct fpwire_entry {
	struct fpname_id id;
	uint32_t place; /* of the frame in the dictionary; FRAME_NONE: outside of all */
	uint32_t frame; /* in the message's own names; FRAME_NONE: not among them */
	uint8_t class, resource;
};

#define FPWIRE_TEXT_CNT 7 /* in a worker */

/* Its rows are functions[first .. + cnt) of the columns, in the order of entries. */
struct fpwire_worker {
	/* All of a fingerprint but frames and functions; its arrays and texts are the
	 * message's. A share's function is a row of this worker, counted from first. */
	struct fingerprint fp;
	size_t first, cnt;
	uint32_t texts[FPWIRE_TEXT_CNT]; /* of the codec */
};

/* A frame in the names that a message brings. */
struct fpwire_frame {
	struct fpname_id id;
	struct funckey key;
	uint32_t parent; /* an earlier one of the same message; FRAME_NONE at a root */
	uint8_t kind;
	uint32_t text; /* of the codec */
};

/* What collectives have in common. */
struct fpwire_kind {
	uint64_t group, name;
	int64_t bytes;
	int32_t group_size;
	bool group_known;
	/* Used by the codec: the kind that represents the group, and its latest number. */
	uint32_t leader, worker;
	int64_t seq;
};

/* One message in memory. Reused from one to the next: arrays grow and are kept. */
struct fpwire {
	enum fpwire_type type;
	uint64_t profile;
	enum fpwire_detail detail;
	VEC(struct fpwire_worker) workers;
	VEC(struct fpwire_entry) entries;
	VEC(uint32_t) entry_of; /* by row: index in entries */
	VEC(uint16_t) columns[FPWIRE_COLUMN_CNT];
	VEC(struct fpwire_frame) frames;
	/* FPWIRE_ASK: names, and ranks of workers that are wanted in the detail above. */
	VEC(struct fpname_id) asked;
	VEC(int) ranks;
	/* The rest is reached through workers. */
	VEC(struct fp_iteration) iterations;
	VEC(struct fp_collective) collectives;
	VEC(struct fp_share) shares;
	VEC(struct fpwire_kind) kinds;
	VEC(char) texts;
	VEC(uint32_t) text_offs;
	VEC(uint16_t) last; /* of the codec */
};

/* Frees all; a zeroed message is empty and valid. */
void fpwire_done(struct fpwire *message);
