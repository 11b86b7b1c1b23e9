/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who, when and where of a report in words and as JSON. Times are in UTC: the hosts of a job, and
 * the person who reads its report, may be in several zones.
 */
#pragma once

#include "base/str.h"
#include "model/reported/reportorigin.h"
#include "report/jsonwriter.h"

/* "2026-11-22 14:03:05 UTC" */
void phrase_moment(struct str *out, int64_t wall_ns);

/* "2026-11-22 14:03:05 to 14:03:09 UTC, steps 120 to 124"; nothing when neither is known. */
void phrase_when(struct str *out, const struct report_origin *origin);

/* Its two parts. */
void phrase_span(struct str *out, const struct report_origin *origin);
void phrase_steps(struct str *out, const struct report_origin *origin);

/* "gpu-01, gpu-02, gpu-03 and 1 more" */
void phrase_host_names(struct str *out, const struct report_origin *origin, size_t max);

/* "4 hosts: gpu-01, gpu-02, gpu-03 and 1 more", at most max of them by name; nothing of none. */
void phrase_hosts(struct str *out, const struct report_origin *origin, size_t max);

/* "PerfTracker 0.1.0, 2026-11-22 14:03:15 UTC, run 20261122-140305-train" */
void phrase_maker(struct str *out, const struct report_origin *origin);

/* The same as an object; NULL is an error that w has kept. */
json_t *whenwhere_json(struct json_writer *w, const struct report_origin *origin);
