/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a store says of jobs: each function gives rows to a handler, whose texts are borrowed until
 * it returns; a handler that returns -errno ends the reading with it. 0 or -errno with a line in
 * err.
 */
#pragma once

#include "store/store.h"

/* Hosts that a finding accuses. */
struct store_accusation {
	const char *hosts; /* joined by commas */
	const char *job, *name, *cause, *title, *confidence;
	uint64_t number; /* of the report */
	int64_t made_ns;
	double gain_ms;
};

/* A finding of a job, with its report. */
struct store_named_finding {
	const char *job, *cause, *title, *function_key;
	uint64_t number; /* of the report */
	int64_t made_ns;
	double gain_ms, iteration_ms; /* of the report */
};

typedef int (*store_named_finding_fn)(void *arg, const struct store_named_finding *finding);
typedef int (*store_job_fn)(void *arg, const struct store_job *job);
typedef int (*store_report_fn)(void *arg, const struct store_report *report, size_t finding_cnt);
typedef int (*store_finding_fn)(void *arg, const struct store_finding *finding);
typedef int (*store_pace_fn)(void *arg, const struct store_pace *pace);
typedef int (*store_event_fn)(void *arg, const struct store_event *event);
typedef int (*store_accusation_fn)(void *arg, const struct store_accusation *accusation);
typedef int (*store_window_fn)(void *arg, uint64_t number, size_t fingerprint_cnt);
typedef int (*store_bytes_fn)(void *arg, int rank, const void *data, size_t len);

/* The newest first; cnt 0: all. */
_must_check_ int store_list_jobs(struct store *store, size_t cnt, store_job_fn fn, void *arg,
				 struct err *err);

/* A place in the list of jobs: behind the job with this begin and key. */
struct store_job_place {
	int64_t started_ns;
	char key[STORE_KEY_BYTES];
};

/* The cnt jobs after that place, the newest first. */
_must_check_ int store_list_jobs_after(struct store *store, const struct store_job_place *after,
				       size_t cnt, store_job_fn fn, void *arg, struct err *err);

/* Jobs whose daemon has said something since then, in any order. */
_must_check_ int store_list_jobs_seen(struct store *store, int64_t since_ns, store_job_fn fn,
				      void *arg, struct err *err);

/* The newest cnt jobs of that name that began before then. */
_must_check_ int store_list_jobs_named(struct store *store, const char *name, int64_t before_ns,
				       size_t cnt, store_job_fn fn, void *arg, struct err *err);

/* Jobs kept by that host in that time, but for the one with this key; in any order. */
_must_check_ int store_list_jobs_beside(struct store *store, const char *host, const char *key,
					int64_t from_ns, int64_t until_ns, store_job_fn fn,
					void *arg, struct err *err);

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
/* The latest cnt events of one kind of all jobs with this name, the newest first. */
_must_check_ int store_list_named_events(struct store *store, const char *name, const char *kind,
					 size_t cnt, store_event_fn fn, void *arg, struct err *err);
/* Jobs with an event of that kind, by their keys; other members are 0. In any order. */
_must_check_ int store_list_jobs_with_event(struct store *store, const char *kind, store_job_fn fn,
					    void *arg, struct err *err);
/* Events from this place on. */
_must_check_ int store_list_events_from(struct store *store, const char *key, uint64_t place,
					store_event_fn fn, void *arg, struct err *err);
/* By the time of the reports; findings that were kept before version 2 of the store have no hosts. */
_must_check_ int store_list_accusations(struct store *store, store_accusation_fn fn, void *arg,
					struct err *err);
/* The cnt newest findings of jobs of that name that began before then, the newest first. */
_must_check_ int store_list_named_findings(struct store *store, const char *name, int64_t before_ns,
					   size_t cnt, store_named_finding_fn fn, void *arg,
					   struct err *err);
/* fn gets the document once, rank -1. -ENOENT: it was not kept. */
_must_check_ int store_get_document(struct store *store, const char *key, uint64_t number,
				    const char *form, store_bytes_fn fn, void *arg,
				    struct err *err);
/* Windows of the job that have fingerprints, by number. */
_must_check_ int store_list_windows(struct store *store, const char *key, store_window_fn fn,
				    void *arg, struct err *err);
_must_check_ int store_list_fingerprints(struct store *store, const char *key, uint64_t number,
					 store_bytes_fn fn, void *arg, struct err *err);
