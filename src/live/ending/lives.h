/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lives of a job. A launcher that restarts a job whose rank has failed begins a new life of it:
 * new processes with the same ranks. Which ranks ended, how and in which order is kept of each, so
 * that the last report tells what failed, whatever the exit status of the launcher says. Programs
 * that run one after another, each to its good end, are lives without a failure.
 * A fixed number of lives, and of ends in each, is kept: the first ones, and the latest life.
 */
#pragma once

#include "base/str.h"
#include "live/link/wire.h"

#define LIVES_MAX 8u
#define LIFE_ENDS_MAX 16u

/* One worker that ended. */
struct life_end {
	struct wire_state state;
	uint64_t others_step; /* the greatest step of the other workers then */
};

struct life {
	uint32_t first_arrival;		     /* of its workers */
	bool failed;			     /* a rank failed; fixed when the next life begins */
	uint64_t step;			     /* the greatest of its workers, when it ended */
	struct life_end ends[LIFE_ENDS_MAX]; /* in the order in which they ended */
	size_t cnt;
};

struct lives {
	struct life all[LIVES_MAX];
	size_t earlier_cnt; /* kept; all[earlier_cnt] is the present one */
	unsigned restarts;  /* lives that ended with a failure and were followed by another one */
};

/* Whether a worker ended by an exception, a signal, or an exit code other than 0. */
bool life_is_failure(const struct wire_state *state);

/* Whether it was asked to end: by SIGINT, which Python makes a KeyboardInterrupt. */
bool life_is_interrupt(const struct wire_state *state);

/*
 * The first end of the life, and the first that is a failure; NULL: none. An abort comes after an
 * exception of another rank, though news of it may come first: peers of a rank that ended abort.
 */
const struct life_end *life_first(const struct life *life);
const struct life_end *life_first_failure(const struct life *life);

/* Whether its failures are due to a SIGINT that the launcher got: at least half of them. */
bool life_is_interrupted(const struct life *life);

const struct life *lives_present(const struct lives *lives);

/* Of the earlier lives, the latest that failed; NULL: none is kept. */
const struct life *lives_latest_failed(const struct lives *lives);

/* Whether the end of the worker is kept, and how its process ended, too. */
bool lives_know(struct lives *lives, uint32_t worker);
bool lives_know_exit(struct lives *lives, uint32_t worker);

/* Whether all of the present life that ended did so without a failure; false: none, or too many. */
bool lives_ended_well(const struct lives *lives);

/* A worker has ended, or is known to have ended so: later states replace an earlier one. */
void lives_note_end(struct lives *lives, const struct wire_state *state, uint64_t others_step);

/*
 * A worker connects whose rank another one had that has ended. Returns whether that begins a new
 * life. arrival: of the new worker; step: the greatest of the present one.
 */
bool lives_note_successor(struct lives *lives, const struct wire_state *ended, uint32_t arrival,
			  uint64_t step);

/* "by ValueError", "by SIGKILL", "with exit code 3", "by itself", "without notice" */
void life_append_how(const struct wire_state *state, struct str *out);

/* "rank 1 (pid 77) ended at step 312 by ValueError" */
void life_append_end(const struct wire_state *state, struct str *out);

/* "SIGTERM", "signal 40" */
void life_append_signal(int number, struct str *out);
