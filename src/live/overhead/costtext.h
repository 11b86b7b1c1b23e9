/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PerfTracker's own cost as reports show it, and as the one line of text in which the daemon sends
 * it to `perftracker status`: "effect=PCT,LOW,HIGH,PAIRS window=... audits=CNT,S,JOB_S,PCT
 * left_out=BITS own=RANK_S,S,S,...". Unknown costs are omitted.
 */
#pragma once

#include "base/str.h"
#include "live/link/wire_report.h"
#include "model/report.h"

/* torch: torch.profiler recorded the window, whose cost is unknown. */
void costtext_of(const struct wire_overhead *overhead, const struct own_cpu *own, bool torch,
		 struct report_overhead *ret);

void costtext_write(const struct report_overhead *overhead, struct str *text);

/* Logs the sentence of reports: event=... cost="...". */
void costtext_log(const char *event, const struct report_overhead *overhead);

/* What the text lacks is unknown; a daemon of another version may send other parts. */
void costtext_read(const char *text, struct report_overhead *ret);
