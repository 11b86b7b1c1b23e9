/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The script of pages with a flame graph that can be zoomed, searched and used from the keyboard.
 * It is a constant and reads the picture's own elements, so that no name of a program is ever in
 * it; the page's content security policy allows this text alone, by its hash.
 * Source: CSP level 3, hash-source; WAI-ARIA 1.2, tree.
 */
#pragma once

#include "base/str.h"

extern const char flamescript_text[];

/* Base64 of the SHA-256 of flamescript_text. tests/cli/flame_test.py compares. */
extern const char flamescript_hash[];

/* For a page with a style sheet of its own. */
extern const char flamescript_style[];
void flamescript_fields(struct str *out);

/* The style, and the fields above a picture: search, and what the selected box is. */
void flamescript_controls(struct str *out);
/* Behind all pictures. */
void flamescript_append(struct str *out);
