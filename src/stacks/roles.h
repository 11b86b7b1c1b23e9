/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a thread is for, so that threads of different processes can be laid side by side: from the
 * name that the program gave it, and from the functions near its beginning. One table.
 */
#pragma once

#include "stacks/stackreading.h"

/* main_name: the name of the process's main thread. Writes thread->role. */
void roles_assign(struct stacks_thread *thread, bool main, const char *main_name);
