/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was seen of some threads in a window of seconds, to find out why they did not run: when each
 * left the CPU and with which kernel stack, who woke it with which one, who had the CPUs meanwhile,
 * and counters of the kernel. The stage `stalls` collects and judges it; a file keeps it
 * (format/stallfile). Times are nanoseconds of CLOCK_MONOTONIC.
 */
#pragma once

#include "base/strtab.h"
#include "base/vec.h"

enum {
	STALL_THREADS_MAX = 64, /* watched; a filter of the kernel has room for these */
	STALL_EVENTS_MAX = 2 << 20,
	STALL_PROCESSES_MAX = 8192,
	STALL_NOTES_MAX = 64,
};

/* New kinds go to the end: files have the number. */
enum stall_event_kind {
	STALL_OUT,     /* a watched thread left the CPU; state R: another one took it */
	STALL_IN,      /* it runs again */
	STALL_WAKE,    /* `pid`, `other` woke it: it may run */
	STALL_SIGNAL,  /* `pid` sent it a signal that stops; value: which */
	STALL_SAMPLE,  /* `tid` of `pid` was on the CPU */
	STALL_RUN,     /* `tid` of `pid` got the CPU; pid 0: it is idle from now on */
	STALL_LOOK,    /* /proc at this time: state; value: how often it was given a CPU */
	STALL_DELAY,   /* value: ns that a watched thread waited for a CPU since the last one */
	STALL_USED,    /* value: ns of CPU that `pid` used since the last one */
	STALL_COLLECT, /* `tid` of `pid` collected garbage of Python from then on; value: for ns */
	STALL_KIND_CNT,
};

/* Kernel functions are one text, innermost first, with '<' between them. */
struct stall_event {
	int64_t time_ns;
	enum stall_event_kind kind;
	uint32_t tid, pid, other; /* 0: unknown */
	uint32_t cpu;
	char state;	  /* OUT, LOOK: R, S, D, T, t, I; else '-' */
	uint32_t chain;	  /* text id: kernel functions; 0: none are known */
	uint32_t file;	  /* text id: the file of the system call; 0: unknown */
	uint64_t address; /* OUT, LOOK: the first argument of the system call; 0: unknown */
	uint64_t value;	  /* as the kind says */
};

/* A watched thread. */
struct stall_thread {
	uint32_t tid, pid;
	bool main;
	char state;			     /* when the window began */
	uint32_t name;			     /* text id */
	uint32_t cpus;			     /* text id: where it may run, "0-3,7" */
	int64_t cpu_ns;			     /* used in the window; -1: unknown */
	uint64_t minor_faults, major_faults; /* in the window */
};

struct stall_process {
	uint32_t pid, parent;
	uint32_t name, command;	      /* text ids */
	bool watched, own;	      /* own: it belongs to PerfTracker */
	uint32_t tracer;	      /* 0: none */
	uint64_t gil_begin, gil_end;  /* addresses of its GIL; 0: no Python that can be read */
	uint64_t quota_us, period_us; /* of its cgroup; 0: no limit, or unknown */
};

/* Sums since boot, once in a while. pid 0: of the host. */
struct stall_counters {
	int64_t time_ns;
	uint32_t pid;
	uint64_t throttled_cnt, throttled_ns;	      /* of the process's cgroups */
	uint64_t total_ticks, steal_ticks, irq_ticks; /* of all CPUs of the host */
	uint64_t compact_stalls, reclaim_stalls;      /* of the host */
	uint64_t pressure_cpu_us, pressure_io_us, pressure_memory_us;
};

/* How it was collected. */
enum stall_source {
	STALL_BY_SWITCHES = 1, /* exact times of watched threads */
	STALL_BY_STACKS = 2,   /* with kernel stacks */
	STALL_BY_STATES = 4,   /* with the state in which it left */
	STALL_BY_WAKERS = 8,
	STALL_BY_CPUS = 16,    /* who had the CPUs */
	STALL_BY_SAMPLES = 32, /* kernel functions on the CPUs */
	STALL_BY_LOOKS = 64,   /* /proc */
	STALL_BY_COUNTERS = 128,
};

struct stall_recording {
	int64_t begin_ns, end_ns;
	uint32_t cpu_cnt, own_pid, sources; /* enum stall_source */
	uint64_t sample_ns;		    /* between two samples of a CPU; 0: none */
	uint64_t lost, dropped;		    /* records the kernel lost; beyond limits */
	struct strtab texts;
	VEC(struct stall_thread) threads;
	VEC(struct stall_process) processes; /* by pid, after stallrecording_sort() */
	VEC(struct stall_counters) counters; /* by time */
	VEC(struct stall_event) events;	     /* by time */
	VEC(uint32_t) notes;		     /* text ids: what could not be seen, and why */
};

/* Returns 0 or -ENOMEM; stallrecording_done in either case. */
_must_check_ int stallrecording_init(struct stall_recording *recording);
void stallrecording_done(struct stall_recording *recording);

/* Adds an event unless there are STALL_EVENTS_MAX. Returns 0 or -ENOMEM. */
_must_check_ int stallrecording_add(struct stall_recording *recording,
				    const struct stall_event *event);

/* Adds a note once. Returns 0 or -ENOMEM. */
int stallrecording_note(struct stall_recording *recording, const char *text);

/* Events by time, processes by pid. */
void stallrecording_sort(struct stall_recording *recording);

/* Of a sorted recording. NULL: not there. */
const struct stall_process *stallrecording_process(const struct stall_recording *recording,
						   uint32_t pid);
