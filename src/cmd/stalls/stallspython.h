/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process that runs Python does with its interpreter, for stallwatch.h: where its GIL is (a thread that
 * waits there waits for it), and whether it collects garbage. Reads /proc/PID/maps once.
 */
#pragma once

#include "base/vec.h"
#include "stacks/pytarget.h"

struct stallspython_process {
	uint32_t pid, own_pid;
	struct pytarget target; /* present: it can be read */
};

/* Zeroed at first. It must not move while it is used. */
struct stallspython {
	VEC(struct stallspython_process *) list;
};

void stallspython_done(struct stallspython *python);

/* A stallwatch_gil. context: a struct stallspython. */
bool stallspython_gil(void *context, uint32_t pid, uint64_t *ret_begin, uint64_t *ret_end);

/* A stallwatch_collects, of processes that stallspython_gil was asked for. Some system calls. */
bool stallspython_collects(void *context, uint32_t pid, uint32_t *ret_tid);
