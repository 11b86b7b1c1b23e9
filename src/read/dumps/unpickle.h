/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data of a Python pickle as JSON values, without executing it: a pickle is a program, and its opcodes
 * for classes and calls are refused. Known are those that make None, bools, numbers, texts, lists,
 * tuples (as arrays) and dicts whose keys are texts or integers, protocols 2 to 5.
 * Source: CPython, Lib/pickletools.py.
 */
#pragma once

#include "base/err.h"

#include <jansson.h>
#include <stddef.h>

enum { UNPICKLE_DEPTH_MAX = 32, UNPICKLE_STACK_MAX = 1 << 22, UNPICKLE_MEMO_MAX = 1 << 22 };

/*
 * data[len]; path names it in err. *ret is the caller's reference. What it has twice may be one value
 * in two places; none contains itself. Returns 0, -EINVAL with a line in err: offset, expected, found;
 * or -ENOMEM. O(len).
 */
_must_check_ int unpickle(const char *path, const char *data, size_t len, json_t **ret,
			  struct err *err);
