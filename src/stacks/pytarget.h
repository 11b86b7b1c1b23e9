/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Python interpreter of another process: where it is, of which version, its threads, and the
 * names and lines of code objects. Found by the symbols of the program or of libpython; a stripped
 * program still exports them. Main interpreter, CPython 3.8 to 3.14 with GIL.
 */
#pragma once

#include "base/idmap.h"
#include "pyread/pywalk.h"
#include "stacks/native/modules.h"
#include "stacks/region.h"

/* A thread of the interpreter, by the id that the process itself knows. */
struct pytarget_thread {
	uint32_t own_tid;
	uintptr_t tstate;
};

struct pytarget_code {
	const char *function, *file; /* in the region */
	uint32_t first_line;
	const unsigned char *table; /* of line numbers, in the region; NULL: could not be read */
	size_t table_len;
};

struct pytarget {
	bool present;	 /* the process runs Python, and it can be read */
	uint32_t module; /* the one that has the interpreter; MODULE_NONE: no Python */
	uint32_t minor;	 /* of 3.x; 0: unknown */
	char why[96];	 /* why it can't be read; "" if there is no Python */
	struct pylayout layout;
	struct pysource source;
	VEC(struct pytarget_thread) threads;
	size_t dropped; /* threads beyond PYWALK_THREADS_MAX */
	struct idmap by_code;
	VEC(struct pytarget_code) codes;
};

/*
 * own_pid: the process's id in its own namespace. Sets present, or why. Returns 0, or -ENOMEM;
 * pytarget_done in either case.
 */
_must_check_ int pytarget_open(struct pytarget *target, struct modules *modules, uint32_t own_pid);
void pytarget_done(struct pytarget *target);

/* The PyThreadState of a thread, 0: it runs no Python. */
uintptr_t pytarget_find(const struct pytarget *target, uint32_t own_tid);

/* Names of a code object, kept by its address. NULL: it was freed, or there is no room. */
const struct pytarget_code *pytarget_code(struct pytarget *target, struct region *region,
					  uintptr_t code);
