/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all threads of a process do at one moment: native and Python frames, the state of each
 * thread, and what it waits for. Written by the stage `stacks`, printed by `report`.
 */
#pragma once

#include "base/base.h"

enum { STACKS_THREADS_MAX = 4096, STACKS_FRAMES_MAX = 1024 };

enum stacks_frame_kind { STACKS_NATIVE, STACKS_PYTHON };

struct stacks_frame {
	enum stacks_frame_kind kind;
	bool interpreter;     /* a native function of the Python interpreter */
	uint32_t line;	      /* Python; 0: unknown */
	const char *function; /* NULL: no symbol covers it */
	const char *file;     /* Python: the source; native: the library's path, NULL without one */
	uint64_t offset;      /* native, in the file: of the function, else of the instruction */
};

enum stacks_end {
	STACKS_WHOLE,  /* up to the function in which the thread began */
	STACKS_CUT,    /* outermost frames are missing: the stack is deeper than what is read */
	STACKS_BROKEN, /* outermost frames are missing: why_incomplete says why */
	STACKS_NONE,   /* no frame could be read */
};

enum stacks_gil { STACKS_GIL_NONE, STACKS_GIL_HOLDS, STACKS_GIL_WAITS };

struct stacks_thread {
	uint32_t tid, own_tid; /* in the reader's and in the process's own PID namespace */
	char name[16], role[32];
	char state; /* R, S, D, T, t, Z, X, I */
	bool runs_python, stopped;
	enum stacks_gil gil;
	uint32_t owner_tid; /* of the mutex that it waits for, 0: unknown; reader's namespace */
	char call[32];	    /* the system call that it is in, "" without one */
	char waits[160];    /* what that call is about: a file, a socket, a mutex; "" if unknown */
	char channel[64];   /* the kernel function in which it sleeps, "" if unknown */
	const char *kernel; /* the kernel's stack, a name per line, innermost first; NULL: none */
	enum stacks_end end;
	const char *why_incomplete; /* "" for a whole stack */
	bool moved;		    /* between the two samples of `twice` */
	char state_before;	    /* in the first of them */
	uint32_t common_cnt;	    /* outermost Python functions that both have */
	uint32_t switches;	    /* context switches so far, modulo 2^32 */
	uint32_t switched;	    /* between the two samples */
	bool mixed; /* false: Python frames could not be placed between native ones, they follow */
	const struct stacks_frame *frames; /* innermost first */
	size_t frame_cnt;
};

struct stacks_child {
	uint32_t pid;
	char state;
	char command[96];
};

struct stacks_process {
	uint32_t pid, own_pid, parent, tracer;
	int32_t rank; /* RANK of its environment; -1: none */
	char state, command[256], name[64];
	char python[8];		       /* "3.11"; "" without Python that can be read */
	char python_why[96];	       /* why not; "": no Python */
	char error[400];	       /* why it could not be read, or not completely; "": it was */
	struct stacks_thread *threads; /* by tid, the main one first */
	size_t thread_cnt, threads_dropped;
	struct stacks_child *children;
	size_t child_cnt, children_dropped;
	size_t replaced_libraries;		     /* whose file has other contents now */
	bool twice, moved;			     /* twice: two samples were compared */
	int64_t read_ns, stopped_ns, stopped_max_ns; /* stopped: sum and maximum over threads */
};
