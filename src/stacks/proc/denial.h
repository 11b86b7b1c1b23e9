/* SPDX-License-Identifier: Apache-2.0 */
/* Why the kernel does not let a process be read, and what to do, in one line. */
#pragma once

#include "stacks/proc/taskfiles.h"

struct denial {
	uint32_t pid;
	int error;	  /* what the kernel said: an errno */
	uint32_t uid;	  /* of the process */
	uint32_t own_uid; /* of the reader */
	bool capable;	  /* the reader has CAP_SYS_PTRACE */
	int yama;	  /* kernel.yama.ptrace_scope; -1: there is no yama */
	uint32_t seccomp; /* of the reader */
};

/* Fills all but pid, error and uid from the system. */
void denial_look(struct denial *denial);

void denial_explain(const struct denial *denial, char *ret, size_t size);
