/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports that can be compared: those whose fingerprints are kept, in the store or beside the report's file.
 */
#pragma once

#include "base/str.h"
#include "serve/routes.h"

/*
 * The argument of `perftracker diff` for the report with this id: JOB/NUMBER, or a folder. Returns 0, or
 * -ENOENT with a line in err: there is no such report, or its fingerprints are not kept.
 */
_must_check_ int comparechoice_input(struct routes *routes, const char *id, struct str *ret,
				     struct err *err);

/* Which of the options is selected. */
struct comparechoice_pick {
	const char *chosen;	       /* NULL: the first one but avoid */
	const char *avoid;	       /* NULL: none */
	char picked[ARCHIVE_ID_BYTES]; /* the result; "": none */
};

struct comparechoice_cnt {
	size_t listed, left_out; /* left out: no fingerprints */
};

/*
 * Appends an <option> for each report that can be compared: of the folders, and of the newest jobs of the
 * store. Returns 0 or -errno with a line in err.
 */
_must_check_ int comparechoice_put(struct routes *routes, struct comparechoice_pick *pick,
				   struct str *out, struct comparechoice_cnt *ret, struct err *err);
