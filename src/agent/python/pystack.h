/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the Python stacks of its own process from a thread that does not hold the GIL: no thread is
 * stopped or slowed down. The data may change during the read, so each pointer is followed by a
 * read that cannot crash (selfmem.h), each frame must have a code object, and a stack counts only
 * if it ends where stacks end; otherwise it is read again, three times at most. The stack of a busy
 * thread may still mix two moments: each frame was there, its innermost ones perhaps a microsecond
 * apart.
 *
 * The main thread of a child can be read from here, and nothing runs in the child for it: the kernel
 * allows a process to read the memory of its descendants. A child that was forked from the process
 * has everything at the same addresses. One that runs the same Python anew, as multiprocessing's
 * "spawn" and "forkserver" start it, has the interpreter's variables as far from the code of its
 * file as here (image.h), and the main interpreter's address in them.
 *
 * CPython 3.8 to 3.14 with GIL, release builds; 3.14 is untested. Main interpreter only. In a child
 * after fork all functions return no data until pystack_open is called there. Exit in progress:
 * threads vanish.
 *
 * Neither allocates nor locks; a walk needs 32 KiB of stack. Any number of threads may read.
 * Libpython is not linked: its symbols are weak, absent outside Python.
 */
#pragma once

#include "base/base.h"
#include "pyread/pywalk.h"

#define PYSTACK_DEPTH 128

/* Whose memory is read. All zero: of this process. */
struct pystack_process {
	uint32_t pid;		     /* of a child; 0: this process */
	uintptr_t interp, code_type; /* the child's; 0 until pystack_child has found them */
};

struct pystack_thread {
	uint32_t tid; /* the kernel's */
	struct pystack_process process;
	uintptr_t tstate;
};

/*
 * With the GIL held, by a thread of the main interpreter. Finds the interpreter, looks
 * up its layout and checks it on this thread, its name, its GIL and its stack.
 * Returns 0; otherwise -errno and the reason in why[size]: -ENOENT without Python or
 * for an unknown version, -ENOTSUP for a build that can't be read, -EPERM where
 * a sandbox forbids to read. May be called again while no thread reads.
 */
_must_check_ int pystack_open(char *why, size_t size);

/*
 * The threads of Python, newest first. Returns how many are in ret[cap]; *dropped
 * counts those beyond. Costs a system call or (before 3.11) two for each.
 */
size_t pystack_threads(struct pystack_thread *ret, size_t cap, size_t *dropped);

/*
 * The oldest thread of a child, which is its main thread. child->pid is given; where the child has
 * its interpreter is kept in *child for the next call. Returns 0; -ESRCH: there is no such process;
 * -EFAULT: it does not run this Python, its interpreter has not begun, or its list of threads was
 * changing; -ENOTSUP: children can't be read here. Two system calls, and one for each more thread;
 * the child's list of mappings is read, too, if it has no interpreter at the known place. Of one
 * thread at a time.
 */
_must_check_ int pystack_child(struct pystack_process *child, struct pystack_thread *ret);

/*
 * The code objects (addresses: compare, or ask pystack_code) of a thread's frames,
 * innermost first. Frames that have not begun are left out, as in tracebacks. Returns
 * the depth. 0: the thread runs no Python or, with *truncated, can't be read. With
 * another depth *truncated says that the stack is deeper than cap. *leaf_instr: the
 * byte offset of the instruction that the first frame is at, as dis counts. Both may
 * be NULL. Costs two system calls, and one for each frame outside the stack of frames
 * (before 3.11: each frame) that was not among the first 60 of those the last time.
 */
size_t pystack_walk(const struct pystack_thread *thread, uintptr_t *codes, size_t cap,
		    bool *truncated, uint32_t *leaf_instr);

/* Copies the names of a code object. -EFAULT when that address no longer has one. */
_must_check_ int pystack_code(const struct pystack_process *process, uintptr_t code,
			      struct pycode *ret);

/*
 * A number for each code object that changes when another one takes its address and differs between
 * processes, 0 where there is none. Returns the count of code objects. One system call for 64.
 */
size_t pystack_stamps(const struct pystack_process *process, const uintptr_t *codes, size_t cnt,
		      uint64_t *stamps);

/* The thread that holds the GIL now. -EAGAIN before pystack_open or when there is no GIL (yet). */
_must_check_ int pystack_gil(struct pywalk_gil *ret);

/*
 * With the GIL held. expected[cnt]: id(frame.f_code) of sys._getframe() and of all its
 * f_back. 0 if walking this thread gives the same; -EBADMSG if not.
 */
_must_check_ int pystack_check(const uintptr_t *expected, size_t cnt);
