/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of system calls in which threads of a training job block. The recorder stores the numbers
 * of its machine's architecture; the reader must run on the same architecture.
 */
#pragma once

#include <stdint.h>

/* "read", "futex"; NULL for a number not in the table. Static storage. */
const char *syscall_name(int64_t number);
