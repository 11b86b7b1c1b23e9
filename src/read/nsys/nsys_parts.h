/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the reader of nsys exports share while one worker's trace is read. */
#pragma once

#include "read/common/build.h"
#include "read/nsys/database.h"
#include "read/nsys/nsys.h"

/* What a text of StringIds names; determines how much of it is kept. */
enum nsys_text {
	NSYS_TEXT,  /* as it is */
	NSYS_CALL,  /* "cudaLaunchKernel_v7000": without the version */
	NSYS_RANGE, /* "aten::mm, op_id = 12": see nsys_range_name() */
	NSYS_TEXT_CNT
};

/* A name and what kind of event it says that a range is. */
struct nsys_name {
	uint32_t id; /* in trace.strings */
	enum event_kind kind;
};

/* A range that may be an iteration. */
struct nsys_step {
	int64_t start_ns, end_ns; /* of the session */
	int64_t number;		  /* -1: its name has none */
	uint32_t stem;		  /* string id of the name without its number */
	uint32_t name;		  /* the same with it, behind a '#': see nsys_note_step() */
	uint16_t lane;
};

/* A call of NCCL that had its arguments written into a range. */
struct nsys_call {
	int64_t start_ns, end_ns; /* of the session */
	uint64_t communicator;
	int64_t bytes;	     /* -1: unknown */
	uint32_t collective; /* string id */
	uint16_t lane;
};

/* A communicator of which the worker is a member. */
struct nsys_group {
	uint64_t communicator;
	int64_t size, rank; /* -1: unknown */
};

/* Payload that NVTX describes: the offsets of known fields in a schema. */
struct nsys_schema {
	int64_t domain, id;
	int64_t offset[4]; /* by enum nsys_field; -1: not in it */
	uint8_t bytes[4];
};

enum nsys_field { FIELD_COMMUNICATOR, FIELD_BYTES, FIELD_RANKS, FIELD_RANK };

struct nsys_pass {
	struct nsys_db *db;
	struct trace *trace;
	struct build build;
	struct nsys_worker worker;
	uint64_t max_memory_bytes;
	int64_t base_ns; /* the session's beginning on the wall clock; 0: unknown */
	struct nsys_query string_query;
	struct idmap names[NSYS_TEXT_CNT]; /* StringIds.id to string id */
	struct idmap kinds;		   /* string id of a range to its kind */
	VEC(struct nsys_step) steps;
	VEC(struct nsys_call) calls;
	VEC(struct nsys_group) groups;
	VEC(struct nsys_schema) schemas;
	VEC(int64_t) devices; /* CUDA ordinals that the worker used */
	int64_t nccl_domain;  /* -1: none */
};

/* Interns text[len], its UTF-8 mended and counted. Returns 0 or -ENOMEM. */
_must_check_ int nsys_intern(struct nsys_pass *pass, const char *text, size_t len, uint32_t *ret);

/* The text of a StringIds.id; one that is not there is counted and named. 0 or -errno. */
_must_check_ int nsys_string(struct nsys_pass *pass, int64_t id, enum nsys_text use,
			     struct nsys_name *ret);

/* Name and kind of a range by its text. Returns 0 or -ENOMEM. */
_must_check_ int nsys_range_name(struct nsys_pass *pass, const char *text, size_t len,
				 struct nsys_name *ret);

/* Opens a query of this worker's rows whose wrong values are counted. As nsys_query_open(). */
_must_check_ int nsys_rows(struct nsys_pass *pass, struct nsys_query *query, const char *table,
			   const struct nsys_column *columns, size_t cnt, enum nsys_owner owner);

/*
 * Adds an event from start to end: counted and mended when that is no interval. lane: of
 * nsys_thread() or nsys_stream(); -ENOSPC there is counted here. Returns 0, -ENOMEM, or
 * -EFBIG with a line in err above the limit.
 */
_must_check_ int nsys_add(struct nsys_pass *pass, struct event event, int lane, int64_t start_ns,
			  int64_t end_ns, const struct link *link);

/* Lanes: a thread by its globalTid, a stream of a device. As build_lane(). */
_must_check_ int nsys_thread(struct nsys_pass *pass, int64_t global_tid);
_must_check_ int nsys_stream(struct nsys_pass *pass, int64_t device, int64_t stream);

/* What build_finish() does not need to know: each reads its tables. 0 or -errno. */
_must_check_ int nsys_read_device(struct nsys_pass *pass);     /* device.c */
_must_check_ int nsys_read_threads(struct nsys_pass *pass);    /* apicalls.c */
_must_check_ int nsys_read_ranges(struct nsys_pass *pass);     /* ranges.c */
_must_check_ int nsys_read_samples(struct nsys_pass *pass);    /* callchains.c */
_must_check_ int nsys_read_gauges(struct nsys_pass *pass);     /* gauges.c */
_must_check_ int nsys_read_host(struct nsys_pass *pass);       /* hostgauges.c */
_must_check_ int nsys_read_target(struct nsys_pass *pass);     /* target.c */
_must_check_ int nsys_find_iterations(struct nsys_pass *pass); /* nsys_steps.c */

/* --- iterations (nsys_steps.c) --- */

/*
 * Keeps a range that is an iteration by its name; nsys_find_iterations() adds it, with a '#'
 * before its number: so that "batch 1" and "batch 2" are one function. Returns 1 when it was
 * kept, 0 for another range, or -ENOMEM.
 */
_must_check_ int nsys_note_step(struct nsys_pass *pass, uint32_t name, uint16_t lane,
				int64_t start_ns, int64_t end_ns);
