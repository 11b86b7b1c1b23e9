/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Python threads of a process, the frames of each, and its GIL, read while the process runs.
 * Each pointer is followed by a read that cannot crash, each frame must have a code object, and a
 * stack counts only if it ends where stacks end; otherwise it is read again, three times at most.
 * The process is the reader's own, or another one that the kernel allows to read.
 *
 * Neither allocates nor locks; a walk needs 32 KiB of stack. Any number of threads may read.
 */
#pragma once

#include "pyread/pycodes.h"

enum { PYWALK_THREAD_BYTES = 512, PYWALK_THREADS_MAX = 4096, PYWALK_GIL_BYTES = 64 };

/* Whether the reader's buffers are large enough for the structures of this layout. */
bool pywalk_fits(const struct pylayout *layout);

/* --- threads --- */

/* One PyThreadState after the other, the newest first. All zero before the first call. */
struct pywalk_threads {
	uintptr_t tstate; /* of the current thread */
	size_t cnt;	  /* threads so far */
	int error;	  /* 0: all were seen; -ESRCH: no such process; -EFAULT: the list changed */
	unsigned char bytes[PYWALK_THREAD_BYTES];
};

/* Moves to the next thread. False behind the last one, after an error, or at the limit. */
bool pywalk_next(const struct pysource *source, struct pywalk_threads *threads);

/* Copies a PyThreadState. False unless it is a thread of the main interpreter. */
bool pywalk_thread_read(const struct pysource *source, uintptr_t tstate,
			unsigned char bytes[static PYWALK_THREAD_BYTES]);

/*
 * The kernel's id, as the process itself knows it, of the thread in bytes. 0 for a thread that has
 * not begun or has ended.
 */
uint32_t pywalk_tid(const struct pysource *source, const unsigned char *bytes);

/*
 * Finds in the struct pthread at that address the offset of a thread's id, given that id. Returns
 * 0 or -ENOENT.
 */
_must_check_ int pywalk_find_pthread_tid(const struct selfmem *mem, uintptr_t pthread, uint32_t tid,
					 uint32_t *ret_offset);

/* --- frames --- */

/* A frame's place in the code of its function, and its relation to native frames. */
struct pywalk_place {
	uint32_t instr; /* byte offset of the instruction, as dis counts */
	/* The outermost one that its native _PyEval_EvalFrameDefault runs: C code called it. */
	bool entry;
};

struct pywalk {
	struct pysource source;
	uintptr_t *codes; /* addresses of code objects, innermost first: `cap` of them */
	/* NULL, or `cap` of them; then frames that have not begun are kept, too. */
	struct pywalk_place *places;
	size_t cap, depth;
	bool truncated;
	uint32_t leaf_instr;
};

/*
 * Fills depth, truncated (deeper than cap), leaf_instr and the arrays. False: the thread changed at
 * each try, or can't be read.
 */
_must_check_ bool pywalk_frames(struct pywalk *walk, uintptr_t tstate);

/* --- the GIL --- */

struct pywalk_gil {
	uint32_t holder_tid; /* 0: not held, or by a thread that has ended */
	/*
	 * Holds the GIL's condition variable and mutex: a thread whose futex address
	 * (/proc/PID/task/TID/syscall, first argument of futex) is in [begin, end)
	 * waits for the GIL.
	 */
	uintptr_t begin, end;
};

/* -EAGAIN when there is no GIL (yet). */
_must_check_ int pywalk_gil(const struct pysource *source, struct pywalk_gil *ret);

/* Whether the interpreter collects garbage at this moment. False if that can't be read. One system call. */
bool pywalk_collects(const struct pysource *source);
