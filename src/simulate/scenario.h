/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated jobs, by name: a table of layouts and faults. */
#pragma once

#include "simulate/fault.h"

#define SCENARIO_FAULTS 4

struct scenario {
	const char *name, *help, *source;
	struct layout layout; /* worker_cnt: the source's, the default at fingerprint level */
	struct fault_plan faults[SCENARIO_FAULTS]; /* size 0 ends the list */
	int missing_cnt;			   /* workers without data */
	int late_cnt;				   /* workers that began to record late */
	bool saves;				   /* a checkpoint in the window */
};

/*
 * The scenario with this name (case-insensitive), or several joined by '+': the first one's layout
 * with the faults of all. Returns 0; -ENOENT for an unknown name, -E2BIG for more than
 * SCENARIO_FAULTS faults, with a line in err. ret's name is the caller's.
 */
_must_check_ int scenario_mix(const char *names, struct scenario *ret, struct err *err);

/* The table; ret_cnt: its length. */
const struct scenario *scenario_list(size_t *ret_cnt);

size_t scenario_fault_cnt(const struct scenario *scenario);
