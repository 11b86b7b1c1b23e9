/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's events of a stall window. For each watched thread: when it leaves the CPU and gets it
 * back, with its kernel stack; no other thread pays for that. For each CPU, where permitted: who
 * gets it, samples of the kernel's stack, who wakes a watched thread, who stops one by a signal.
 * Less is permitted to a process without privileges; each event that cannot be opened adds a note.
 * Source: perf_event_open(2).
 */
#pragma once

#include "host/stallwatch/perfrecord.h"
#include "host/stallwatch/tracepoints.h"
#include "model/stalls/stallrecording.h"

enum perfevent_role {
	PERFEVENT_THREAD,
	PERFEVENT_CPU, /* samples and switches */
	PERFEVENT_WAKING,
	PERFEVENT_SIGNAL,
};

struct perfring {
	int fd; /* -1: none */
	void *map;
	size_t bytes; /* of records: a power of two */
	bool regs;
};

struct perfthread {
	struct perfring ring;
	uint32_t tid;
	uint32_t global_tid; /* in the kernel's first PID namespace, as filters want; 0: unknown */
};

struct perfcpu {
	struct perfring ring;
	int waking_fd, signal_fd; /* -1 */
	uint64_t waking_id, signal_id;
};

struct perfevents {
	struct tracepoints points;
	bool foreign_pids; /* the reader is in a PID namespace of its own */
	VEC(struct perfthread) threads;
	VEC(struct perfcpu) cpus;
	unsigned char *copy; /* of a record that wraps around */
};

/* Finds what is permitted. Returns 0 or -ENOMEM. perfevents_close in either case. */
_must_check_ int perfevents_open(struct perfevents *events, struct stall_recording *recording);
void perfevents_close(struct perfevents *events);

/*
 * Follows a thread; sets recording->sources. Returns 0, or -errno: none of the events is permitted.
 */
_must_check_ int perfevents_add_thread(struct perfevents *events, uint32_t tid,
				       struct stall_recording *recording);

/*
 * Follows all CPUs, and who wakes the threads. hz: samples. switches: also each change of the thread
 * that has a CPU, which costs 2 us. Returns 0 or -ENOMEM.
 */
_must_check_ int perfevents_add_cpus(struct perfevents *events, uint32_t hz, bool switches,
				     struct stall_recording *recording);

/* Filters of the CPUs' events again, when a thread's global_tid is known. */
void perfevents_filter(struct perfevents *events, struct stall_recording *recording);

/* index: of the thread. Returns 0 or -errno, which ends the drain. */
typedef int perfevents_take(void *context, enum perfevent_role role, size_t index,
			    const struct perfrecord *record);

/* Passes on all records so far. Returns 0 or what take returned. */
_must_check_ int perfevents_drain(struct perfevents *events, perfevents_take *take, void *context);
