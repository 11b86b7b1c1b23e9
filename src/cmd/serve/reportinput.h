/* SPDX-License-Identifier: Apache-2.0 */
/* A report that a user names: a file, a folder of reports, or a report of the store. */
#pragma once

#include "cmd/storechoice.h"

/*
 * word: a file report.json; a folder, of which the newest report counts; else JOB/NUMBER or JOB/end of
 * the store that --store means. Appends its JSON, which is not checked. 0 or -errno with a line in err.
 */
_must_check_ int reportinput_read(const char *store, const char *word, struct str *ret,
				  struct err *err);
