/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Log lines of the programs: one line of key=value pairs on stderr. Library code does not log; it
 * returns errors to its caller.
 */
#pragma once

#include "base/base.h"

enum log_level { LOG_INFO, LOG_WARNING, LOG_ERROR };

/* Writes "perftracker: level=... fmt..." to fd 2 in one write. */
void log_line(enum log_level level, const char *fmt, ...) _printf_(2, 3);
