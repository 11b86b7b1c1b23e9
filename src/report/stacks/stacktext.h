/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks of processes as text, one process after the other. */
#pragma once

#include "report/stacks/stackframe.h"

/*
 * Threads with equal stacks and states are one paragraph. The caller checks out for its error.
 * Nothing is written of a process that could not be read at all.
 */
void stacktext_process(struct str *out, const struct stacks_process *process,
		       const struct stackview *view, struct stacknames *names);

/* "process 12, rank 1, sleeping, 3 threads, Python 3.11: python train.py", without a line end. */
void stacktext_headline(struct str *out, const struct stacks_process *process);
