/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Doubles of CUDA's libraries, for tests on machines without a GPU: shared libraries with
 * the true SONAMEs, function names and record layouts. libcuda's double is a GPU of
 * sorts: streams that work in real time, one thread each. libcupti's watches it as
 * CUPTI would, and counts a fault for each call that breaks the real library.
 *
 * What a test orders goes through double_set(), what it asks through double_count();
 * both are exported by libcupti's double. The keys are in libcupti.c.
 */
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define DOUBLE_EXPORT __attribute__((visibility("default")))

struct double_kernel {
	const char *name;
	int64_t start_ns, end_ns; /* CLOCK_MONOTONIC */
	uint32_t stream, correlation, threads;
	uint64_t graph_node;
};

struct double_copy {
	uint8_t kind, from, to; /* kind 0: a set */
	uint64_t bytes;
	int64_t start_ns, end_ns;
	uint32_t stream, correlation;
};

struct double_call {
	uint32_t domain, call; /* as in CUPTI: 1 driver, 2 runtime */
	int64_t start_ns, end_ns;
	uint32_t tid, correlation;
};

/* Callbacks of libcuda's double, on any thread. */
struct double_watcher {
	void (*kernel)(const struct double_kernel *kernel);
	void (*copy)(const struct double_copy *copy);
	void (*call)(const struct double_call *call);
	void (*sync)(uint32_t stream, int64_t start_ns, int64_t end_ns, uint32_t correlation);
	void (*site)(uint32_t call, int exit, int result); /* a driver's call begins, ends */
};

#define DOUBLE_GROUPS 2

/* The participants of a collective: members[rank] of the group that meets under this number. */
struct double_group {
	uint32_t id, rank, members;
};

/* What is known when all have come: the last one's time, and how long parts take. */
struct double_met {
	int64_t last_ns, ns, own_ns, before_ns; /* of the slowest; own; of the rank before */
};

struct double_event {
	uint32_t recorded;	 /* so often; by the job */
	_Atomic uint32_t passed; /* the latest that came to pass */
	int64_t at_ns;
};

/* Of a graph; host: a call on the CPU, else a kernel. */
struct double_node {
	const char *name;
	int64_t ns;
	struct double_group groups[DOUBLE_GROUPS];
	size_t group_cnt;
	void (*host)(void *arg);
	void *arg;
};

/*
 * Exported by libcuda's double: the job's side. Launches return at once; the stream's thread
 * works for ns. A collective is a kernel that ends so long after the last member of its groups
 * came as the slowest of them says; processes meet through the file that DOUBLE_MEET names.
 */
DOUBLE_EXPORT void double_watch(const struct double_watcher *watcher);
DOUBLE_EXPORT void double_context(int active);
DOUBLE_EXPORT void double_launch(const char *name, uint32_t stream, int64_t ns, uint32_t members);
DOUBLE_EXPORT void double_collective(const char *name, uint32_t stream, int64_t ns,
				     const struct double_group *groups, size_t cnt);
DOUBLE_EXPORT void double_copy(uint8_t kind, uint64_t bytes, uint32_t stream, int64_t ns);
DOUBLE_EXPORT void double_graph(uint32_t stream, uint32_t nodes, int64_t ns);
DOUBLE_EXPORT void double_replay(uint32_t stream, const struct double_node *nodes, size_t cnt);
DOUBLE_EXPORT void double_host(uint32_t stream, void (*host)(void *arg), void *arg);
DOUBLE_EXPORT void double_event_record(uint32_t stream, struct double_event *event);
DOUBLE_EXPORT void double_event_wait(uint32_t stream, struct double_event *event);
DOUBLE_EXPORT void double_wait(uint32_t stream, uint32_t other); /* for all it has by now */
DOUBLE_EXPORT void double_synchronize(uint32_t stream);

/* Waits until all members have come to the group's turn, counted from 0. */
DOUBLE_EXPORT void double_meet(const struct double_group *group, uint64_t turn,
			       struct double_met *ret);

/*
 * Called by functions that are forbidden during captures: breaks all open captures, so that
 * cuStreamEndCapture() fails, unless the thread is relaxed (cuThreadExchangeStreamCaptureMode).
 */
DOUBLE_EXPORT int double_disturb_captures(void);

/* Exported by libcupti's double: the test's side. */
DOUBLE_EXPORT void double_set(const char *key, int64_t value);
DOUBLE_EXPORT int64_t double_count(const char *key);
DOUBLE_EXPORT const char *double_fault(void); /* the first misuse; "" */
