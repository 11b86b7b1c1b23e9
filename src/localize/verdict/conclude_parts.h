/* SPDX-License-Identifier: Apache-2.0 */
/* What the rules of a verdict share. */
#pragma once

#include "localize/verdict/conclude.h"

struct conclusion {
	struct report *report;
	const struct conclude_facts *facts;
	struct str *reason;
};

/* What to record instead. Of a live job, PerfTracker itself chooses the windows. */
void conclude_append_next(const struct conclusion *c);

/* One of a few iterations is long. As all rules: appends the reason where it applies. */
bool conclude_one_is_long(const struct conclusion *c);

/* Devices that do next to nothing, or have no work for longer than they compute. */
bool conclude_hardly_computes(const struct conclusion *c);

/* What hosts do may not show in as few iterations. */
bool conclude_hides_hosts(const struct conclusion *c);
