/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the running CPython keeps its threads, frames, code objects and GIL: offsets
 * in bytes into its private structures. From 3.13 on the interpreter says so itself
 * (_Py_DebugOffsets, at the start of _PyRuntime); for 3.8 to 3.12 there is a table
 * (pyoffsets.h, written by tools/pyoffsets). Both hold for release builds; a build
 * that differs is found out by the checks of pystack_open.
 */
#pragma once

#include "base/base.h"

#include <string.h>

struct pylayout {
	uint32_t minor; /* of 3.x */

	/*
	 * Up to 3.11 the GIL lies in _PyRuntime at `gil`; from 3.12 on the interpreter has
	 * a pointer to it there. gil_* are offsets into it: last holder, locked, condition.
	 */
	uint32_t gil, gil_holder, gil_locked, gil_cond;

	uint32_t threads; /* of PyInterpreterState: the first PyThreadState */

	/*
	 * PyThreadState. thread_frame is the frame that runs; in 3.11 and 3.12 a _PyCFrame,
	 * whose cframe_frame is that. thread_native (the kernel's id) is 0 before 3.11 and
	 * thread_chunk, the newest piece of the stack of frames, too; its end follows it.
	 */
	uint32_t thread_next, thread_interp, thread_pthread, thread_native;
	uint32_t thread_frame, thread_chunk, cframe_frame;

	/*
	 * A frame: PyFrameObject before 3.11. frame_mark is a byte that tells what it is
	 * (owner) or, before 3.11, what it does; frame_roots and frame_shims are sets
	 * (1 << mark) of those that may end a stack and those that run no Python code.
	 */
	uint32_t frame_prev, frame_code, frame_instr, frame_mark, frame_roots, frame_shims;

	/* A code object. The last two are 0 before 3.11. */
	uint32_t code_name, code_file, code_line, code_traceable, code_start;

	/* The size of the header of an ASCII string and of another one. */
	uint32_t str_ascii, str_compact;

	/* How much of each structure has to be copied to have all of its fields. */
	uint32_t thread_bytes, frame_bytes, code_bytes;
};

/* A field of 64 or 32 bits in a copy of a structure. */
static inline uintptr_t pylayout_word(const unsigned char *bytes, uint32_t off)
{
	uintptr_t word;

	memcpy(&word, bytes + off, sizeof(word));
	return word;
}

static inline uint32_t pylayout_int(const unsigned char *bytes, uint32_t off)
{
	uint32_t value;

	memcpy(&value, bytes + off, sizeof(value));
	return value;
}

/*
 * version: what Py_GetVersion says, such as "3.12.1 (main, ...". runtime: &_PyRuntime.
 * Returns 0; -ENOENT without offsets for that version, -ENOTSUP for a free-threaded build.
 */
_must_check_ int pylayout_find(const char *version, const void *runtime, struct pylayout *ret);
