/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines of a terminal page: words are wrapped at the width, continued lines are
 * indented, a word that is too long is cut behind a comma or slash, else hard.
 * Color is a whole line's: it is ended before each line's end, so that a cut
 * or piped page never leaves the terminal colored.
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
 * Writes clean text, wrapped. The first line follows what is already written in
 * it (first_cells cells), the others are indented by indent cells. Ends with a
 * line end. Lines of a text that has none of its own: '\n' never occurs in it.
 */
void page_wrap(struct page *page, enum page_style style, size_t first_cells, size_t indent,
	       const char *text);

/* Appends cnt blanks. */
void page_pad(struct page *page, size_t cnt);

/* An error of text sticks to the page's output; text is freed. As by the two below. */
void page_finish_text(struct page *page, struct str *text);

/*
 * A paragraph with a name in front of it: the name begins at indent, the text, clean, at
 * cells. Nothing when the text is empty.
 */
void page_paragraph(struct page *page, size_t indent, const char *name, size_t cells,
		    struct str *text);

/* A verdict: its word in a style of its own, and behind it the sentence, clean. */
void page_verdict(struct page *page, enum page_style style, const char *word, struct str *sentence);
