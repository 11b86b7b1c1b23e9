/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The few files of /proc that the host sampler needs, as numbers. Never smaps
 * or anything else that takes the memory lock of a worker.
 * root is a prefix before "/proc": "" on a machine, a fixture tree in tests.
 * Source: proc(5); Documentation/scheduler/sched-stats.rst.
 */
#pragma once

#include "base/base.h"

#include <sched.h>

struct procfs_stat {
	uint32_t pid, ppid;
	char comm[16];
	char state;	     /* 'R', 'S', 'D', 'T', 't', 'Z', 'X', 'I' */
	uint64_t ticks;	     /* user + system CPU time, in ticks of 10 ms */
	uint64_t start;	     /* since boot: unique together with pid */
	int32_t processor;   /* the CPU it last ran on */
	int32_t exit_status; /* as of waitpid(); of a zombie */
};

#define PROCFS_TICK_NS (10 * NSEC_PER_MSEC) /* USER_HZ is 100 on every supported Linux port */

/* text: one line of stat; the name may hold spaces and parentheses. Returns 0 or -EINVAL. */
_must_check_ int procfs_parse_stat(const char *text, struct procfs_stat *ret);

/* text: "cpu_ns run_delay_ns slices". Returns 0 or -EINVAL. */
_must_check_ int procfs_parse_schedstat(const char *text, uint64_t *ret_cpu_ns,
					uint64_t *ret_run_delay_ns);

/* text: "0-3,7". CPUs beyond CPU_SETSIZE are left out. Returns 0 or -EINVAL. */
_must_check_ int procfs_parse_cpus(const char *text, cpu_set_t *ret);

/* Whole file into text[size], NUL-terminated, truncated. Returns its length or -errno. */
_must_check_ int procfs_read(const char *root, const char *path, char *text, size_t size);

/* /proc/PID/stat, or /proc/PID/task/TID/stat when tid is not 0. Returns 0 or -errno. */
_must_check_ int procfs_read_stat(const char *root, uint32_t pid, uint32_t tid,
				  struct procfs_stat *ret);

/*
 * The command line in one line: spaces between arguments and for line ends, '?'
 * for other control characters; "" for a kernel thread. Returns 0 or -errno.
 */
_must_check_ int procfs_read_command(const char *root, uint32_t pid, char *text, size_t size);

/* Cpus_allowed_list of /proc/PID/status as text. Returns 0 or -errno. */
_must_check_ int procfs_read_cpus(const char *root, uint32_t pid, char *text, size_t size);

/*
 * Numeric names in /proc/PID/task, or in /proc when pid is 0: ret_ids[cap],
 * in the order of the directory. Returns how many, at most cap, or -errno.
 */
_must_check_ int procfs_list(const char *root, uint32_t pid, uint32_t *ret_ids, size_t cap);
