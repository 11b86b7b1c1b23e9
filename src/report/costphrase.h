/* SPDX-License-Identifier: Apache-2.0 */
/* PerfTracker's own cost as a sentence, for reports, `perftracker status` and the end of a run. */
#pragma once

#include "base/str.h"
#include "model/report.h"

/*
 * "0.19 % of a core per rank (exact); effect on iteration time not measurable (< 0.8 %, 95 % sure,
 * from 1,240 pairs); in a window +6.1 % (5.2 to 7, 95 % sure, from 24 pairs); 9 audits included
 * (130 s of 3600 s)". Unknown parts are omitted; "not measured yet" if all are.
 */
void phrase_overhead(struct str *out, const struct report_overhead *overhead);

/* "sampler 1.20, daemon 0.55 ms/s per rank"; nothing if it is unknown. */
void phrase_threads(struct str *out, const struct own_cpu *own);
