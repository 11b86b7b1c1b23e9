/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes what the hub learns of its job to the store, on a thread of its own: a slow disk, a locked
 * database or a server that is away never holds the hub up. The queue has a limit; what the store
 * did not take is counted and is part of the job's row.
 *
 * All functions take NULL, which keeps nothing, and return at once, but for keeper_close().
 */
#pragma once

#include "base/err.h"
#include "memory/hosttally.h"
#include "memory/pastfindings.h"
#include "model/report.h"

#define KEEPER_QUEUE_MAX 16384u

/* Texts are copied. */
struct keeper_setup {
	const char *where; /* of store_open() */
	const char *name, *folder, *command;
	const struct keeper *twin; /* has drawn the key of this job already; NULL: draw one */
	bool remote;		   /* the job's workers are on other machines */
	bool brief;		   /* for a page of this job while it runs: written each second,
				    * not brought to the disk, without fingerprints */
};

struct keeper;

/* Draws the job's key and starts the thread, which opens the store. 0 or -errno with a line in err. */
_must_check_ int keeper_open(const struct keeper_setup *setup, struct keeper **ret,
			     struct err *err);

/*
 * All that the keeper is given from here on, other gets, too. Borrowed; it is closed after keeper, which
 * it must not follow itself.
 */
void keeper_also(struct keeper *keeper, struct keeper *other);

/* Borrowed; "" without a keeper. */
const char *keeper_borrow_key(const struct keeper *keeper);

/* The job as it is now. Its row is made by the first call. Texts are copied. */
struct keeper_state {
	const char *state, *verdict, *reason; /* NULL: unknown */
	uint32_t workers, restarts;
	uint64_t step;
	int64_t now_ns, best_ns; /* of an iteration */
	bool ended;
	int exit_status, signal;
};
void keeper_state(struct keeper *keeper, const struct keeper_state *state);

/* The time of an iteration at a step; a step that was seen adds nothing. */
void keeper_pace(struct keeper *keeper, uint64_t step, int64_t iteration_ns);

/*
 * A report; its files FOLDER/report-NUMBER.json, .html and .txt (report.json ... for 0) are read by
 * the thread. paths: of fingerprints, FOLDER/.../RANK..., whose ranks are given.
 */
void keeper_report(struct keeper *keeper, const struct report *report, uint64_t number);
void keeper_fingerprint(struct keeper *keeper, uint64_t number, int rank, const char *path);

/*
 * What is said between the two goes to the store in one transaction: a window's fingerprints and report,
 * and that it is concluded.
 */
void keeper_begin(struct keeper *keeper);
void keeper_end(struct keeper *keeper);

/*
 * The window of a hub's epoch is concluded, with fingerprints of these ranks, which it sorts.
 * keeper_take_committed() gives each once that the store has; it never does if the store lost it.
 */
void keeper_window(struct keeper *keeper, uint64_t epoch, uint64_t number, int *ranks, size_t cnt);
bool keeper_take_committed(struct keeper *keeper, uint64_t *ret_epoch, uint64_t *ret_number);

/* Whether the store has that window of any hub of a job with this name. */
enum keeper_known {
	KEEPER_ASK_AGAIN, /* the store is not open yet */
	KEEPER_UNKNOWN,
	KEEPER_WITHOUT, /* the window, but nothing of this rank */
	KEEPER_KNOWN,
};
enum keeper_known keeper_find_window(struct keeper *keeper, uint64_t epoch, uint64_t number,
				     int rank);

/* What happened: kind is a word, such as order, slow, restart. */
void keeper_event(struct keeper *keeper, const char *kind, const char *fmt, ...) _printf_(3, 4);

/* What the store knew when the job began. */
struct keeper_memory {
	struct earlier earlier;	  /* runs of this name */
	struct pastfindings past; /* their findings */
	struct hosttally hosts;	  /* accused in other jobs */
};

/* Call it first: earlier runs are read as soon as the job's state is known, and its machine is an event. */
void keeper_remember(struct keeper *keeper);

/* NULL: not read yet. Valid until keeper_close(), and unchanged. */
const struct keeper_memory *keeper_borrow_memory(struct keeper *keeper);

/*
 * How the pace of this run with so many workers is to that of earlier runs of its name in the store. Returns
 * false: they have not been read yet. O(n log n) of the run's seconds; waits for no disk.
 */
bool keeper_compare(struct keeper *keeper, uint32_t workers, struct earlier_answer *ret);

/* Writes what is left and ends the thread, after 10 s at the latest. Returns NULL. */
struct keeper *keeper_close(struct keeper *keeper);
