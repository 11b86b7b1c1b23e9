/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines of a terminal page: words are wrapped at the width, continuation lines are indented,
 * a word that is too long is split after a comma or slash, else anywhere. Color is reset
 * before each line end, so that a truncated page never leaves the terminal colored.
 */
#pragma once

#include "base/base.h"
#include "base/str.h"

enum page_style {
	PAGE_PLAIN,
	PAGE_BOLD,
	PAGE_DIM,
	PAGE_GOOD, /* green */
	PAGE_BAD,  /* red */
	PAGE_WARN, /* yellow */
	PAGE_STYLE_CNT
};

struct page {
	struct str *out;
	size_t width; /* cells */
	bool color;
};

/* Appends text[len] of a clean text in a style, no line end. */
void page_span(struct page *page, enum page_style style, const char *text, size_t len);

/*
 * Writes clean text, wrapped, and a line end. The first line already has first_cells cells,
 * the others are indented by indent cells. text contains no '\n'.
 */
void page_wrap(struct page *page, enum page_style style, size_t first_cells, size_t indent,
	       const char *text);

/* Appends cnt blanks. */
void page_pad(struct page *page, size_t cnt);

/* Copies an error of text to the output and frees text, as the two functions below do. */
void page_finish_text(struct page *page, struct str *text);

/*
 * A paragraph with a name: the name starts at column indent, the text (clean) at column
 * cells. Prints nothing for an empty text.
 */
void page_paragraph(struct page *page, size_t indent, const char *name, size_t cells,
		    struct str *text);

/* The same on one line, however long, so that it can be copied. */
void page_command(struct page *page, size_t indent, const char *name, size_t cells,
		  struct str *text);

/* A verdict: its word in the style, then the sentence (clean). */
void page_verdict(struct page *page, enum page_style style, const char *word, struct str *sentence);
