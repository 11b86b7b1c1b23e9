/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Other processes that used the CPUs of this host during a window: a process outside the job (or a
 * leftover of it) that takes a worker's CPU makes every rank of the job wait, and no data from
 * inside the job shows the cause.
 *
 * Looks at /proc/PID/stat of all processes, at most 10 times a second and never
 * for more than 2 % of the time.
 */
#pragma once

#include "base/vec.h"
#include "format/sidecar/sidecar.h"

#define CONTENDERS_PROCESS_MAX 16384u
#define CONTENDERS_WORKER_MAX 32u /* workers whose CPU is compared; more are left out */
#define CONTENDERS_LOOK_NS (100 * NSEC_PER_MSEC)
#define CONTENDERS_PROCESS_FRAC 0.01 /* below that a process isn't examined */
#define CONTENDERS_CPU_FRAC 0.1	     /* below a tenth of a CPU no contender is reported */

struct contender {
	uint32_t pid, ppid;
	char comm[16];
	uint64_t start;		     /* start time: detects a reused pid */
	uint64_t first_ticks, ticks; /* at the first and the last look */
	/* Looks that saw workers[i] and CPU use since the previous look; of these: on its CPU. */
	uint32_t busy[CONTENDERS_WORKER_MAX], overlaps[CONTENDERS_WORKER_MAX];
};

struct contenders_worker {
	uint32_t pid, tid;
};

struct contenders {
	const char *root;			 /* prefix before /proc; borrowed */
	uint32_t workers[CONTENDERS_WORKER_MAX]; /* pids, in the order in which they came */
	size_t worker_cnt;
	VEC(struct contender) processes; /* by pid */
	VEC(uint32_t) pids;		 /* of the last look */
	int64_t start_ns, look_ns, due_ns;
	uint64_t dropped;
};

void contenders_open(struct contenders *contenders, const char *root);
void contenders_close(struct contenders *contenders);

/*
 * Looks when it is time (due_ns). workers[cnt]: the training threads whose CPU is compared, in any
 * order, identified by pid; a worker missing at a look is not counted there. Returns 0 or -errno.
 * clock returns the current time: the cost of a look sets the time of the next.
 */
int contenders_look(struct contenders *contenders, const struct contenders_worker *workers,
		    size_t cnt, int64_t (*clock)(void));

/*
 * Appends to ret the processes that used at least CONTENDERS_CPU_FRAC of a
 * CPU, those of one command line taken together, and may run where worker idx
 * may. Left out: the workers, their helpers
 * (descendants with the worker's own command line, and those that Python's
 * multiprocessing or the compiler's pool started), self_pid and its other
 * descendants. job_pid: the job's command. Returns 0 or -ENOMEM.
 */
struct contenders_query {
	const struct contenders_worker *workers;
	size_t worker_cnt, idx;
	uint32_t job_pid, self_pid;
};
_must_check_ int contenders_name(const struct contenders *contenders,
				 const struct contenders_query *query, struct sidecar *ret);
