/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A flame graph as SVG, callers above what they call: boxes in boxes of the caller's width. The
 * caller says what a box means; this module places and draws it. Shared by the pages of `flame` and
 * `stacks` and by the report.
 *
 * A picture is drawn for a page without scripts, or so that flamescript.h can zoom, search and be
 * used from the keyboard; then narrower boxes are drawn, too, because zooming shows them.
 */
#pragma once

#include "base/base.h"
#include "base/str.h"

#include <stdint.h>

#define FLAMEPICTURE_WIDTH 1040.0
#define FLAMEPICTURE_BOXES_MAX 20000 /* more, the narrowest of which are left out, are not drawn */
#define FLAMEBOX_ROOT UINT32_MAX

struct flamebox {
	uint32_t parent; /* an earlier box; FLAMEBOX_ROOT: the first row */
	double width;	 /* in the unit of flamepicture.total; not above the parent's */
	const char *label, *tip;
	const char *class; /* of the style sheet: a constant */
	bool on;	   /* the label is on a dark color */
};

struct flamepicture {
	const struct flamebox *boxes; /* in the order in which siblings are placed */
	size_t cnt;
	double total;		       /* the width of the whole picture */
	const char *id, *title, *desc; /* see svg_open() */
	bool scripted;
	size_t depth_max; /* rows; 0: all */
};

/* What was not drawn. */
struct flamepicture_left {
	size_t narrow, deep;
};

/* Returns 0 or -ENOMEM; then out ends as before. */
_must_check_ int flamepicture_draw(const struct flamepicture *picture, struct str *out,
				   struct flamepicture_left *ret);
