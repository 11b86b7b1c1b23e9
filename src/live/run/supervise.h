/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the user's command as if it had been started directly: its output, signals and exit
 * status are unchanged. The daemon runs beside it in a separate process; if the daemon cannot
 * start or dies, the command still runs.
 *
 * Signals: those sent to the supervisor by kill are forwarded to the command; those of the
 * terminal reach its whole foreground group, the command included, and are not forwarded.
 * Source: ARCHITECTURE.md, "Processes of a live job".
 */
#pragma once

#include "live/run/options.h"

/*
 * argv: the command, NULL-terminated. options: without out_dir, which this sets. Returns the
 * supervisor's exit status: the command's, 128 + signal when a signal ended it, 126 or 127 when it
 * could not be started, 2 when another run uses the folder, and the command was not started.
 */
int supervise(const struct run_options *options, char *const *argv);
