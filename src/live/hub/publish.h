/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Publishes a finished report: files in the output directory, and text or JSON on the
 * terminal or stdout as the options say.
 */
#pragma once

#include "base/err.h"
#include "live/link/wire.h"
#include "live/link/wire_report.h"
#include "live/run/options.h"
#include "model/report.h"

/* Sets the job's name, its command, the run, the time, and the hosts where they are not known. */
void publish_origin(const struct run_options *options, const struct wire_state *states, size_t cnt,
		    struct report *report);

/*
 * Writes report-<number>.json and .html, and report.json and .html as copies of
 * the latest; number 0 writes the latter only. Files appear complete or not at
 * all. Returns 0 or -errno with a line in err.
 */
_must_check_ int publish_files(const struct report *report, const struct run_options *options,
			       uint64_t number, struct err *err);

/*
 * The same for .txt, as on a terminal of 100 columns; latest: also as report.txt. A failure is
 * ignored: the others are there.
 */
void publish_text(const struct report *report, const struct run_options *options, uint64_t number,
		  bool latest);

/* Writes report-<number>.json and .html only: the latest one stays. */
_must_check_ int publish_numbered(const struct report *report, const struct run_options *options,
				  uint64_t number, struct err *err);

/* The summary of a report that the hub sends to hostd. */
void publish_digest(const struct report *report, struct wire_report *ret);

/* Prints it as --format and --report-to say. */
void publish_print(const struct report *report, const struct run_options *options);
