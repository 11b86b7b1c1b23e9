/* SPDX-License-Identifier: Apache-2.0 */
/* How long a store keeps what: what is too old, or too much, is removed. */
#pragma once

#include "store/store.h"

struct store_limits {
	int64_t second_s, minute_s, hour_s; /* ages of the tiers of pace */
	int64_t data_s;			    /* age of fingerprints and documents */
	int64_t job_s;	   /* age of jobs that are over, with all that is theirs; 0: they stay */
	int64_t bytes_max; /* the oldest fingerprints, then documents go first */
};
extern const struct store_limits store_default_limits;

/* Removes what is too old or too much. Not inside a transaction. */
_must_check_ int store_prune(struct store *store, const struct store_limits *limits, int64_t now_ns,
			     struct err *err);

/* Rows of each table, and bytes on disk without what is free. */
struct store_size {
	int64_t job_cnt, report_cnt, finding_cnt, document_cnt, fingerprint_cnt, pace_cnt,
		event_cnt;
	int64_t bytes;
};

/*
 * The same in one transaction, with the sizes before and after it. dry: it is rolled back. Other writers wait
 * meanwhile.
 */
_must_check_ int store_prune_counted(struct store *store, const struct store_limits *limits,
				     int64_t now_ns, bool dry, struct store_size ret[static 2],
				     struct err *err);
