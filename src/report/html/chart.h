/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pictures of the HTML report, each a <figure> with inline SVG. Accused workers differ
 * from their peers by shape and color. A note under the picture says which data were omitted
 * or aggregated to keep the page small.
 * Source: PerfTracker figures 12, 13 and 15.
 */
#pragma once

#include "base/base.h"
#include "base/str.h"
#include "model/report.h"

/* Lines of this many workers, dots of this many points are drawn one by one. */
#define CHART_LINES_MAX 64
#define CHART_POINTS_MAX 400

/* Iteration times of all workers over the window. Prints nothing without iterations. */
void chart_iterations(const struct report *report, struct str *out);

/* Shares of the window by class, per worker. */
void chart_shares(const struct report *report, struct str *out);

/*
 * The finding's function on all compared workers: beta, mu and sigma against
 * each other as in figure 13; without samples its time over the ranks.
 */
void chart_finding(const struct finding *finding, size_t index, struct str *out);

/* Who waited for whom: rows are late ranks, columns those who waited. */
void chart_waits(const struct report *report, struct str *out);

/* Whether rank is accused by a finding that accuses some workers, not all. */
bool chart_accused(const struct report *report, int rank);

/* Opens a <figure> with a caption; figure_close() ends it. */
void figure_open(struct str *out, const char *caption);
/* The colors of the classes, the most important class first. */
void figure_legend(struct str *out);
/* note (may be NULL): plain text under the picture. */
void figure_close(struct str *out, const char *note);
