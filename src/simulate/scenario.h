/* SPDX-License-Identifier: Apache-2.0 */
/* The jobs that can be simulated, by name: a table of layouts and faults. */
#pragma once

#include "simulate/fault.h"

#define SCENARIO_FAULTS 4

struct scenario {
	const char *name, *help, *source;
	struct layout layout; /* worker_cnt: of the source, the default at fingerprint level */
	struct fault_plan faults[SCENARIO_FAULTS]; /* size 0 ends the list */
	int missing_cnt;			   /* workers whose data never came */
	int late_cnt;				   /* workers that began to record late */
	bool saves;				   /* a checkpoint in the window */
};

/*
 * The scenario with this name, in any case, or several joined by '+': the first has
 * the layout, all bring their faults. Returns 0; -ENOENT for an unknown name, -E2BIG
 * for more than SCENARIO_FAULTS faults, with a line in err. ret's name is the caller's.
 */
_must_check_ int scenario_mix(const char *names, struct scenario *ret, struct err *err);

/* The table; ret_cnt: its length. */
const struct scenario *scenario_list(size_t *ret_cnt);

size_t scenario_fault_cnt(const struct scenario *scenario);
