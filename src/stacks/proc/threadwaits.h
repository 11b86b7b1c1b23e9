/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a blocked thread waits for: its system call by name, the file or socket of that call, and
 * who owns the mutex behind a futex. Only what is certain is reported: a futex word alone does not say
 * whose it is, so an owner counts if the memory around it is a contended pthread mutex whose owner
 * is a living thread of the process. Source: futex(2), proc(5), bits/struct_mutex.h of glibc.
 */
#pragma once

#include "stacks/proc/taskfiles.h"

#include <sys/types.h>

struct threadwaits {
	char call[32], text[160];
	bool futex;
	uintptr_t futex_addr;
	uint32_t owner; /* in the process's own PID namespace; 0: unknown */
};

/*
 * proc: the descriptor of /proc/PID. tid: of a living thread, for its memory. lives: whether the
 * process has a thread with that id, in its own namespace.
 */
void threadwaits_find(int proc, pid_t tid, const struct taskfiles_syscall *call,
		      bool (*lives)(void *context, uint32_t own_tid), void *context,
		      struct threadwaits *ret);

/* The owner of the mutex that has these words at the futex address; 0: it is none. */
uint32_t threadwaits_mutex_owner(const uint32_t words[static 5]);
