/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Causes that lie in a machine as a rule, not in the program that it runs: only these count against a
 * host over several jobs. A finding of slow Python on one rank accuses that rank's host, too, and says
 * nothing of it.
 */
#pragma once

#include "base/base.h"

/* cause: a name of localize/cause_list.h, such as "gpu-slow". */
bool machinecause_is(const char *cause);
