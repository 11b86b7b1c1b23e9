/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints a comparison of two runs: as text for a terminal, as JSON for programs
 * (docs/compare-schema.json), as one HTML file. The rules of report/formats.h apply:
 * foreign names are escaped, the same comparison gives the same bytes.
 */
#pragma once

#include "model/comparison.h"
#include "report/formats.h"

/*
 * Each appends one document to out and returns 0 or -ENOMEM; on failure out is unchanged.
 * verbose: all rows, and whole stacks.
 */
_must_check_ int comparison_text(const struct comparison *comparison,
				 const struct report_text_options *options, struct str *out);
_must_check_ int comparison_json(const struct comparison *comparison, struct str *out);
_must_check_ int comparison_html(const struct comparison *comparison, struct str *out);
