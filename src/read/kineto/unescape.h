/* SPDX-License-Identifier: Apache-2.0 */
/* The text behind a JSON string: escapes resolved, UTF-8 made valid. */
#pragma once

#include "base/str.h"

/* Length of the valid UTF-8 sequence at p[len > 0], 0 when there is none (RFC 3629). */
size_t utf8_len(const uint8_t *p, size_t len);

/*
 * Replaces str by the meaning of text[len], whose escapes have been checked.
 * Invalid UTF-8, lone surrogates and \u0000 become U+FFFD. Returns whether any of
 * the first two was met. Out of memory: see str_error().
 */
bool unescape(struct str *str, const uint8_t *text, size_t len);
