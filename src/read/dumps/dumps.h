/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dumps of processes that hang, by PerfTracker and by others, become records of ranks
 * (model/hang/hangrecord.h): what a job left can be judged anywhere, later. Files of one rank are
 * joined: its collectives from one, its stacks from another.
 *
 *	perftracker.stacks.v1	`perftracker stacks --format json`
 *	perftracker.hang.v1	the record of a rank that a live job writes in a hang
 *	NCCL flight recorder	of PyTorch, pickled or JSON: torch/csrc/distributed/c10d/FlightRecorder
 *	py-spy dump		text and JSON
 *	gdb			text of `thread apply all bt`
 * Source: docs/hangs.md.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "base/vec.h"
#include "model/hang/hangrecord.h"

enum { DUMPS_BYTES_MAX = 256 << 20, DUMPS_RANKS_MAX = 1 << 20 };

enum dump_kind {
	DUMP_NONE,
	DUMP_STACKS,
	DUMP_RECORD,
	DUMP_NCCL_PICKLE,
	DUMP_NCCL_JSON,
	DUMP_PYSPY,
	DUMP_PYSPY_JSON,
	DUMP_GDB,
};

struct dumps {
	struct arena arena;		 /* owns all that the records point to */
	VEC(struct hang_record) records; /* by rank once dumps_join() was called */
	VEC(const char *) notes;	 /* what was left out */
};

void dumps_init(struct dumps *dumps);
void dumps_done(struct dumps *dumps);

/* By the first bytes of a file. DUMP_NONE: it is no dump. */
enum dump_kind dumps_kind(const char *head, size_t len);

/* Whether the file is a dump. A file that can't be opened is none. */
bool dumps_is(const char *path);

/* Adds what the file has. Returns 0, or -errno with a line in err; then dumps is unchanged. */
_must_check_ int dumps_read(const char *path, struct dumps *dumps, struct err *err);

/* The same from memory; path names the data in err, and is the source of its records. */
_must_check_ int dumps_parse(const char *path, const char *data, size_t len, struct dumps *dumps,
			     struct err *err);

/*
 * Joins records of the same rank, sorts, and gives ranks to those without one, in the order of the
 * files.
 */
void dumps_join(struct dumps *dumps);
