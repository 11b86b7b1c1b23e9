/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Masks values of environment variables for display. Text that looks like a password or a token is
 * replaced by its first characters and "***", because users paste the output of doctor into public
 * places. It is better to mask a path too many than to show a key.
 */
#pragma once

#include "base/base.h"

#define MASK_SHOWN_MAX 200 /* of one value; "..." replaces the rest */

/*
 * Writes value to ret[size], masked and cut. A part of the value (between separators) is masked if
 * it follows "password=", "token:" or the like, is the user:password of a URL, begins like a known
 * kind of token, or is long and random.
 */
void mask_value(const char *value, char *ret, size_t size);
