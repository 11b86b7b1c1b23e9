/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of a report's call stacks as a table, over all places where each is called; and of one of them its
 * callers and callees. Readable without a script; the chosen function is in the address.
 */
#pragma once

#include "base/str.h"
#include "model/report.h"

/* id: of the report; chosen: a name, from the query; NULL: none. */
void flametable_put(struct str *out, const struct report_flame *all, const char *id,
		    const char *chosen);
