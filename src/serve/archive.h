/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a server shows: the jobs of a store, and reports in folders. A store that is not there yet
 * is empty, and is opened when it comes; one that failed is opened again.
 */
#pragma once

#include "base/str.h"
#include "serve/catalog.h"
#include "store/storelist.h"

#define ARCHIVE_ID_BYTES 40u

struct archive {
	char place[4200];    /* of the store; "": none */
	struct store *store; /* NULL: not open */
	struct catalog *catalog;
};

/* Whether the store is open now. Returns 0, -ENOENT: there is none (yet); or -errno. */
_must_check_ int archive_open_store(struct archive *archive, struct err *err);

/* After a failed query: the store is opened anew at the next request. */
void archive_drop_store(struct archive *archive);

void archive_done(struct archive *archive);

/* Which jobs. */
struct archive_filter {
	const char *text;  /* a part of name, key, host, owner, command or verdict; NULL: any */
	const char *state; /* the beginning of a state; NULL: any */
	struct store_job_place after; /* started_ns INT64_MAX: from the newest */
	size_t limit;
};

/*
 * Jobs that fit, the newest first. *ret_more: there are more, behind *ret_last. Returns 0 or -errno
 * with a line in err; -ENOENT: there is no store.
 */
_must_check_ int archive_list_jobs(struct archive *archive, const struct archive_filter *filter,
				   store_job_fn fn, void *arg, bool *ret_more,
				   struct store_job_place *ret_last, struct err *err);

/* "1764310000123456789-3fa9d1e0b2c4": a place as text, and back. Returns 0 or -EINVAL. */
void archive_print_place(const struct store_job_place *place, char ret[static 48]);
_must_check_ int archive_parse_place(const char *text, struct store_job_place *ret);

/* "3fa9d1e0b2c4-2", "3fa9d1e0b2c4-end": a report of the store in a URL. Returns 0 or -EINVAL. */
void archive_print_id(const char *job, uint64_t number, char ret[static ARCHIVE_ID_BYTES]);
_must_check_ int archive_parse_id(const char *id, char ret_job[static STORE_KEY_BYTES],
				  uint64_t *ret_number);

/*
 * A report by its id as "json" or "html", from store or folder. Returns 0 or -errno with a line in
 * err; -ENOENT: there is none.
 */
_must_check_ int archive_get_report(struct archive *archive, const char *id, const char *form,
				    struct str *ret, struct err *err);

/* Whether text has part in it, whatever the case of its letters. */
bool archive_has_text(const char *text, const char *part);
