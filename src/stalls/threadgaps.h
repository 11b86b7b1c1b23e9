/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The times in which watched threads had no CPU, from a recording. Each gap begins when the thread
 * leaves the CPU; from `wake_ns` on it could run and waited for a CPU. Where the kernel gave no
 * exact times, gaps are those that /proc was seen to have at both ends, so they are too short.
 */
#pragma once

#include "model/stalls/stallverdict.h"

struct stall_gap {
	uint32_t thread; /* index in the recording */
	int64_t off_ns, wake_ns, on_ns;
	char state; /* R: it lost the CPU and could run all the time; '-': unknown */
	uint32_t off_cpu, on_cpu;
	uint32_t chain, file; /* text ids */
	uint64_t address;
	uint32_t waker_pid, waker_tid, waker_chain; /* 0: unknown */
	bool open_begin, open_end;		    /* longer than the window */
};

typedef VEC(struct stall_gap) stall_gap_vec;

/*
 * recording: sorted. accounts: one for each thread; exact and unpaired are set. Appends the gaps by
 * thread and time. Returns 0 or -ENOMEM. O(events log events).
 */
_must_check_ int gaps_find(const struct stall_recording *recording, struct stall_account *accounts,
			   stall_gap_vec *ret);
