/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verdict on a stall window as text for people, as JSON (schema "perftracker.stalls.v1",
 * docs/stalls.md), and as a timeline for Perfetto and chrome://tracing.
 */
#pragma once

#include "base/str.h"
#include "model/stalls/stallverdict.h"

/* verbose: also causes below the thresholds, and whole kernel stacks. Returns 0 or -ENOMEM. */
_must_check_ int stallforms_text(const struct stall_verdict *verdict, bool verbose,
				 struct str *out);
_must_check_ int stallforms_json(const struct stall_verdict *verdict, struct str *out);
_must_check_ int stallforms_timeline(const struct stall_verdict *verdict, struct str *out);

/* What to do about a class; "" where nothing general helps. */
const char *stallforms_advice(const struct stall_finding *finding);

/* What was found, in one line: how much, how often, by whom. */
void stallforms_sentence(const struct stall_verdict *verdict, const struct stall_finding *finding,
			 struct str *out);

/* A command line, shortened for people; "?" for "". */
void stallforms_command(const char *command, struct str *out);

/* "process 812 `python3 agent.py`", and what else is known of a culprit. */
void stallforms_culprit(const struct stall_verdict *verdict, const struct stall_culprit *culprit,
			struct str *out);
