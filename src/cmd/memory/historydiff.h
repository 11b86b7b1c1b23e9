/* SPDX-License-Identifier: Apache-2.0 */
/* Two jobs of the store by their fingerprints: what takes more or less time, as `perftracker diff` says it. */
#pragma once

#include "store/storelist.h"

/*
 * Prints the largest changes from one job to the other, or one line that says why there are none. Returns
 * 0 or -errno with a line in err.
 */
_must_check_ int historydiff_print(struct store *store, const char *before, const char *after,
				   struct err *err);
