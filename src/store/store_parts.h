/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of the store, shared by store.c, store_put.c, store_list.c and store_prune.c. */
#pragma once

#include "base/base.h"
#include "store/sqldatabase.h"
#include "store/storelist.h"

struct store {
	struct database *database;
};

/* What a row of a result is given to: fn has the member of that query. */
struct store_reader {
	union {
		store_job_fn job;
		store_report_fn report;
		store_finding_fn finding;
		store_pace_fn pace;
		store_event_fn event;
		store_bytes_fn bytes;
		store_window_fn window;
		store_accusation_fn accusation;
		store_named_finding_fn named_finding;
	} fn;
	void *arg;
	size_t seen;
};

#define STORE_SELECT_JOBS                                                                         \
	"SELECT job, name, host, owner, folder, command, started_ns, seen_ns, ended_ns, "         \
	"exit_status, signal, state, verdict, reason, workers, step, now_ns, best_ns, restarts, " \
	"lost FROM job "

/* Rows of jobs, and of events, for a store_reader. */
int store_on_job(void *arg, const struct cell *cells, size_t cnt);
int store_on_event(void *arg, const struct cell *cells, size_t cnt);

/* Runs text with the parameters that follow; rows go to handler with what. */
#define store_query(store, what, handler, text, err, ...)                                        \
	database_run(                                                                            \
		(store)->database,                                                               \
		&(struct statement){ .sql = (text),                                              \
				     .params = (const struct cell[]){ __VA_ARGS__ },             \
				     .param_cnt = sizeof((const struct cell[]){ __VA_ARGS__ }) / \
						  sizeof(struct cell),                           \
				     .on_row = (handler),                                        \
				     .arg = (what) },                                            \
		err)
#define store_run(store, text, err, ...) store_query(store, NULL, NULL, text, err, __VA_ARGS__)

/* Unpacks what store_pack() made. Returns 0, -EBADMSG, or -ENOMEM; the caller frees *ret. */
_must_check_ int store_unpack(const struct cell *packed, int64_t plain_bytes, char **ret);
_must_check_ int store_pack(const void *data, size_t len, char **ret, size_t *ret_len);
