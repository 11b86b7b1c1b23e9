/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs somebody's command as if we were not there: its output, its signals and
 * its exit status are its own. The daemon runs beside it in a process of its
 * own; if that can't start or dies, the command runs all the same.
 *
 * Signals: what a person sends to us with kill is sent on to the command; what
 * the terminal sends goes to its whole foreground group, the command included,
 * and is not sent twice.
 * Source: ARCHITECTURE.md, "Processes of a live job".
 */
#pragma once

#include "live/run/options.h"

/*
 * argv: the command, NULL-terminated. Returns the exit status for our own exit:
 * the command's, 128 + signal when a signal ended it, 126 or 127 when it could
 * not be started.
 */
int supervise(const struct run_options *options, char *const *argv);
