/* SPDX-License-Identifier: Apache-2.0 */
/* The store that jobs, history and report read: shared by them. */
#pragma once

#include "base/str.h"
#include "cmd/cmd.h"
#include "report/jsonwriter.h"
#include "store/storelist.h"

#define STORE_CHOICE_ROW(owner, field)                                                   \
	{                                                                                \
		.name = "store", .argument = "FILE|URL", OPTION_FIELD(owner, field),     \
		.help = "the store to read",                                             \
		.preset = "$PERFTRACKER_STORE, else ~/.local/state/perftracker/store.db" \
	}

/* Opens the store that given (NULL: none) means. 0 or -errno with a line in err. */
_must_check_ int storechoice_open(const char *given, struct store **ret, struct err *err);

/* "running", "ended", "failed (exit 1)", or "lost": its daemon has said nothing for a minute. */
void storechoice_state(const struct store_job *job, char ret[static 32]);

/* "2026-11-23 12:03:41" UTC, and "2026-11-23T12:03:41Z". */
void storechoice_time(int64_t wall_ns, char ret[static 32]);
void storechoice_iso(int64_t wall_ns, char ret[static 32]);

/* "3 s", "12 min", "5.0 h" */
void storechoice_span(int64_t ns, char ret[static 16]);

/* Puts the members of the job into an object. */
void storechoice_put_job(struct json_writer *w, json_t *to, const struct store_job *job);

/* When the job was seen last: its end, or now for one that runs. */
int64_t storechoice_until_ns(const struct store_job *job);
