/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pictures of the HTML report, each a <figure> with inline SVG. Flagged workers differ
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

/* Who was late in which iteration. Prints nothing when no rank was late. */
void chart_heat(const struct report *report, struct str *out);

/* One iteration of the culprit beside other ranks. */
void chart_lanes(const struct report *report, struct str *out);

/* Call stacks of the culprit against its peers. */
void chart_flame(const struct report *report, struct str *out);
/* The same for a page with flamescript_text and flamescript_style: to zoom, search, by keyboard. */
void chart_flame_scripted(const struct report *report, struct str *out);

/* The pace of a live job over its steps. */
void chart_pace(const struct report *report, struct str *out);

/* Whether a finding about some workers, not all, names this rank. */
bool chart_flagged(const struct report *report, int rank);

/* Whether the picture of lateness has a row of this rank alone, #late-R, and that of one iteration a lane, #lane-R. */
bool chart_has_late_row(const struct report *report, int rank);
bool chart_has_lane(const struct report *report, int rank);

/* The strength of a color, 0 to 9, for a time lost per iteration; -1: too short to be shown. */
int chart_heat_level(double ms, double iteration_ms);

/* Opens a <figure> with a caption; figure_close() ends it. */
void figure_open(struct str *out, const char *caption);
/* The colors of the classes, the most important class first. */
void figure_legend(struct str *out);
/* The strengths of chart_heat_level(); what: a constant. */
void figure_heat_legend(struct str *out, const char *what);
/* note (may be NULL): plain text under the picture. */
void figure_close(struct str *out, const char *note);
