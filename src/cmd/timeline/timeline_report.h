/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a timeline takes from a report (--report): the time of its window, what its findings accuse, and (timeline_kept.c)
 * which files of the folder beside it have that window.
 */
#pragma once

#include "cmd/cmd.h"
#include "report/timeline/timebins.h"

#include <jansson.h>

struct timeline_report {
	json_t *root; /* texts below are borrowed from it */
	VEC(struct timebins_finding) findings;
	VEC(int *) rank_sets;	   /* of the findings */
	int64_t window_wall_ns[2]; /* 0: not known */
	unsigned number; /* of the window, by the report's name: "report-3.json"; 0: not known */
};

/*
 * Takes a report of len bytes; word is its name. Returns 0 or -errno with a line in err; timeline_report_done() in
 * either case.
 */
_must_check_ int timeline_report_parse(const char *word, const char *text, size_t len,
				       struct timeline_report *ret, struct err *err);

/*
 * Reads the report that word means (reportinput.h). Returns 0 or -errno with a line in err;
 * timeline_report_done() in either case.
 */
_must_check_ int timeline_report_read(const char *store, const char *word,
				      struct timeline_report *ret, struct err *err);
void timeline_report_done(struct timeline_report *report);

/*
 * Appends what has the window among what a run left in folder: the traces that the report was made of, as far as
 * they are inside it; else flight recorders of profiles (traces/), else those of the end of the ranks (flight/).
 * Returns 0 or -errno with a line in err; -ENOENT: nothing is kept.
 */
_must_check_ int timeline_report_inputs(const struct timeline_report *report, const char *folder,
					path_list *ret, struct err *err);
