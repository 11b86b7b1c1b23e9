/* SPDX-License-Identifier: Apache-2.0 */
/* All processes of a list, read at one moment. */
#pragma once

#include "cmd/stacks/stackslist.h"
#include "stacks/stackreading.h"

struct stackssample {
	VEC(struct stackreading) readings;
	VEC(const struct stacks_process *) processes; /* by the list's order */
};

/*
 * Reads all processes of the list; with `children`, adds their children to the list and reads those,
 * too. Returns 0, or -errno with a line in err. stackssample_done() in either case.
 */
_must_check_ int stackssample_take(struct stackssample *sample, struct stackslist *list,
				   bool children, struct err *err);
void stackssample_done(struct stackssample *sample);

/* Marks in `now` which threads have other stacks than before. */
void stackssample_compare(const struct stackssample *before, struct stackssample *now);
