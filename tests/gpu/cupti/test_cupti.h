/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Windows of the CUPTI back end on doubles of libcupti and libcuda (doubles/), which replace a GPU,
 * for tests: DOUBLE_CUDA and DOUBLE_CUPTI name the doubles. Each scenario has a process of its own,
 * as in training.
 */
#pragma once

#include "agent/gpu/gputrace.h"
#include "doubles/double.h"
#include "test_sink.h"

#include <setjmp.h>
#include <stdarg.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

/* What the job calls of libcuda's double, and the test of libcupti's. */
extern struct cupti_job {
	__typeof__(&double_context) context;
	__typeof__(&double_launch) launch;
	__typeof__(&double_copy) copy;
	__typeof__(&double_graph) graph;
	__typeof__(&double_synchronize) synchronize;
	int (*begin_capture)(void *stream, int mode);
	int (*end_capture)(void *stream, void **ret);
	int (*capture_mode)(int *mode);
	__typeof__(&double_set) set;
	__typeof__(&double_count) count;
	__typeof__(&double_fault) fault;
} job;

extern char why[GPUTRACE_WHY_MAX]; /* of the last error of the back end */

/* Runs a scenario in a process of its own, with the doubles; they must not complain. */
void run_in_child(void (*scenario)(void));

void begin_window(void);
void drain_all(void);
int end_window(void); /* returns what close() says */

/* The job launches that many kernels, copies, sets and waits. */
void work(size_t kernels);

/* The sink has exactly the records of one work(). */
void check_window(size_t kernels);
