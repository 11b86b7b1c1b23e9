/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Log lines of the programs, on stderr. A caller writes one line of key=value pairs that begins
 * with event=; the process' log format decides what is printed (logtext.h). Library code does not
 * log; it returns errors to its caller.
 */
#pragma once

#include "base/text/logtext.h"

/*
 * Sets the format of this process and of the processes that it forks; call it before any thread
 * starts. setup is copied, its phrases are not. Without a call the format is logfmt.
 */
void log_open(const struct log_setup *setup);

/* Writes one line to fd 2 in one write: "event=state state=slow why=\"...\"". */
void log_line(enum log_level level, const char *fmt, ...) _printf_(2, 3);
