/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints a report: as text for a terminal, as JSON for programs, as one HTML file with
 * pictures of the evidence. All three have the same content. JSON is a contract
 * (docs/report-schema.json); text and HTML may change.
 *
 * Names in a report come from user code and foreign files: text escapes control characters,
 * HTML escapes markup.
 * Source: PerfTracker figures 7 and 13.
 */
#pragma once

#include "base/base.h"
#include "base/str.h"
#include "model/report.h"

#define REPORT_TEXT_WIDTH_MIN 80

struct report_text_options {
	bool color;   /* the caller looks at isatty() and NO_COLOR */
	int width;    /* columns of the terminal; below 80 (or 0) counts as 80 */
	bool verbose; /* details of all findings, whole stacks and rank sets */
};

/*
 * Each appends one complete document to out, the same bytes for the same
 * report, and returns 0 or -ENOMEM; on failure out is unchanged.
 * Absent strings (NULL) are printed as empty, numbers that are not finite as
 * "-" (null in JSON). O(size of the report).
 */
_must_check_ int report_text(const struct report *report, const struct report_text_options *options,
			     struct str *out);
_must_check_ int report_json(const struct report *report, struct str *out);
_must_check_ int report_html(const struct report *report, struct str *out);
