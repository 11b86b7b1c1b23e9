/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values of environment variables as a stranger may see them. What looks like a
 * password or a token is replaced by its first characters and "***": people paste the
 * output of doctor into public places. Better one path too many masked than one key shown.
 */
#pragma once

#include "base/base.h"

#define MASK_SHOWN_MAX 200 /* of one value; the rest becomes "..." */

/*
 * Writes value[..] to ret[size], masked and cut. A part of the value (between separators)
 * is masked when it follows "password=", "token:" or the like, is the user:password of an
 * URL, begins like a known kind of token, or is long and random.
 */
void mask_value(const char *value, char *ret, size_t size);
