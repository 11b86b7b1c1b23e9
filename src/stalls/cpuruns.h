/* SPDX-License-Identifier: Apache-2.0 */
/* Who had each CPU at which time, from the events STALL_RUN of a recording. */
#pragma once

#include "model/stalls/stallrecording.h"

enum { CPURUNS_CPUS_MAX = 4096 };

struct cpurun {
	int64_t begin_ns; /* until the next one of the same CPU */
	uint32_t cpu, pid, tid;
};

struct cpuruns {
	VEC(struct cpurun) list; /* by CPU and time */
	int64_t end_ns;
};

/* Returns 0 or -ENOMEM; cpuruns_done in either case. */
_must_check_ int cpuruns_make(struct cpuruns *runs, const struct stall_recording *recording);
void cpuruns_done(struct cpuruns *runs);

/*
 * Calls add for each process that had the CPU in that time, more than once for some; pid 0: it was
 * idle. The thread `but`, which waited meanwhile, is left out: times of both sides differ by some
 * microseconds. Returns the time that is known. Stops at the first error of add, which *ret_error gets.
 */
struct cpuruns_query {
	uint32_t cpu, but;
	int64_t begin_ns, end_ns;
};
int64_t cpuruns_usage(const struct cpuruns *runs, const struct cpuruns_query *query,
		      int (*add)(void *context, uint32_t pid, int64_t ns), void *context,
		      int *ret_error);
