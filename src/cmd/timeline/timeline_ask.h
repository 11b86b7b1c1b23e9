/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the daemon of a running job for the newest records of its workers. */
#pragma once

#include "base/err.h"

/*
 * Has the job that writes to out_dir save its flight recorders there. Returns 1 when it
 * did, 0 when no such job runs on this machine, -errno with a line in err when one runs
 * and could not: what is in the folder may be old then.
 */
_must_check_ int ask_flight(const char *out_dir, struct err *err);
