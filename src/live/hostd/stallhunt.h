/* SPDX-License-Identifier: Apache-2.0 */
/*
 * After a report whose cause may lie outside of the job's code, hostd watches its workers in a stall
 * window: `perftracker stalls` in a child at low priority, for STALLHUNT_NS, at most once in
 * STALLHUNT_GAP_NS. What it finds goes to the hub, which adds it to the report. The daemon itself
 * opens no events.
 */
#pragma once

#include "live/link/wire_report.h"
#include "live/link/wire_stalls.h"
#include "live/run/options.h"

#include <uv.h>

#define STALLHUNT_NS (12 * NSEC_PER_SEC) /* four times the period that is expected, and more */
#define STALLHUNT_GAP_NS (60 * NSEC_PER_SEC)
#define STALLHUNT_WORKERS_MAX 16u /* of a host; others are not watched */

struct stallhunt;

/* found: a window has ended. */
typedef void stallhunt_found(void *arg, const struct wire_stalls *stalls);

/* NULL: out of memory. */
_must_check_ struct stallhunt *stallhunt_new(uv_loop_t *loop, const struct run_options *options,
					     stallhunt_found *found, void *arg);

/* Ends a window that is open. hunt may be NULL. */
void stallhunt_close(struct stallhunt *hunt);

/* Whether a report is one that a stall window may explain. */
bool stallhunt_wants(const struct wire_report *report);

/* Begins a window for these processes unless one is open, was open a short time ago, or cnt is 0. */
void stallhunt_begin(struct stallhunt *hunt, uint64_t number, const uint32_t *pids, size_t cnt,
		     int64_t now_ns);

/* text[len]: the JSON of `perftracker stalls`. Returns 0; -EINVAL: it is none. number stays. */
_must_check_ int stallhunt_parse(const char *text, size_t len, struct wire_stalls *ret);
