/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Accuses all workers, or the only one, of what keeps their GPUs from computing: copies,
 * allocations, waits of the host for the device, and a host that launches too little. Peers show
 * none of it where all of them have it. A share of the window that healthy jobs do not reach is
 * the sign (model/thresholds.h); the gain is a bound: what is lost there.
 */
#pragma once

#include "localize/witness/witness.h"
#include "model/report.h"

/*
 * report: has the workers' use of their GPUs, and the totals. list: what other witnesses found;
 * what an accusation explains already is not accused again. Returns 0 or -ENOMEM.
 */
_must_check_ int accuse_by_usage(const struct job *job, const struct blame *blame,
				 const struct report *report, struct arena *arena,
				 accusations *list);

/* Whether GPUs that wait for their host are accused. */
bool by_usage_says_starved(const accusations *list);
