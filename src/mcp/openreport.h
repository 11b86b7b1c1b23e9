/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A report by the word that an agent has for it, read into JSON; the last one stays open, so that
 * several questions about one report read it once.
 */
#pragma once

#include "serve/archive.h"

#include <jansson.h>

struct openreport {
	json_t *root; /* NULL: none */
	char id[ARCHIVE_ID_BYTES];
	int64_t changed_ns, bytes; /* of a file */
};

void openreport_done(struct openreport *report);

/*
 * word: an id of list_jobs ("f0123456789ab", "3fa9d1e0b2c4-2"), KEY/NUMBER, a part of the path of a
 * report in the folders, a job of the store, or NULL for the newest report. Returns 0; -ENOENT or
 * -ENOTUNIQ with a line in err that says what to do; -EINVAL for a file that is no report.
 */
_must_check_ int openreport_find(struct openreport *report, struct archive *archive,
				 const char *word, struct err *err);
