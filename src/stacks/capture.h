/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads one process into a struct stacks_process whose region exists. Runs in a process of its own,
 * which may be killed at any moment: the steps are in the order of their worth, and what a step has
 * found is in the region when it ends.
 */
#pragma once

#include "stacks/stackreading.h"

void capture_run(struct stackreading_shared *shared);
