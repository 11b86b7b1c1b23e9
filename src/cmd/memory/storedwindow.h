/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fingerprints that the store keeps of one window of a job, as loaded files. A user names the window as its
 * report: JOB/NUMBER or JOB/end.
 */
#pragma once

#include "cmd/load.h"
#include "store/storelist.h"

/*
 * Appends the fingerprints of window number of the job with this key; label names the window in messages.
 * Returns 0, also for none, or -errno with a line in err. The caller calls load_done() in either case.
 */
_must_check_ int storedwindow_read(struct store *store, const char *key, uint64_t number,
				   const char *label, struct load_result *ret, struct err *err);

/* Whether word has the form of a report of the store and names no file. */
bool storedwindow_is(const char *word);

/* The same for word; place: of the store, NULL: the usual one. -ENOENT: the store keeps none of this window. */
_must_check_ int storedwindow_load(const char *place, const char *word, struct load_result *ret,
				   struct err *err);
