/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports in folders: JSON files of perftracker.report, with the page beside each. Folders are
 * read again when they are asked for, at most every two seconds; a file is read once for each of
 * its changes. A copy of a report in the same folder, as report.json is of the latest report-N.json,
 * is left out.
 */
#pragma once

#include "base/err.h"
#include "base/vec.h"

#define CATALOG_REPORTS_MAX 5000u
#define CATALOG_DEPTH_MAX 4
#define CATALOG_BYTES_MAX ((size_t)64 << 20) /* of a report */

/* Of one report; texts are NULL where the file does not say. */
struct catalog_report {
	char id[16];  /* "f" and hex digits, from the path */
	char *path;   /* of the JSON file */
	char *folder; /* where it is */
	char *html;   /* the page beside it; NULL: none */
	char *job, *verdict, *reason, *title, *advice, *ranks, *hosts, *cause, *made;
	int64_t changed_ns, bytes; /* of the file */
	uint64_t inode;
	double gain_ms, gain_pct, iteration_ms;
	int64_t world_size, finding_cnt;
	uint64_t content; /* hash of the bytes */
	bool seen, copy;
};

struct catalog;

/* folders[cnt] are borrowed. NULL: out of memory. */
struct catalog *catalog_new(const char *const *folders, size_t cnt);
struct catalog *catalog_free(struct catalog *catalog);

/* Reads what changed. Returns 0 or -ENOMEM; folders that cannot be read are empty. */
_must_check_ int catalog_refresh(struct catalog *catalog, int64_t now_ns);

/* The i-th report, the newest first; NULL: there are no more. Valid until the next refresh. */
const struct catalog_report *catalog_borrow(const struct catalog *catalog, size_t i);
const struct catalog_report *catalog_find(const struct catalog *catalog, const char *id);

/* Files that looked like reports and were left out: damaged, too large, too many. */
size_t catalog_left_out(const struct catalog *catalog);
