/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One line that explains a failure to a person: what, where, what was expected
 * and what was found. Readers of foreign data fill it; programs print it.
 */
#pragma once

#include "base/base.h"

struct err {
	char text[512];
};

/*
 * Writes the line (truncated to the buffer, control characters replaced by
 * '?') and returns -errno_value, so that a reader can `return err_set(...)`.
 * err may be NULL. errno_value is a positive errno.
 */
int err_set(struct err *err, int errno_value, const char *fmt, ...) _printf_(3, 4);
