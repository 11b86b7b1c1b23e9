/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How frames, threads and their states are written, the same in all forms of a stack dump; and
 * which frames a view shows.
 */
#pragma once

#include "base/idmap.h"
#include "base/str.h"
#include "base/vec.h"
#include "model/stackdump.h"

enum stackview_frames { STACKVIEW_BOTH, STACKVIEW_NATIVE, STACKVIEW_PYTHON };

struct stackview {
	enum stackview_frames frames;
	bool all; /* also functions of the interpreter, and what is below the outermost Python frame */
};

/* Names of native functions that were made readable, by the address of their text. */
struct stacknames {
	struct idmap by_text;
	VEC(char *) texts;
};

void stacknames_done(struct stacknames *names);

/* "function (file.py:12)", "c10d::Work::wait (libtorch_cpu.so)", "libx.so!+0x1234". */
void stackframe_append(struct str *out, struct stacknames *names, const struct stacks_frame *frame);

/*
 * The function's name alone; of a native one without a name "libx.so!+0x1234", or, if it is in no
 * file, "[code of no file]".
 */
void stackframe_function(struct str *out, struct stacknames *names,
			 const struct stacks_frame *frame);

/* A C++ name without parameters, return type and long template arguments. */
void stackframe_shorten(struct str *out, const char *demangled);

/*
 * The indexes of the frames that the view shows, innermost first, to ret[thread->frame_cnt].
 * Returns how many.
 */
size_t stackview_pick(const struct stackview *view, const struct stacks_thread *thread,
		      uint32_t *ret);

/* "sleeping" for 'S'. */
const char *stackstate_word(char state);

/* "sleeping in futex (mutex held by thread 12), waits for the GIL". */
void stackstate_append(struct str *out, const struct stacks_thread *thread);
