/* SPDX-License-Identifier: Apache-2.0 */
#include "report/page.h"

#include "base/text/clean.h"

#include <string.h>

#define ROOM_MIN 16 /* cells; a deeper indent gives way */

void page_span(struct page *page, enum page_style style, const char *text, size_t len)
{
	static const char *const codes[PAGE_STYLE_CNT] = {
		"", "\x1b[1m", "\x1b[2m", "\x1b[1;32m", "\x1b[1;31m", "\x1b[1;33m",
	};
	bool dress = page->color && style != PAGE_PLAIN && len > 0;

	if (dress)
		str_append(page->out, codes[style]);
	str_append_len(page->out, text, len);
	if (dress)
		str_append(page->out, "\x1b[0m");
}

void page_pad(struct page *page, size_t cnt)
{
	while (cnt-- > 0)
		str_append_char(page->out, ' ');
}

/* Where to split a word of which fit bytes fit: after a separator in their second half. */
static size_t word_cut(const char *text, size_t fit)
{
	for (size_t i = fit; i > fit / 2; i--) {
		if (strchr(",/:;.>", text[i - 1]) != NULL)
			return i;
	}
	return fit;
}

/* A number and its unit stay on one line: "61 s", "88 %", "12 ms". */
static bool may_break(const char *text, size_t space)
{
	const char *unit = text + space + 1;
	size_t len = strcspn(unit, " ,;:)");

	if (space == 0 || text[space - 1] < '0' || text[space - 1] > '9')
		return true;
	return !(len == 1 && (*unit == '%' || *unit == 's')) &&
	       !(len == 2 && memcmp(unit, "ms", 2) == 0);
}

/* Bytes of text that fit on a line of room cells; at least one character. */
static size_t line_len(const char *text, size_t room)
{
	size_t len = strlen(text), fit = clean_prefix(text, len, room), cut = fit;
	uint32_t c;

	if (fit == len)
		return len;
	if (text[fit] == ' ' && may_break(text, fit))
		return fit;
	while (cut > 0 && !(text[cut - 1] == ' ' && may_break(text, cut - 1)))
		cut--;
	/* A short head before a very long word would leave a ragged, half-empty line. */
	if (cut > 0 && cut * 3 > fit)
		return cut - 1;
	fit = word_cut(text, fit);
	return fit > 0 ? fit : MAX(clean_decode(text, &c), (size_t)1);
}

void page_wrap(struct page *page, enum page_style style, size_t first_cells, size_t indent,
	       const char *text)
{
	size_t used = first_cells;

	for (;;) {
		size_t room = page->width > used + ROOM_MIN ? page->width - used : ROOM_MIN;
		size_t len = line_len(text, room), shown = len;

		while (shown > 0 && text[shown - 1] == ' ')
			shown--;
		page_span(page, style, text, shown);
		str_append_char(page->out, '\n');
		text += len;
		text += strspn(text, " ");
		if (*text == '\0')
			return;
		page_pad(page, indent);
		used = indent;
	}
}

void page_finish_text(struct page *page, struct str *text)
{
	if (str_error(text) < 0)
		page->out->error = str_error(text);
	str_done(text);
}

static void write_label(struct page *page, size_t indent, const char *name, size_t cells)
{
	size_t len = strlen(name);

	page_pad(page, indent);
	page_span(page, PAGE_DIM, name, len);
	page_pad(page, cells > indent + len ? cells - indent - len : 1);
}

void page_paragraph(struct page *page, size_t indent, const char *name, size_t cells,
		    struct str *text)
{
	if (text->len > 0) {
		write_label(page, indent, name, cells);
		page_wrap(page, PAGE_PLAIN, cells, cells, str_borrow(text));
	}
	page_finish_text(page, text);
}

void page_command(struct page *page, size_t indent, const char *name, size_t cells,
		  struct str *text)
{
	if (text->len > 0) {
		write_label(page, indent, name, cells);
		page_span(page, PAGE_PLAIN, str_borrow(text), text->len);
		str_append(page->out, "\n");
	}
	page_finish_text(page, text);
}

void page_verdict(struct page *page, enum page_style style, const char *word, struct str *sentence)
{
	page_span(page, style, word, strlen(word));
	page_pad(page, 1);
	page_wrap(page, PAGE_BOLD, strlen(word) + 1, 2, str_borrow(sentence));
	page_finish_text(page, sentence);
}
