/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes text of unknown origin safe to print. Function names come from user code and from
 * trace files: they may contain bytes that are not UTF-8, control characters that a terminal
 * obeys, or marks that reverse the writing direction and so hide text. Each such character
 * becomes a visible escape: \n, \x1b, \u202e.
 * Source: UAX #9 (bidirectional controls), RFC 3629 (UTF-8).
 */
#pragma once

#include "base/base.h"
#include "base/str.h"

/* Length in bytes (1..4) of the well-formed code point at p, or 0. */
size_t clean_decode(const char *p, uint32_t *ret);

/* Appends text with every unsafe character escaped. NULL is empty. Idempotent. */
void clean_append(struct str *out, const char *text);

/*
 * Like clean_append(), at most max_cells (>= 8) terminal cells: "..." replaces the middle of
 * a longer text. Only the ends of a long text are read twice.
 */
void clean_append_short(struct str *out, const char *text, size_t max_cells);

/* Appends text with each byte that is not UTF-8 replaced by U+FFFD. */
void clean_append_utf8(struct str *out, const char *text);

/* Terminal cells that clean text[len] fills: 0 for combining marks, 2 for wide characters. */
size_t clean_cells(const char *text, size_t len);

/* Bytes of the longest prefix of clean text[len] that fills at most max_cells. */
size_t clean_prefix(const char *text, size_t len, size_t max_cells);
