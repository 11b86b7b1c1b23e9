/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stacks of all ranks of a job that hangs, as a part of its report: one tree, each node with the
 * ranks that are there. Text: the training threads alone, cut; page and JSON: all threads.
 */
#pragma once

#include "base/str.h"
#include "model/report.h"
#include "report/jsonwriter.h"

/* Nothing without stacks. width: in cells. The caller checks out for its error. */
void hangtree_text(struct str *out, const struct report *report, size_t width);
void hangtree_html(struct str *out, const struct report *report);

/* Null without stacks. */
json_t *hangtree_json(struct json_writer *w, const struct report *report);
