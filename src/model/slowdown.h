/* SPDX-License-Identifier: Apache-2.0 */
/* How much of a job's slowdown the findings of a report explain. */
#pragma once

#include "model/report.h"

/*
 * By how many ms an iteration became longer, where the gains of all findings are only a small part of
 * that (SLOWDOWN_EXPLAINED); else 0, also where a pace is unknown or the slowdown is over.
 */
double slowdown_unexplained_ms(const struct report *report);
