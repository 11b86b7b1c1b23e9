/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose code a Python function is, by its name "path/of/file.py(LINE): function". Readers shorten
 * the paths of libraries to their names ("torch/nn/modules/linear.py"), so the first part of a path
 * identifies a library.
 */
#pragma once

#include "base/base.h"

/* Whether it belongs neither to Python nor to a known library. O(length). */
bool pythoncode_is_users(const char *function);
