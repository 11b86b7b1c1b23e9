/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Localization of a job of any size. Up to ANYSIZE_BLAME_MAX workers localize() compares whole
 * fingerprints and computes blame. Above, columns_localize() compares the columns of all workers,
 * and a note of the report says that blame was not computed.
 * Source: docs/center.md, "Which way a job takes".
 */
#pragma once

#include "localize/localize.h"
#include "model/thresholds.h"

/*
 * Same arguments and errors as localize(). blame_max: ANYSIZE_BLAME_MAX, or another number of
 * workers up to which localize() does it. Above, the report has no waits and no notes that need
 * blame, and may have a finding for an occasional task (columns.h). Its list of workers, its
 * absences, the notes of lost records and the job's id are taken from the fetched workers
 * (columns_report.h); the verdict counts what each worker lost. O(workers * log(workers)).
 */
_must_check_ int anysize_localize(const struct fingerprint *const *fps, size_t cnt,
				  const struct localize_options *options, size_t blame_max,
				  struct report *ret, struct err *err);
