/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CPU limit of a process's cgroup and of those above it, and how often and how long the kernel
 * held its threads back for it. cgroup versions 1 and 2.
 * Source: Documentation/scheduler/sched-bwc.rst, Documentation/admin-guide/cgroup-v2.rst.
 */
#pragma once

#include "base/base.h"

enum { CPUQUOTA_LEVELS_MAX = 16 };

struct cpuquota {
	int fds[CPUQUOTA_LEVELS_MAX]; /* files cpu.stat */
	size_t cnt;
	uint64_t quota_us, period_us; /* the tightest; 0: no limit */
};

/* root: a prefix before /proc and /sys. Without a cgroup that can be read: no levels. */
void cpuquota_open(struct cpuquota *quota, const char *root, uint32_t pid);
void cpuquota_close(struct cpuquota *quota);

/* Sums over all levels since they were made. Returns false: there are none. */
bool cpuquota_read(const struct cpuquota *quota, uint64_t *ret_cnt, uint64_t *ret_ns);

/* text: a file cpu.stat. Adds to the sums. */
void cpuquota_parse(const char *text, uint64_t *cnt, uint64_t *ns);

/* text: the file /proc/PID/cgroup. Writes the path of the CPU controller's cgroup, "/" first. */
_must_check_ int cpuquota_find(const char *text, bool v2, char *ret, size_t size);
