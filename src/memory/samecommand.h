/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether two command lines ask for the same work. Options of launchers that differ from run to run
 * without changing the work (ports, ids of a rendezvous, places of logs) are left out; all else
 * counts, since any word may be a batch size.
 */
#pragma once

#include "base/base.h"

/* NULL: unknown, which is the same as nothing. */
bool samecommand(const char *a, const char *b);
