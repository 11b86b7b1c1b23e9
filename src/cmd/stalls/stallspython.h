/* SPDX-License-Identifier: Apache-2.0 */
/* The GIL of a process that runs Python, for stallwatch.h: a thread that waits there waits for it. */
#pragma once

#include "base/base.h"

/* A stallwatch_gil. context is not used. Reads /proc/PID/maps once. */
bool stallspython_gil(void *context, uint32_t pid, uint64_t *ret_begin, uint64_t *ret_end);
