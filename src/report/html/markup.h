/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes HTML text and inline SVG. Text from outside goes through markup_text(), which is
 * safe in content and in quoted attributes; all other strings are constants of the program.
 * Shapes are styled by classes of the page's style sheet, so that one picture serves light,
 * dark and print.
 * Source: HTML Living Standard (escaping text), SVG 1.1.
 */
#pragma once

#include "base/base.h"
#include "base/str.h"

/* Appends clean text (see clean.h) with & < > " ' escaped. NULL is empty. */
void markup_text(struct str *out, const char *text);

/* Like markup_text(), at most max_cells wide. */
void markup_text_short(struct str *out, const char *text, size_t max_cells);

/* Appends phrase, escaped, and frees it; its error is copied to out. */
void markup_take(struct str *out, struct str *phrase);

/* The text of phrase for one of the calls below; its error is copied to out. */
const char *markup_borrow(struct str *out, const struct str *phrase);

/*
 * Opens a picture of width x height units. Screen readers read title and
 * desc; id is a constant, unique on the page.
 */
void svg_open(struct str *out, double width, double height, const char *id, const char *title,
	      const char *desc);
void svg_close(struct str *out);

enum svg_anchor { SVG_START, SVG_MIDDLE, SVG_END };

struct svg_box {
	double x, y, width, height;
};

/* Shapes. class: classes of the style sheet; tip (may be NULL): shown by the pointer. */
void svg_rect(struct str *out, const char *class, struct svg_box box, const char *tip);
void svg_circle(struct str *out, const char *class, double x, double y, double r, const char *tip);
void svg_diamond(struct str *out, const char *class, double x, double y, double r, const char *tip);
void svg_line(struct str *out, const char *class, double x1, double y1, double x2, double y2);
void svg_text(struct str *out, const char *class, double x, double y, enum svg_anchor anchor,
	      const char *text);

/* A line or, closed, an area through points: begin, point..., end. */
void svg_path_begin(struct str *out, const char *class);
void svg_path_point(struct str *out, bool first, double x, double y);
void svg_path_end(struct str *out, bool closed, const char *tip);
