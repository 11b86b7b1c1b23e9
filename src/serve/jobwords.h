/* SPDX-License-Identifier: Apache-2.0 */
/* How jobs of the store are shown by commands, the API and pages alike: states, times, JSON. */
#pragma once

#include "report/jsonwriter.h"
#include "store/storelist.h"

/* "running", "ended", "failed (exit 1)", or "lost": its daemon has said nothing for a minute. */
void jobwords_state(const struct store_job *job, char ret[static 32]);

/* "2026-11-23 12:03:41" UTC, and "2026-11-23T12:03:41Z". */
void jobwords_time(int64_t wall_ns, char ret[static 32]);
void jobwords_iso(int64_t wall_ns, char ret[static 32]);

/* "3 s", "12 min", "5.0 h" */
void jobwords_span(int64_t ns, char ret[static 16]);

/* Puts the members of the job into an object. */
void jobwords_put_job(struct json_writer *w, json_t *to, const struct store_job *job);

/* When the job was seen last: its end, or now for one that runs. */
int64_t jobwords_until_ns(const struct store_job *job);
