/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why watched threads did not run: the time of each that was lost, in parts, and findings that name
 * what took them. Made by the stage `stalls` of a recording (stallrecording.h), which it refers
 * to; printed by `report`.
 */
#pragma once

#include "base/vec.h"
#include "model/stalls/stallrecording.h"

/* Whether a thread that works as it should does this, too. */
enum stall_kind {
	STALL_KIND_STALL,  /* taken from it */
	STALL_KIND_WAIT,   /* it asked to wait: that may be its way of working */
	STALL_KIND_KERNEL, /* it was on the CPU, but in the kernel */
};

/* name | word in JSON | kind | for people. The order is the one in which causes are tried. */
#define STALL_CLASS_LIST(X)                                                                       \
	X(STOPPED, "stopped", STALL, "stopped by a signal")                                       \
	X(TRACED, "traced", STALL, "stopped by a tracer")                                         \
	X(FROZEN, "frozen", STALL, "frozen by its cgroup")                                        \
	X(QUOTA, "quota", STALL, "held back by the CPU limit of its cgroup")                      \
	X(STARVED, "cpu_starvation", STALL, "waited for a CPU")                                   \
	X(UNPLACED, "cpu_idle", STALL, "waited for a CPU while one was idle")                     \
	X(MMAP_LOCK, "mmap_lock", STALL, "waited for its memory map, which another process held") \
	X(MM_INTERNAL, "mmap_lock_own", STALL,                                                    \
	  "waited for its memory map, which a thread of its own held")                            \
	X(COMPACTION, "compaction", STALL, "compaction of memory")                                \
	X(RECLAIM, "reclaim", STALL, "reclaim of memory")                                         \
	X(NETWORK_FILE, "network_file", STALL, "waited for a network file system")                \
	X(DISK, "disk", STALL, "waited for a disk")                                               \
	X(GIL, "gil", STALL, "waited for Python's GIL")                                           \
	X(KERNEL_LOCK, "kernel_lock", STALL, "waited for a lock of the kernel")                   \
	X(UNKNOWN, "unknown", STALL, "was blocked in the kernel, and why is not known")           \
	X(FAULTS, "page_faults", KERNEL, "page faults")                                           \
	X(MIGRATION, "numa_migration", KERNEL, "pages moved between NUMA nodes")                  \
	X(SHOOTDOWN, "tlb_shootdown", KERNEL, "waited for other CPUs to flush their TLB")         \
	X(SPIN, "kernel_spin", KERNEL, "spun for a lock of the kernel")                           \
	X(INTERRUPTS, "interrupts", KERNEL, "interrupts")                                         \
	X(STEAL, "steal", STALL, "CPU time that the hypervisor gave to others")                   \
	X(FUTEX, "futex", WAIT, "waited for a thread of its own")                                 \
	X(SHARED_FUTEX, "futex_shared", WAIT, "waited for another process at a futex")            \
	X(GPU, "gpu_driver", WAIT, "waited in the driver of a GPU")                               \
	X(CHANNEL, "channel", WAIT, "waited for data of a pipe or socket")                        \
	X(POLL, "poll", WAIT, "waited for several descriptors")                                   \
	X(CHILD, "child", WAIT, "waited for a child to end")                                      \
	X(UNKNOWN_WAIT, "unknown_wait", WAIT, "waited, and for what is not known")                \
	X(SLEEP, "sleep", WAIT, "slept for a time that it chose")

enum stall_class {
#define STALL_CLASS_ENUM(name, word, kind, text) STALL_##name,
	STALL_CLASS_LIST(STALL_CLASS_ENUM)
#undef STALL_CLASS_ENUM
		STALL_CLASS_CNT
};

struct stall_class_about {
	const char *word, *text;
	enum stall_kind kind;
};

const struct stall_class_about *stallclass_about(enum stall_class class);

/* Time of a thread without a CPU, for one reason. */
struct stall_part {
	uint32_t thread; /* index in the recording */
	int64_t begin_ns, end_ns;
	enum stall_class class;
	uint32_t finding;     /* index; UINT32_MAX: too short for one */
	uint32_t chain;	      /* text id of the recording */
	uint32_t file;	      /* text id */
	uint32_t pid, tid;    /* who woke or stopped it; 0: unknown */
	uint32_t waker_chain; /* text id */
};

enum { STALL_CULPRITS_MAX = 5, STALL_FUNCTION_BYTES = 64 };

struct stall_culprit {
	uint32_t pid, tid;	/* tid 0: not one thread */
	uint32_t name, command; /* text ids; 0: unknown */
	int64_t ns;
	bool own;  /* PerfTracker */
	bool same; /* a thread of the watched process itself */
};

struct stall_finding {
	enum stall_class class;
	bool matters;			     /* beyond the thresholds of its class */
	uint32_t chain;			     /* text id: of its longest part */
	char function[STALL_FUNCTION_BYTES]; /* of the kernel, what the thread asked for; "" */
	char holder[STALL_FUNCTION_BYTES];   /* of the kernel, what the culprit did; "" */
	char did[160];			     /* of an own thread: what it did meanwhile; "" */
	uint32_t file;			     /* text id; 0: unknown */
	struct stall_culprit culprits[STALL_CULPRITS_MAX]; /* by ns, largest first */
	size_t culprit_cnt, culprits_more;
	bool likely; /* culprits used most CPU meanwhile; that they took this one is not seen */
	size_t cnt;  /* parts, those that follow each other at once taken together */
	int64_t total_ns, longest_ns, median_ns;
	size_t burst_cnt;     /* parts less than 0.3 s apart, taken together, of one thread */
	int64_t period_ns;    /* of the bursts; 0: not periodic */
	bool in_turn;	      /* its threads are hit one after the other, in the same order */
	uint64_t thread_bits; /* bit i: thread i of the recording */
	uint64_t quota_us, period_us, throttled_cnt, throttled_ns; /* QUOTA */
	uint64_t minor_faults, major_faults;			   /* FAULTS */
	double cpu_frac; /* STEAL, INTERRUPTS: share of all CPUs */
};

/* How a thread spent the window. */
struct stall_account {
	bool judged; /* the main thread, or one that worked; others explain these */
	bool exact;  /* running_ns and the others are sums of exact times */
	int64_t running_ns, runnable_ns, blocked_ns;
	int64_t waited_ns;	       /* of blocked_ns: by its own wish */
	int64_t lost_ns, explained_ns; /* in parts that are stalls; with a cause */
	uint64_t unpaired;	       /* switches that the kernel lost */
};

struct stall_verdict {
	const struct stall_recording *recording; /* borrowed */
	VEC(struct stall_finding) findings;	 /* those that matter first, then by time lost */
	VEC(struct stall_part) parts;		 /* by thread and time */
	VEC(struct stall_account) accounts;	 /* in the order of the recording's threads */
	size_t stall_cnt;			 /* findings that matter and are stalls */
	bool incomplete; /* records were lost, or hardly anything could be seen */
};

void stallverdict_done(struct stall_verdict *verdict);
