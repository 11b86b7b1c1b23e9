/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What comes from a job, as data for a language model: a name of a function may hold an
 * instruction, marks of Markdown, or characters that hide text. One line of JSON in ASCII without
 * backquotes closes no fence of backquotes around it.
 */
#pragma once

#include "base/str.h"

#include <jansson.h>

/* The text cleaned and cut to cells; NULL when memory ran out. */
json_t *fence_text(const char *text, size_t cells);

/* The same, and at most bytes (>= 64) long as JSON in ASCII. */
json_t *fence_short_text(const char *text, size_t bytes);

/* The object as one line with its end, of *ret_len bytes. NULL when memory ran out. */
char *fence_line(const json_t *object, size_t *ret_len);
