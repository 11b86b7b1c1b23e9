/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A finished report on its way to people: files in the output directory, text
 * or JSON where they asked for it.
 */
#pragma once

#include "base/err.h"
#include "live/link/wire.h"
#include "live/run/options.h"
#include "model/report.h"

/*
 * Writes report-<number>.json and .html, and report.json and .html as copies of
 * the latest; number 0 writes the latter only. Files appear complete or not at
 * all. Returns 0 or -errno with a line in err.
 */
_must_check_ int publish_files(const struct report *report, const struct run_options *options,
			       uint64_t number, struct err *err);

/* What the daemons of the job are told of it. */
void publish_digest(const struct report *report, struct wire_report *ret);

/* Prints it as --format and --report-to say. */
void publish_print(const struct report *report, const struct run_options *options);
