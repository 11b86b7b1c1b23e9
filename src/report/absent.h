/* SPDX-License-Identifier: Apache-2.0 */
/* What was not recorded, for people: sources that are missing for the same reason are one line. */
#pragma once

#include "base/str.h"
#include "model/report.h"

/* Distinct reasons. */
size_t absent_cnt(const struct report *report);

/* Whether no absence before the i-th has the same reason. */
bool absent_is_first(const struct report *report, size_t i);

/* "GPU counters, network counters: not recorded"; all sources with the reason of the i-th. */
void absent_phrase(struct str *out, const struct report *report, size_t i);
