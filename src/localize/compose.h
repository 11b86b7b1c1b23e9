/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From an accusation with its cause to a finding that a person can believe: the
 * numbers, the words, and the evidence.
 * Source: PerfTracker figure 7; docs/findings.md.
 */
#pragma once

#include "localize/cause.h"
#include "model/finding.h"

/*
 * Everything in ret lives in arena; names are copied. Returns 0 or -ENOMEM.
 */
_must_check_ int compose_finding(const struct job *job, const struct blame *blame,
				 const struct accusation *a, const struct expect_table *expect,
				 struct arena *arena, struct finding *ret);
