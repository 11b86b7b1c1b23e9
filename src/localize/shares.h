/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions that hold most of the window, so that a report without a finding still shows
 * where the time goes. Calls from several places count together. Collectives count with what was
 * waited in them.
 * Source: docs/report-schema.json, "functions".
 */
#pragma once

#include "localize/job.h"
#include "model/report.h"

#define SHARES_MAX 20u

/* Fills the report's shares. Returns 0 or -ENOMEM. O(functions * (workers + SHARES_MAX + log(functions))). */
_must_check_ int shares_list(const struct job *job, struct report *report);
