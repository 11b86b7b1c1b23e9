/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The findings of the HTML report: the table of figure 7, then a card for each.
 */
#pragma once

#include "base/str.h"
#include "model/report.h"

/* Appends both; nothing when there are no findings. */
void html_findings(const struct report *report, struct str *out);
