/* SPDX-License-Identifier: Apache-2.0 */
/* Why a thread did not run: the classes that the stage `stalls` knows, as one table. */
#pragma once

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
	X(MM_UNSEEN, "mmap_lock_unseen", STALL,                                                   \
	  "waited for its memory map, and who held it was not seen")                              \
	X(COMPACTION, "compaction", STALL, "compaction of memory")                                \
	X(RECLAIM, "reclaim", STALL, "reclaim of memory")                                         \
	X(NETWORK_FILE, "network_file", STALL, "waited for a network file system")                \
	X(DISK, "disk", STALL, "waited for a disk")                                               \
	X(GIL, "gil", STALL, "waited for Python's GIL")                                           \
	X(GC, "garbage_collection", STALL, "collected garbage of Python")                         \
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
