/* SPDX-License-Identifier: Apache-2.0 */
/* PerfTracker's own cost as `perftracker status` prints it. */
#pragma once

#include "model/report.h"

/* Two lines of text: the sentence of the report, and the CPU time of each thread. */
void status_overhead_lines(const struct report_overhead *overhead);

/* An object: costs with their intervals, audits, what is left out, threads. */
void status_overhead_json(const struct report_overhead *overhead);
