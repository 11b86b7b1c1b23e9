/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is kept of jobs when they are over: who ran, its pace, its windows with reports, findings
 * and fingerprints, and what happened. A job is named by a key of 12 hex digits that its hub draws;
 * a report by KEY/NUMBER. All times are wall clock, in ns since 1970 unless a name says _s.
 */
#pragma once

#include "base/err.h"
#include "base/vec.h"

#define STORE_KEY_BYTES 13u /* with its NUL */

struct store;

/* Draws a new key. Returns 0 or -errno of getrandom(). */
_must_check_ int store_draw_key(char ret[static STORE_KEY_BYTES]);

/*
 * The store that a user means. given: --store or NULL. Else PERFTRACKER_STORE, else
 * $XDG_STATE_HOME/perftracker/store.db, else ~/.local/state/perftracker/store.db. "" when given is
 * "none" or there is no home.
 */
void store_place(const char *given, char *ret, size_t size);

/* Opens or makes it; folders of the default place are made, too. 0 or -errno with a line in err. */
_must_check_ int store_open(const char *where, struct store **ret, struct err *err);

/*
 * What is written is no longer brought to the disk at each commit: for a file that is of no use
 * after its process. 0 or -errno with a line in err.
 */
_must_check_ int store_relax(struct store *store, struct err *err);

/* Opens what is there. -ENOENT: nothing. */
_must_check_ int store_open_to_read(const char *where, struct store **ret, struct err *err);
struct store *store_close(struct store *store);

/* --- writing: between begin and commit, else each call is a transaction of its own --- */

_must_check_ int store_begin(struct store *store, struct err *err);
_must_check_ int store_commit(struct store *store, struct err *err);
void store_rollback(struct store *store);

/* Texts are borrowed; NULL or 0 where unknown. */
struct store_job {
	const char *key, *name, *host, *owner, *folder, *command;
	int64_t started_ns, seen_ns, ended_ns; /* ended 0: it runs, or was lost */
	int exit_status, signal;
	const char *state, *verdict, *reason;
	uint32_t workers, restarts;
	uint64_t step, lost;	 /* lost: records that the store did not take */
	int64_t now_ns, best_ns; /* of an iteration */
};

/* Adds the job, or brings it up to date. */
_must_check_ int store_put_job(struct store *store, const struct store_job *job, struct err *err);

struct store_finding {
	const char *id, *cause, *title, *function, *function_key, *ranks, *confidence;
	const char *hosts; /* of the accused ranks, joined by commas */
	double gain_ms, gain_pct;
};

struct store_report {
	const char *job;
	uint64_t number;
	int64_t made_ns;
	const char *why, *verdict, *reason;
	uint64_t first_step, steps;
	double iteration_ms;
	uint32_t workers, missing;
};

/* Takes the place of the one with this number, and of its findings. */
_must_check_ int store_put_report(struct store *store, const struct store_report *report,
				  const struct store_finding *findings, size_t cnt,
				  struct err *err);

/* form: "json", "text", "html"; data is compressed. */
_must_check_ int store_put_document(struct store *store, const char *job, uint64_t number,
				    const char *form, const void *data, size_t len,
				    struct err *err);
_must_check_ int store_put_fingerprint(struct store *store, const char *job, uint64_t number,
				       int rank, const void *data, size_t len, struct err *err);

/* The times of iterations in one second. */
struct store_pace {
	int64_t at_s;
	uint64_t step, cnt; /* step: the last one */
	int64_t sum_ns, min_ns, max_ns;
};

/* Adds them to the second, its minute and its hour. */
_must_check_ int store_add_pace(struct store *store, const char *job, const struct store_pace *pace,
				struct err *err);

/* place: of the event in its job. */
struct store_event {
	const char *kind, *text;
	uint64_t place;
	int64_t at_ns;
};
_must_check_ int store_put_event(struct store *store, const char *job,
				 const struct store_event *event, struct err *err);
