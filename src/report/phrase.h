/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Phrases that text and HTML share: durations, shares, sets of workers, the verdict. All
 * output is clean (see clean.h) and contains no markup.
 */
#pragma once

#include "base/base.h"
#include "base/str.h"
#include "model/report.h"

/* A duration with three or four digits: "0.21 ms", "1003 ms", "10.2 s"; "-" when not finite. */
void phrase_ms(struct str *out, double ms);

/* "4.1 ms -> 33.8 ms per iteration", "33.8 ms per iteration, none before" */
void phrase_growth(struct str *out, const struct report_growth *growth);

/* "500 ms (+480 ms)"; the difference is omitted when it is unknown or zero. */
void phrase_time(struct str *out, const struct finding *finding);

/* A share: "0.25 %", "9.8 %", "88 %"; "-" when not finite. */
void phrase_pct(struct str *out, double pct);

/* Display name of a resource: "PCIe Tx" for "pcie_tx"; other names are shortened. */
void phrase_resource(struct str *out, const char *resource);

/* "37 % PCIe Tx (-38 %)": mu, its resource, the difference in percentage points; "-" when absent. */
void phrase_utilization(struct str *out, const struct finding *finding);

/* Whether tables need columns for utilization; the coverage explains missing ones. */
bool phrase_any_utilization(const struct report *report);

/* "1.5 %, peers 0.2 %": a value beside its reference. */
void phrase_value(struct str *out, const struct finding_value *value);

/* "all", "0-2,7"; past max_cells the head of the set and its size: "0,8,16,... (312)". */
void phrase_ranks(struct str *out, const struct finding *finding, size_t max_cells);
void phrase_rank_list(struct str *out, const int *ranks, size_t cnt, size_t max_cells);

/* Number of callers in the stack, whose last frame is mostly the function itself. */
size_t phrase_caller_cnt(const struct finding *finding);

/* "rank 2", "ranks 0-3", "all 4 workers". world_size 0: unknown. */
void phrase_subject(struct str *out, const struct finding *finding);

/* The headings of the classes of time, and of the report's functions (shares). */
#define PHRASE_BREAKDOWN "Where the time of an iteration goes, median of the workers"
#define PHRASE_BREAKDOWN_WHOLE "Where the time of the window goes, median of the workers"
#define PHRASE_SHARES "Functions that hold most of the window, mean over the workers"

/* "load_batch (host), called by train_step" */
void phrase_share(struct str *out, const struct report_share *share);

/* The first line of every report, without the leading word of the verdict. */
void phrase_verdict(struct str *out, const struct report *report);

/* "4 of 4 workers analyzed, ranks from file names". */
void phrase_coverage(struct str *out, const struct report *report);

/* "slowdown at step 120" */
void phrase_trigger(struct str *out, const struct report_trigger *trigger);

/* "iterations went from 126 ms to 1137 ms (9.0x)", nothing when either is unknown. */
void phrase_slowdown(struct str *out, const struct report_trigger *trigger);

/* "4 workers, 3 iterations of 1137 ms" */
void phrase_job(struct str *out, const struct report *report);

/* "loader, optimizer 1 (since step 12)", nothing when it is unknown. */
void phrase_loop(struct str *out, const struct report_loop *loop);
