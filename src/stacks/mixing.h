/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One stack of native and Python frames. Each native _PyEval_EvalFrameDefault stands for the Python
 * frames that it runs: one before 3.11, later all up to the one that C code called (pywalk.h).
 */
#pragma once

#include "stacks/stackreading.h"

struct mixing_python {
	struct stacks_frame frame;
	bool entry; /* the outermost of its native frame */
};

/*
 * Both innermost first. native_whole: no outermost native frame is missing. Writes at most
 * native_cnt + python_cnt frames to ret; *ret_mixed is false, and the Python frames follow the
 * native ones, if their numbers do not agree. Returns how many.
 */
size_t mixing_join(const struct stacks_frame *const *native, size_t native_cnt, bool native_whole,
		   const struct mixing_python *python, size_t python_cnt, struct stacks_frame *ret,
		   bool *ret_mixed);
