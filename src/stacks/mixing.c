/* SPDX-License-Identifier: Apache-2.0 */
#include "stacks/mixing.h"

#include <string.h>

static bool has_start(const struct stacks_frame *frame, const char *start)
{
	return frame->function != NULL && frame->interpreter &&
	       strncmp(frame->function, start, strlen(start)) == 0;
}

/* Also the part of the function that the compiler moved away: "...Default.cold". */
static bool is_eval(const struct stacks_frame *frame)
{
	return has_start(frame, "_PyEval_EvalFrameDefault");
}

/* Interpreters built with tail calls have a native frame of the running instruction as well. */
static bool is_instruction(const struct stacks_frame *frame)
{
	return has_start(frame, "_TAIL_CALL_");
}

static size_t append_apart(const struct stacks_frame *const *native, size_t native_cnt,
			   const struct mixing_python *python, size_t python_cnt,
			   struct stacks_frame *ret)
{
	size_t cnt = 0;

	for (size_t i = 0; i < native_cnt; i++)
		ret[cnt++] = *native[i];
	for (size_t i = 0; i < python_cnt; i++)
		ret[cnt++] = python[i].frame;
	return cnt;
}

size_t mixing_join(const struct stacks_frame *const *native, size_t native_cnt, bool native_whole,
		   const struct mixing_python *python, size_t python_cnt, struct stacks_frame *ret,
		   bool *ret_mixed)
{
	size_t cnt = 0, next = 0;
	bool agree = true;

	for (size_t i = 0; i < native_cnt && agree; i++) {
		if (python_cnt > 0 && is_instruction(native[i]))
			continue;
		if (python_cnt == 0 || !is_eval(native[i])) {
			ret[cnt++] = *native[i];
			continue;
		}
		agree = next < python_cnt;
		while (next < python_cnt) {
			ret[cnt++] = python[next].frame;
			if (python[next++].entry)
				break;
		}
	}
	agree = agree && (next == python_cnt || !native_whole);
	*ret_mixed = agree;
	if (!agree)
		return append_apart(native, native_cnt, python, python_cnt, ret);
	while (next < python_cnt)
		ret[cnt++] = python[next++].frame;
	return cnt;
}
