/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The small files of /proc that tell what a thread does: status, syscall, wchan, stack. Parsers take
 * text; readers take the descriptor of /proc/PID, which remains the same process also when its
 * number is used again. Source: proc(5).
 */
#pragma once

#include "base/base.h"

struct taskfiles_status {
	char name[64]; /* the thread's, as the kernel escapes it */
	char state;    /* R, S, D, T, t, Z, X, I */
	uint32_t pid, tgid, ppid, tracer, threads;
	uint32_t own_pid;	    /* in the innermost PID namespace of the process */
	uint32_t own_depth;	    /* PID namespaces from the reader's to that one; 1: the same */
	uint32_t uid;		    /* the effective one */
	bool has_memory;	    /* not a kernel thread, and not about to end */
	uint32_t seccomp;	    /* 0: none, 1: strict, 2: filter */
	uint32_t waited, preempted; /* context switches so far, modulo 2^32 */
};

/* text: the file "status". Returns 0, or -EINVAL without name, state or pid. */
_must_check_ int taskfiles_parse_status(const char *text, struct taskfiles_status *ret);

enum taskfiles_where {
	TASK_UNKNOWN, /* not permitted to see */
	TASK_RUNS,    /* on a CPU, or waiting for one */
	TASK_BLOCKED, /* in the kernel, but not in a system call: a page fault */
	TASK_SYSCALL,
};

struct taskfiles_syscall {
	enum taskfiles_where where;
	int64_t number;
	uint64_t args[6];
	uint64_t sp, pc; /* of the thread in user space; 0 if it runs */
};

/* text: the file "syscall". Returns 0 or -EINVAL. */
_must_check_ int taskfiles_parse_syscall(const char *text, struct taskfiles_syscall *ret);

/*
 * text: the file "stack", such as "[<0>] futex_wait+0xa2/0x140\n...". Writes the names, one a line,
 * to ret[size], innermost first, at most `cap` of them. Returns how many.
 */
size_t taskfiles_parse_kernel(const char *text, char *ret, size_t size, size_t cap);

/*
 * A variable in the file "environ" (entries end with NUL): its value, to the end of text[len] at
 * most, NULL without it. *ret_len is its length.
 */
const char *taskfiles_find_variable(const char *text, size_t len, const char *name,
				    size_t *ret_len);

/*
 * The start of a file of /proc in the folder dir, NUL-terminated. Returns the length or -errno. A
 * list that is longer than a page is complete only up to size.
 */
_must_check_ int taskfiles_read(int dir, const char *name, char *ret, size_t size);

/* The same of a thread: proc is the descriptor of /proc/PID. */
_must_check_ int taskfiles_read_of(int proc, uint32_t tid, const char *name, char *ret,
				   size_t size);
