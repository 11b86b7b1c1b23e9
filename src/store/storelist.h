/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a store says of jobs: each function gives rows to a handler, whose texts are borrowed until
 * it returns; a handler that returns -errno ends the reading with it. 0 or -errno with a line in
 * err.
 */
#pragma once

#include "store/store.h"

typedef int (*store_job_fn)(void *arg, const struct store_job *job);
typedef int (*store_report_fn)(void *arg, const struct store_report *report, size_t finding_cnt);
typedef int (*store_finding_fn)(void *arg, const struct store_finding *finding);
typedef int (*store_pace_fn)(void *arg, const struct store_pace *pace);
typedef int (*store_event_fn)(void *arg, const struct store_event *event);
typedef int (*store_bytes_fn)(void *arg, int rank, const void *data, size_t len);

/* The newest first; cnt 0: all. */
_must_check_ int store_list_jobs(struct store *store, size_t cnt, store_job_fn fn, void *arg,
				 struct err *err);

/*
 * The job that a user means by word: its key or the beginning of it, else the newest with this
 * name. -ENOENT, or -ENOTUNIQ when several keys begin so, with a line in err.
 */
_must_check_ int store_find_job(struct store *store, const char *word,
				char ret[static STORE_KEY_BYTES], struct err *err);
_must_check_ int store_get_job(struct store *store, const char *key, store_job_fn fn, void *arg,
			       struct err *err);
_must_check_ int store_list_reports(struct store *store, const char *key, store_report_fn fn,
				    void *arg, struct err *err);
_must_check_ int store_list_findings(struct store *store, const char *key, uint64_t number,
				     store_finding_fn fn, void *arg, struct err *err);
_must_check_ int store_list_pace(struct store *store, const char *key, int tier_s, store_pace_fn fn,
				 void *arg, struct err *err);
_must_check_ int store_list_events(struct store *store, const char *key, store_event_fn fn,
				   void *arg, struct err *err);
/* fn gets the document once, rank -1. -ENOENT: it was not kept. */
_must_check_ int store_get_document(struct store *store, const char *key, uint64_t number,
				    const char *form, store_bytes_fn fn, void *arg,
				    struct err *err);
_must_check_ int store_list_fingerprints(struct store *store, const char *key, uint64_t number,
					 store_bytes_fn fn, void *arg, struct err *err);
