/* SPDX-License-Identifier: Apache-2.0 */
/* The command that shows a finding on a timeline, to be copied from a report. */
#pragma once

#include "base/str.h"
#include "model/report.h"

/*
 * "perftracker timeline -o timeline.json rank2.json rank0.json": traces of a flagged rank and of
 * one that is not, or the folder of a live run. Nothing where neither is known, or where a path
 * would need quoting.
 */
void phrase_see_command(struct str *out, const struct report *report,
			const struct finding *finding);
