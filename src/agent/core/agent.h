/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of PerfTracker that lives inside a training process: a plain C interface that the Python
 * hook calls through ctypes, holding the interpreter lock. It writes marks into the shared block
 * and returns to the caller when to begin and end a window. It never exits, aborts, prints, blocks
 * or raises a signal; after the first failure every function returns at once.
 *
 * Survives: fork (the child closes its copy of block and socket and records nothing), death of the
 * daemon (detected at the next message, then disabled), a second call of pt_agent_start (ignored),
 * marks from several threads (one writes, colliding marks are dropped and counted), dlclose (the
 * library stays mapped), exit in progress (no thread and no destructor here).
 * Source: ARCHITECTURE.md, "Processes of a live job".
 */
#pragma once

#include "base/base.h"

#define PT_EXPORT __attribute__((visibility("default")))

/* What the caller of pt_agent_mark has to do now. */
enum agent_action {
	AGENT_NONE,  /* carry on */
	AGENT_BEGIN, /* start the profiling source, then call pt_agent_begun or pt_agent_missed */
	AGENT_END,   /* stop the source, then call pt_agent_done or pt_agent_missed */
	AGENT_BOUND, /* an iteration of the open window ended here */
};

/*
 * Creates the shared block, connects to the daemon's socket and sends
 * MSG_HELLO with the block. rank, local_rank, world_size: -1 when unknown.
 * The calling thread becomes the training thread of the message.
 *
 * Returns 0; -EAGAIN when the daemon's backlog is full (try again later);
 * another -errno when there is no daemon, and the agent stays disabled.
 */
PT_EXPORT int pt_agent_start(const char *socket_path, int32_t rank, int32_t local_rank,
			     int32_t world_size);

/*
 * Writes one mark (enum mark of format/shared/block.h) and looks at the order when
 * the mark counts iterations. No system call, no allocation.
 *
 * The step is the number of iteration marks: MARK_ITERATION once there was one, else MARK_OPTIMIZER
 * once there was one, else MARK_DATALOADER. It starts anew when a better kind appears.
 *
 * Returns an enum agent_action; AGENT_NONE when disabled.
 */
PT_EXPORT int pt_agent_mark(uint32_t mark, int64_t value, uint32_t detail);

/* Makes the calling thread the training thread, whose stacks and account are recorded. */
PT_EXPORT void pt_agent_training_thread(void);
/* The process has joined a group of several ranks, which these threads serve (torchgroups.h). */
PT_EXPORT void pt_agent_group(const char *name, uint32_t size, uint32_t first_rank,
			      uint32_t rank_stride, const uint32_t *tids, size_t tid_cnt);
/* There is this child, of a loader or another one (children.h). */
PT_EXPORT void pt_agent_child(uint32_t pid, int of_loader);

/*
 * Probes once what this process can record (collectors.h), with the interpreter lock held: the
 * calling thread's stack as Python reports it; torch's version, then a self-test: between
 * check_operators(1) and (0) the caller runs torch.empty(0). run() starts the recorder and returns 0
 * or -errno. expect_collectives(): the process is in a group of ranks that it made earlier.
 */
PT_EXPORT void pt_agent_open_stacks(const uintptr_t *codes, size_t cnt);
PT_EXPORT void pt_agent_open_operators(const char *torch_version);
PT_EXPORT void pt_agent_check_operators(int begin);
PT_EXPORT int pt_agent_run(void);
PT_EXPORT void pt_agent_expect_collectives(void);

/* Why a source (enum flight_source) is absent: borrowed, "" if it works. */
PT_EXPORT const char *pt_agent_absent(uint32_t source);

/*
 * For Python, as Python objects: (loader_begins, loader_ends, step_begins, step_ends, iteration,
 * gc, backward_begins, backward_ends, scaler_begins), built-in functions that mark; NULL, without
 * an error, when they can't be made. They call act(enum agent_action) where a window begins or
 * ends. A new reference; act is kept.
 */
struct pyobject;
PT_EXPORT struct pyobject *pt_agent_builtins(struct pyobject *act);

/* What the order under way asks for: enum order_source. */
PT_EXPORT uint32_t pt_agent_order_source(void);

/*
 * The agent's own collectors as the source of a window. open returns 0; -ENOTSUP: another source is
 * needed; if whole is not 0 also -ENODEV: the process uses a GPU that can't be recorded, and
 * -EBUSY: another tool records it (pt_agent_absent() returns which). Both take microseconds without
 * a GPU; with a GPU, report the window (pt_agent_done()) once window_complete returns 1.
 */
PT_EXPORT int pt_agent_window_open(int whole);
PT_EXPORT void pt_agent_window_close(void);
PT_EXPORT int pt_agent_window_complete(void);

/*
 * The window is open: sends MSG_PROFILE_BEGUN. source: SOURCE_AGENT when the
 * recorder holds it, SOURCE_TORCH when a trace file will come. Returns 0 or -errno.
 */
PT_EXPORT int pt_agent_begun(const char *source);

/*
 * The trace of the window is complete at path ("": in the recorder); the job was stalled for
 * stall_ns by the window. Sends MSG_PROFILE_DONE. -EAGAIN when the socket is full: the caller may
 * try again. Returns 0 or -errno.
 */
PT_EXPORT int pt_agent_done(const char *path, uint64_t stall_ns);

/* The order can't be carried out: sends MSG_PROFILE_MISSED with the reason. As pt_agent_done. */
PT_EXPORT int pt_agent_missed(const char *why);
/* After a failure of the hook: sends MSG_PROFILE_MISSED with the reason and disables the agent. */
PT_EXPORT void pt_agent_disable(const char *why);
/* Sends MSG_BYE and disables the agent. exception: class of what ends the program, or NULL. */
PT_EXPORT void pt_agent_bye(const char *exception);
/* For file names and status: the order carried out or last seen; the step; 1 while enabled. */
PT_EXPORT uint64_t pt_agent_order(void);
PT_EXPORT uint64_t pt_agent_step(void);
PT_EXPORT int pt_agent_enabled(void);

/* CUDA's driver calls it in cuInit(), see preload.c; from any thread, many times. Returns 1. */
PT_EXPORT int InitializeInjection(void);
