/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log of `perftracker run`: sentences for people on a terminal, logfmt or JSON else. All
 * wording for people is in the table of runlog.c.
 */
#pragma once

#include "base/log.h"

/* In the order of the words "auto|people|logfmt|json" of --log-format. */
enum runlog_format { RUNLOG_AUTO, RUNLOG_PEOPLE, RUNLOG_LOGFMT, RUNLOG_JSON };

/* Sets this process' log. terminal: stderr is one. color: it may be colored. */
void runlog_open(enum runlog_format format, bool terminal, bool color);

/* What runlog_open() passes to log_open(). */
struct log_setup runlog_setup(enum runlog_format format, bool terminal, bool color);
