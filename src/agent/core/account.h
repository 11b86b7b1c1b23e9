/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernel counters of the training thread, sampled ten times a second: CPU time, time it was
 * runnable without a CPU, faults, switches. The numbers are cumulative: readers combine them with
 * the marks to get values per iteration. Sampling at each iteration would put system calls on the
 * training thread.
 * Source: proc(5) on schedstat, stat and status of a thread.
 */
#pragma once

#include "agent/core/ownfd.h"
#include "format/shared/ring.h"

struct account {
	uint32_t tid; /* 0: no files open */
	struct own_fd schedstat, stat, status;
};

#define ACCOUNT_NONE                                     \
	{                                                \
		0, OWN_FD_NONE, OWN_FD_NONE, OWN_FD_NONE \
	}

/* Looks at thread tid. ret[3]: FLIGHT_CPU, FLIGHT_FAULTS, FLIGHT_SWITCHES. Returns how many. */
size_t account_look(struct account *account, uint32_t tid, int64_t now_ns, struct ring_record *ret);

/* CPU time of a thread of this process in ns, -1 when it is gone. One system call. */
int64_t account_cpu_ns(uint32_t tid);

/* "/proc/self/task/TID/NAME", opened for reading; -errno. */
int account_open(uint32_t tid, const char *name);

/* "/proc/PID/NAME", likewise. */
int account_open_process(uint32_t pid, const char *name);

/* The system call that a thread is in. */
struct account_call {
	uint32_t number;   /* fits a record's 12 bits */
	uint64_t argument; /* the first */
};

/* From an open "syscall" of a thread or process. False: in none, or not readable. */
bool account_call(int fd, struct account_call *ret);
